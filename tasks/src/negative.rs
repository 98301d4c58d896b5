//! Corrupted triples: one step proposes, another judges.
//!
//! A [`Corrupt`] proposes a value for one column of a stated triple; a [`judge::Judge`] refuses what is no negative; the [`Sampler`]
//! puts both together as a pure function of (seed, epoch, triple) and counts what happened (paper 000, triplet classification;
//! MODELS section 1.8).

pub mod any_entity;
pub mod bernoulli;
pub mod by_range;
pub mod by_type;
pub mod config;
pub mod corrupt;
pub mod counts;
mod ends;
pub mod judge;
pub mod known;
mod lists;
pub mod sampler;
pub mod statement;
pub mod uniform;

pub use config::{Config, Corruption, Draw};
pub use corrupt::{Corrupt, Proposal};
pub use counts::Counts;
pub use judge::{Filter, Verdict};
pub use sampler::{Negative, Sampler};
pub use statement::Same;
