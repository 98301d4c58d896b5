//! Objects of web servers and of S3 through the cache: whatever the servers do, the bytes are right or the error says what to do.
pub(crate) mod bench;
mod cache;
mod clouds;
mod patience;
mod ranges;
