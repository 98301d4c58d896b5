//! Rows of a release: the states of its components, of which the latest holds.

use std::collections::HashMap;

use base::funnel::Tally;
use base::read::ReadError;

use crate::source::files::{Reopened, together};
use crate::source::named::{Row, each};

/// States that a later one has taken the place of.
pub(super) const SUPERSEDED: &str = "superseded";

/// A row of a component: which, since when, whether it is active.
pub(super) struct State<T> {
    id: String,
    time: u32,
    pub(super) is_active: bool,
    pub(super) of: T,
}

/// The latest states of a file's components, in the order in which they were first met.
pub(super) struct Latest<T> {
    pub(super) states: Vec<State<T>>,
    pub(super) tally: Tally,
}

/// What all components have.
const COMMON: [&str; 3] = ["id", "effectiveTime", "active"];

/// Reads files of the same component: `columns` are those behind the first three, `parse` makes of a row what is kept of it.
pub(super) fn latest<T>(
    files: &[Reopened<'_>],
    columns: &[&'static str],
    parse: impl Fn(&Row<'_, '_>) -> Result<T, ReadError>,
) -> Result<Latest<T>, ReadError> {
    let all = [&COMMON, columns].concat();
    let mut place: HashMap<String, usize> = HashMap::new();
    let mut superseded = 0;
    let mut states: Vec<State<T>> = Vec::new();
    let mut tally = Tally::new(&together(files), &[]);
    for file in files {
        let read = each(file, &all, |row| {
            let state = State {
                id: row.text(0)?.to_owned(),
                time: time(row, 1)?,
                is_active: flag(row, 2)?,
                of: parse(row)?,
            };
            match place.get(&state.id) {
                None => {
                    place.insert(state.id.clone(), states.len());
                    states.push(state);
                }
                Some(&before) if states[before].time == state.time => {
                    let found = format!("{} has another row of {}, too", state.id, state.time);
                    return Err(row.refused(found, "a row for each state"));
                }
                Some(&before) => {
                    superseded += 1;
                    if states[before].time < state.time {
                        states[before] = state;
                    }
                }
            }
            Ok(())
        })?;
        tally.add(&read);
    }
    tally.drop_all(SUPERSEDED, superseded);
    Ok(Latest { states, tally })
}

/// An id of SNOMED CT.
pub(super) fn id(row: &Row<'_, '_>, at: usize) -> Result<u64, ReadError> {
    let digits = Some(row.field(at)).filter(|text| (6..=18).contains(&text.len()));
    let id = digits.filter(|text| text.bytes().all(|b| b.is_ascii_digit())).and_then(|id| id.parse().ok());
    id.ok_or_else(|| row.wrong(at, "an id of SNOMED CT, 6 to 18 digits"))
}

fn time(row: &Row<'_, '_>, at: usize) -> Result<u32, ReadError> {
    let date = Some(row.field(at)).filter(|text| text.len() == 8).and_then(|date| date.parse().ok());
    date.ok_or_else(|| row.wrong(at, "a day as YYYYMMDD"))
}

fn flag(row: &Row<'_, '_>, at: usize) -> Result<bool, ReadError> {
    match row.field(at) {
        "1" => Ok(true),
        "0" => Ok(false),
        _ => Err(row.wrong(at, "1 or 0")),
    }
}
