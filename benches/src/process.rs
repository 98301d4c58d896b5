//! What this process has cost, as Linux tells it. Knows nothing of what it does.

use std::error::Error;
use std::fs;

/// Milliseconds of the processor, in steps of 10.
pub(crate) fn processor() -> Result<f64, Box<dyn Error>> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> = stat.rsplit(')').next().ok_or("no fields")?.split_whitespace().collect();
    let ticks =
        |field: usize| fields.get(field).ok_or("too few fields")?.parse::<f64>().map_err(|e| e.to_string());
    Ok((ticks(11)? + ticks(12)?) * 10.0)
}

/// The most memory that it has had.
pub(crate) fn peak_mib() -> Result<f64, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM")).ok_or("no VmHWM")?;
    Ok(line.split_whitespace().nth(1).ok_or("no number")?.parse::<f64>()? / 1024.0)
}
