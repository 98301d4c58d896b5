//! The runner, the stages and the command line: everything that touches a config, a terminal or the clock.
//!
//! It is the binary's crate. Other crates see [`main`], and what tests of the whole compare with and run in their own process.

mod board;
mod bundle;
mod catalog;
mod cli;
mod compare;
mod config;
mod depot;
mod engine;
mod fetch;
pub mod in_process;
mod overview;
mod stage;
mod tag;
mod toml_text;

pub use catalog::VERSION as CATALOG_VERSION;
pub use cli::main;
pub use config::DEFAULT as DEFAULT_CONFIG;
