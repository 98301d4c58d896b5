//! What is known of the words of a text and of each other (KAM-BERT, paper 001), as stored and as squares.

pub mod expand;
pub mod sample;
