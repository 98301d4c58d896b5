//! Benchmarks: what a model that was grafted is tried on, from the publishers' files to samples with labels.

pub mod bm25;
pub mod capr;
pub mod cop;
pub mod encode;
pub mod example;
pub mod funnel;
pub mod lama;
pub mod lines;
pub mod masking;
pub mod set;
pub mod tagging;
pub mod token_classes;
pub mod turns;
pub mod words;
