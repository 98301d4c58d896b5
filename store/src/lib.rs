//! Files and objects of other places: `s3://`, `gs://`, `az://`, `http(s)://` and local paths, by range or whole, through a bounded cache on disk.
//!
//! Nothing here is asynchronous to its callers: a runtime of one thread is hidden inside. All of it may be shared by threads.

mod cache;
mod connect;
pub mod depot;
mod download;
mod error;
pub mod location;
mod lookup;
pub mod meta;
pub mod object;
pub mod options;
mod remote;
mod store;

pub use cache::VERSION as CACHE_VERSION;
pub use download::{Downloaded, sha256};
pub use error::Error;
pub use store::{State, Store, Watch, Whole};
