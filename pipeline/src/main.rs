//! The `engraft` binary: hands over to the command line.

use std::process::ExitCode;

/// Training takes and gives back buffers of megabytes at every operation; the system's allocator returns them to the kernel
/// each time and spends a third of a step in page faults.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    engraft::main()
}
