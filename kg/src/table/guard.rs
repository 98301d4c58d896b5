//! Parquet from elsewhere: its decoder panics on some damaged pages.

use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What the decoder gives, its panics as errors.
///
/// # Errors
/// When it fails or panics.
pub fn guarded<T, E>(decode: impl FnOnce() -> Result<T, E>) -> Result<T, Box<dyn Error + Send + Sync>>
where
    E: Into<Box<dyn Error + Send + Sync>>,
{
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(decoded) => decoded.map_err(Into::into),
        Err(panic) => {
            let words = panic.downcast_ref::<String>().map(String::as_str);
            let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(format!("a page is damaged ({})", words.unwrap_or("the decoder gave up")).into())
        }
    }
}
