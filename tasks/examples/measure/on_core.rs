//! The time that a thread of an example has been on a core, whatever else the machine does. Knows no example.

use std::error::Error;
use std::fs::read_to_string;

/// Seconds that this thread has been on a core (Linux): a machine may be busy with other things.
pub(crate) fn on_core() -> Result<f64, Box<dyn Error>> {
    let told = read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds: u64 = told.split_whitespace().next().ok_or("schedstat is empty")?.parse()?;
    Ok(nanoseconds as f64 / 1e9)
}
