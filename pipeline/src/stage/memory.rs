//! An amount of memory as a config states it: `"2GiB"`.

use serde::{Deserialize, Serialize};

/// Bytes, written as a whole number and a unit: `B`, `KiB`, `MiB`, `GiB`, or `kB`, `MB`, `GB`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Memory(pub usize);

const UNITS: [(&str, usize); 7] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

impl TryFrom<String> for Memory {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let amount = UNITS.iter().find_map(|(unit, bytes)| {
            let number = text.strip_suffix(unit)?.trim_end();
            number.parse::<usize>().ok()?.checked_mul(*bytes)
        });
        amount.map(Self).ok_or_else(|| {
            let units = UNITS.map(|(unit, _)| unit).join(", ");
            format!(
                "{text:?} is no number of bytes; expected a whole number with one of the units {units}, such as \"2GiB\""
            )
        })
    }
}

impl From<Memory> for String {
    fn from(memory: Memory) -> String {
        format!("{}B", memory.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_numbers_with_units() {
        let read = |text: &str| Memory::try_from(text.to_owned());
        assert_eq!(read("2GiB"), Ok(Memory(2 << 30)));
        assert_eq!(read("512 MiB"), Ok(Memory(512 << 20)));
        assert_eq!(read("3MB"), Ok(Memory(3_000_000)));
        assert_eq!(read("7B"), Ok(Memory(7)));
        for text in ["", "2", "GiB", "-1GiB", "2.5GiB", "4KB", "99999999999999999999B", "99999999999GiB"] {
            assert!(read(text).unwrap_err().contains("2GiB"), "{text}");
        }
        assert_eq!(read(&String::from(Memory(12))), Ok(Memory(12)));
    }
}
