//! Splits do not leak, and the audit finds every leak there is. Knows only the library's public face.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "the helpers of tests are outside the tests")]

mod kg_bert;
mod leaks;
mod masses;
mod parts;
mod stored;
mod suspects;
mod toy;
