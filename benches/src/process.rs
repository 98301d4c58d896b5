//! What this process has cost, as Linux tells it, whatever else the machine does.

use std::error::Error;
use std::fs::read_to_string;

/// Seconds that processors have worked for this process, user and system time, in steps of 0.01.
///
/// # Errors
/// When `/proc` is not as Linux has it.
pub(crate) fn processor() -> Result<f64, Box<dyn Error>> {
    let stat = read_to_string("/proc/self/stat")?;
    // The second field, the name in brackets, may have spaces.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| -> Result<f64, Box<dyn Error>> {
        Ok(fields.get(at).ok_or("short /proc/self/stat")?.parse()?)
    };
    Ok((ticks(11)? + ticks(12)?) / 100.0)
}

/// The same in milliseconds, in steps of 10.
///
/// # Errors
/// As [`processor`].
pub(crate) fn processor_ms() -> Result<f64, Box<dyn Error>> {
    Ok(processor()? * 1000.0)
}

/// Seconds that this thread has been on a core.
///
/// # Errors
/// As [`processor`].
pub(crate) fn on_core() -> Result<f64, Box<dyn Error>> {
    let told = read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds: u64 = told.split_whitespace().next().ok_or("schedstat is empty")?.parse()?;
    Ok(nanoseconds as f64 / 1e9)
}

/// The most memory that this process has had, in MiB.
///
/// # Errors
/// As [`processor`].
pub(crate) fn peak_mib() -> Result<f64, Box<dyn Error>> {
    let status = read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM")).ok_or("no VmHWM")?;
    Ok(line.split_whitespace().nth(1).ok_or("no number")?.parse::<f64>()? / 1024.0)
}
