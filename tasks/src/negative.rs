//! Corrupted triples: one step proposes, another judges. Knows no text encoding and no file.

pub mod uniform;
