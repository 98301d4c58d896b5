//! With CUDA: the kernels as `scripts/cuda-kernels.sh` left them, so that they are part of the library.

#![allow(
    clippy::disallowed_methods,
    reason = "a build script: its settings are the environment's, and what it writes is cargo's own"
)]

use std::path::PathBuf;
use std::{env, fs, process};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_CUDA").is_none() {
        return;
    }
    println!("cargo::rerun-if-env-changed=ENGRAFT_CUDA_KERNELS");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("..");
    let folder = env::var_os("ENGRAFT_CUDA_KERNELS").map_or_else(|| root.join("target/cuda"), PathBuf::from);
    for (name, file) in [("engraft.sm_90.cubin", "engraft.cubin"), ("engraft.compute_80.ptx", "engraft.ptx")]
    {
        // The mock driver has its own kernels and looks at no image.
        if folder.as_os_str() == "mock" {
            fs::write(out.join(file), "mock").unwrap_or_else(|error| stop(&format!("{file}: {error}")));
            continue;
        }
        let from = folder.join(name);
        println!("cargo::rerun-if-changed={}", from.display());
        if let Err(error) = fs::copy(&from, out.join(file)) {
            stop(&format!(
                "{}: {error}; run scripts/cuda-kernels.sh, which compiles the kernels, or name the folder that has them in ENGRAFT_CUDA_KERNELS",
                from.display()
            ));
        }
    }
}

fn stop(why: &str) -> ! {
    println!("cargo::error={why}");
    process::exit(1)
}
