//! How to stream, as Python's arguments say it.

use kg::split::Part;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString};
use tasks::stream::collate::Fill;
use tasks::stream::lane::Batching;
use tasks::stream::order::Shuffle;
use tasks::stream::schedule::Schedule;
use tasks::stream::steps::Config;
use tasks::stream::window::Ahead;

use crate::raised::unfit;

/// Items, tokens, row groups and positions.
const MANY: u64 = 1_000_000;
/// Positions of a packed row: a sample has 16 bits for each number.
const LONGEST: u64 = 65_534;
/// Threads, and windows or steps that wait in memory.
const MOST: u64 = 1024;

/// The schedules by name.
const SCHEDULES: &str = r#""kimera", "merged", "proportional", {"round_robin": "paper"} or {"round_robin": "reference"}, or {"temperature": T}"#;

/// What is said besides the place of the shards.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    /// The stream's own.
    pub(crate) config: Config,
    /// Steps made ahead.
    pub(crate) steps_ahead: usize,
}

/// What to do about negatives of later epochs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Negatives {
    /// As the shards' settings say, as far as what they were made of is there.
    AsSet,
    /// Drawn anew for each epoch.
    Fresh,
    /// Those in the shards, in every epoch.
    Stored,
}

/// Python's arguments by name; each is taken once, and what is left over is refused.
pub(crate) struct Arguments<'a, 'py>(pub(crate) &'a Bound<'py, PyDict>);

impl<'py> Arguments<'_, 'py> {
    /// The argument, unless it is not given or None.
    pub(crate) fn take(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let found = self.0.get_item(name)?;
        if found.is_some() {
            self.0.del_item(name)?;
        }
        Ok(found.filter(|found| !found.is_none()))
    }

    fn whole(&self, name: &str, range: std::ops::RangeInclusive<u64>) -> PyResult<Option<usize>> {
        let Some(found) = self.take(name)? else { return Ok(None) };
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        let number = found.cast::<PyInt>().ok().filter(|found| !found.is_instance_of::<PyBool>());
        let number =
            number.and_then(|number| number.extract::<u64>().ok()).filter(|number| range.contains(number));
        let number = number.and_then(|number| usize::try_from(number).ok());
        number.map(Some).ok_or_else(|| unfit(name, shown(&found), &expected))
    }

    fn text(&self, name: &str) -> PyResult<Option<String>> {
        let found = self.take(name)?;
        found.map(|found| found.extract().map_err(|_| unfit(name, shown(&found), "a string"))).transpose()
    }

    /// Refuses what nobody has taken.
    pub(crate) fn none_left(&self) -> PyResult<()> {
        match self.0.keys().iter().next() {
            None => Ok(()),
            Some(name) => Err(PyTypeError::new_err(format!(
                "Stream() has no argument {name}; help(engraft.Stream) lists them"
            ))),
        }
    }

    /// Whether negatives are drawn anew.
    pub(crate) fn negatives(&self) -> PyResult<Negatives> {
        match self.text("negatives")?.as_deref() {
            None => Ok(Negatives::AsSet),
            Some("fresh") => Ok(Negatives::Fresh),
            Some("stored") => Ok(Negatives::Stored),
            Some(found) => Err(unfit("negatives", format!("{found:?}"), r#""fresh", "stored" or None"#)),
        }
    }
}

/// What was given, as Python shows it.
pub(crate) fn shown(found: &Bound<'_, PyAny>) -> String {
    found.repr().map_or_else(|_| "?".to_owned(), |text| text.to_string())
}

impl Settings {
    /// Takes the stream's arguments.
    ///
    /// # Errors
    /// Names the first that is none, and what is expected of it.
    pub(crate) fn take(from: &Arguments<'_, '_>) -> PyResult<Self> {
        let part = from.text("part")?.unwrap_or_else(|| "train".to_owned());
        let known = Part::ALL.into_iter().find(|known| known.name() == part);
        let part =
            known.ok_or_else(|| unfit("part", format!("{part:?}"), r#""train", "valid" or "test""#))?;
        let window = match from.0.get_item("window")? {
            Some(window) if window.is_none() => {
                from.take("window")?;
                Shuffle::None
            }
            _ => Shuffle::Window(from.whole("window", 1..=MANY)?.unwrap_or(16)),
        };
        let pack = from.whole("pack", 1..=LONGEST)?;
        let ahead = Ahead {
            windows: from.whole("windows_ahead", 0..=MOST)?.unwrap_or(1),
            threads: from.whole("threads", 1..=MOST)?.unwrap_or(1),
        };
        let config = Config {
            part,
            seed: from.whole("seed", 0..=u64::MAX)?.unwrap_or(0) as u64,
            schedule: schedule(from.take("schedule")?.as_ref())?,
            batching: batching(from)?,
            shuffle: window,
            fill: pack.map_or(Fill::One, Fill::Packed),
            ahead,
        };
        Ok(Self { config, steps_ahead: from.whole("steps_ahead", 1..=MOST)?.unwrap_or(2) })
    }
}

fn batching(from: &Arguments<'_, '_>) -> PyResult<Batching> {
    let (items, pool) = (from.whole("items", 1..=MANY)?, from.whole("pool", 1..=MANY)?);
    match (items, pool, from.whole("tokens", 1..=MANY)?) {
        (Some(items), _, Some(tokens)) => Err(unfit(
            "tokens",
            tokens,
            &format!("None beside items={items}: a batch has a number of items, or a budget of tokens"),
        )),
        (None, pool, Some(tokens)) => Ok(Batching::Tokens { tokens, pool: pool.unwrap_or(4096) }),
        (items, Some(pool), None) => Ok(Batching::Bucketed { items: items.unwrap_or(32), pool }),
        (items, None, None) => Ok(Batching::Items(items.unwrap_or(32))),
    }
}

fn schedule(found: Option<&Bound<'_, PyAny>>) -> PyResult<Schedule> {
    let Some(found) = found else { return Ok(Schedule::Kimera) };
    let value = value(found).ok_or_else(|| unfit("schedule", shown(found), SCHEDULES))?;
    let schedule: Schedule =
        serde_json::from_value(value).map_err(|_| unfit("schedule", shown(found), SCHEDULES))?;
    match schedule {
        Schedule::Temperature(of) if !(0.001..=1e6).contains(&of) => {
            Err(unfit("schedule", shown(found), r#"{"temperature": T} with T from 0.001 to 1e6"#))
        }
        _ => Ok(schedule),
    }
}

/// A string, a number or a dictionary of one such as a config has it.
fn value(found: &Bound<'_, PyAny>) -> Option<serde_json::Value> {
    if let Ok(text) = found.cast::<PyString>() {
        return Some(serde_json::Value::from(text.to_str().ok()?));
    }
    if found.is_instance_of::<PyFloat>() || found.is_instance_of::<PyInt>() {
        return serde_json::Number::from_f64(found.extract().ok()?).map(serde_json::Value::Number);
    }
    let entries = found.cast::<PyDict>().ok()?.iter();
    let entries = entries.map(|(key, of)| Some((key.extract::<String>().ok()?, value(&of)?)));
    Some(serde_json::Value::Object(entries.collect::<Option<_>>()?))
}
