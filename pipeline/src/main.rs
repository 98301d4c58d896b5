//! The `engraft` binary: hands over to the command line.

use std::process::ExitCode;

/// Training takes and gives back buffers of megabytes at every operation; the system's allocator returns them to the kernel
/// each time and spends a third of a step in page faults.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    allow_files();
    engraft::main()
}

/// Joining the parts of a large corpus holds a lock for each: as many open files as the system lets this process have.
fn allow_files() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut files = getrlimit(Resource::Nofile);
    files.current = files.maximum;
    // Where that is refused, the limit stays, and whoever meets it says so.
    let _ = setrlimit(Resource::Nofile, files);
}
