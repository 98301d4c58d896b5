//! Refuses a setting that is outside its range, by the name that the config has for it.

use std::fmt::Display;
use std::ops::RangeInclusive;

use base::setting::{InvalidSetting, shown};
use model::range::Range;

/// More of anything is a slip; sums and products of two such numbers still fit into 64 bits.
pub(crate) const MANY: u64 = 1_000_000;

/// Refuses a whole number outside a range.
///
/// # Errors
/// Names setting, value and range.
pub(crate) fn whole(key: impl Display, found: u64, range: RangeInclusive<u64>) -> anyhow::Result<()> {
    let (least, most) = (range.start(), range.end());
    let expected = match (*least, *most) {
        (0, most) => format!("at most {most}"),
        (least, u64::MAX) => format!("at least {least}"),
        (least, most) if found < least => format!("at least {least} and at most {most}"),
        (least, most) => format!("from {least} to {most}"),
    };
    anyhow::ensure!(range.contains(&found), "{key} is {found}, expected {expected}");
    Ok(())
}

/// Refuses a number outside a range.
///
/// # Errors
/// Names setting, value and range.
pub(crate) fn number(key: impl Display, found: f64, range: &Range) -> anyhow::Result<()> {
    anyhow::ensure!(range.holds(found), "{key} is {}, expected {}", shown(found), range.told);
    Ok(())
}

/// Refuses what a library found to be outside its range; `table` is where it stands.
///
/// # Errors
/// Names setting, value and range.
pub(crate) fn inside(table: impl Display, checked: Result<(), InvalidSetting>) -> anyhow::Result<()> {
    checked.map_err(|wrong| anyhow::anyhow!("{table}.{wrong}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_told_as_they_are_meant() {
        let told = |found, range| whole("a.b", found, range).unwrap_err().to_string();
        assert_eq!(told(0, 1..=u64::MAX), "a.b is 0, expected at least 1");
        assert_eq!(told(9, 0..=8), "a.b is 9, expected at most 8");
        assert_eq!(told(1, 2..=8), "a.b is 1, expected at least 2 and at most 8");
        assert_eq!(told(9, 2..=8), "a.b is 9, expected from 2 to 8");
        assert!(whole("a.b", 8, 2..=8).is_ok());
        let wrong = number("a.b", 1e308, &model::range::RATE).unwrap_err().to_string();
        assert_eq!(wrong, "a.b is 1e308, expected from 1e-12 to 1000");
    }
}
