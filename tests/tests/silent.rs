//! Nothing silent: faults that once passed with exit status 0, a file for each group, tried through the binary as a user would.
mod citations;
mod config;
mod corpus;
mod finetuning;
mod inputs;
mod model;
mod newcomer;
mod published;
mod runner;
mod sources;
mod state;
mod token;
mod visible;
