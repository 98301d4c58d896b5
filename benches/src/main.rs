//! The measured programs, each one side of a benchmark whose other side is a Python script beside it (`just --list`): `bench NAME ARGUMENTS`.
//!
//! `bench --avx2 NAME ARGUMENTS` keeps to AVX2 on a processor that has AVX-512, to say what one without it would do.

mod count;
mod importance;
mod maps;
mod masked_step;
mod mesh_triples;
mod metathesaurus;
mod nearest;
mod peak;
mod phrases;
mod process;
mod retrain_steps;
mod shape;
mod stream;
mod tag;
mod train_step;
mod umls_triples;

use std::error::Error;

// The command line's, so that memory costs what a run's does.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A program, given its arguments.
type Program = fn(&[String]) -> Result<(), Box<dyn Error>>;

fn program(name: &str) -> Option<Program> {
    Some(match name {
        "count" => count::run,
        "importance" => importance::run,
        "maps" => maps::run,
        "masked_step" => masked_step::run,
        "mesh_triples" => mesh_triples::run,
        "metathesaurus" => metathesaurus::run,
        "nearest" => nearest::run,
        "peak" => peak::run,
        "phrases" => phrases::run,
        "retrain_steps" => retrain_steps::run,
        "stream" => stream::run,
        "tag" => tag::run,
        "train_step" => train_step::run,
        "umls_triples" => umls_triples::run,
        _ => return None,
    })
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut arguments = arguments.as_slice();
    if let [first, rest @ ..] = arguments
        && first == "--avx2"
    {
        model::device::keep_to_avx2()?;
        arguments = rest;
    }
    let (name, rest) =
        arguments.split_first().ok_or("expected the name of a program, a file of benches/src")?;
    let program =
        program(name).ok_or_else(|| format!("{name}: no such program; expected a file of benches/src"))?;
    program(rest)
}
