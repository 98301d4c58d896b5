//! The time that the processor has worked for an example, whatever else the machine does. Knows no example.

use std::error::Error;
use std::fs::read_to_string;

/// Seconds that the processor has worked for this process (Linux: user and system time, in hundredths).
pub(crate) fn processor() -> Result<f64, Box<dyn Error>> {
    let text = read_to_string("/proc/self/stat")?;
    // The second field, the name in brackets, may have spaces.
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| -> Result<f64, Box<dyn Error>> {
        Ok(fields.get(at).ok_or("short /proc/self/stat")?.parse()?)
    };
    Ok((ticks(11)? + ticks(12)?) / 100.0)
}
