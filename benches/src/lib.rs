//! What the measured programs share; each is one side of a benchmark whose other side is a Python script beside it (`just --list`).

pub mod process;
pub mod shape;
