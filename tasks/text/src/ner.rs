//! Names of a graph's entities found in texts.
//!
//! A [`Dictionary`] is made of the terms of a triple table, filtered by [`Filters`]; a [`Tagger`] finds its terms in a text, leftmost
//! first and the longest of those that begin there. Terms and texts are compared word by word, as an uncased BERT splits and spells
//! words ([`crate::word`]), so that no mention begins or ends inside a word.
//!
//! An [`Annotator`] adds to these mentions what is written nearly so, what a document abbreviates, and what its sentences say of them.

pub mod abbreviation;
pub mod annotate;
pub mod approximate;
mod choice;
pub mod context;
pub mod dictionary;
mod draft;
pub mod filters;
mod lexicon;
pub mod of_graph;
mod possessive;
pub mod score;
pub mod stop_words;
pub mod tagger;
mod trie;
mod variant;

pub use annotate::{Annotation, Annotator, Names};
pub use context::Context;
pub use dictionary::{Dictionary, Entry, Error, Report, TermId};
pub use filters::Filters;
pub use score::{Score, evaluate};
pub use tagger::{Mention, Tagger};
