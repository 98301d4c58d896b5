//! The runner, the stages and the command line: everything that touches a config, a terminal or the clock.

pub mod ask;
pub mod board;
pub mod catalog;
pub mod cli;
pub mod config;
pub mod engine;
pub mod fetch;
pub mod stage;
mod toml_text;
