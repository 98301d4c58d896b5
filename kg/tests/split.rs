//! Splits do not leak, and the audit finds every leak there is.

mod kg_bert;
mod leaks;
mod masses;
mod parts;
mod stored;
mod suspects;
mod toy;
