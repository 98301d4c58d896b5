//! One config run once for each of several values of a setting, each into a folder of its own, and their scores side by side.

use std::path::{Path, PathBuf};

use super::args::{Command, Common};
use super::compare;
use super::exit::Exit;
use super::print::{self, Format};
use crate::config::set;
use crate::engine::layout::Layout;
use crate::engine::ledger::Ledger;

/// The stage whose scores are compared.
const COMPARED: &str = "scores";

/// One of the runs.
#[derive(Debug, PartialEq, Eq)]
struct Turn {
    /// What its folder is called.
    name: String,
    /// Its settings, as `--set` takes them.
    set: Vec<String>,
}

/// Calls `run` for each of the values in turn, then compares what came of them. What an interruption leaves is brought to an end by the same command, as any run.
///
/// # Errors
/// When the values cannot be told apart, a setting is invalid, or a run is refused.
pub(super) fn each(
    command: &mut Command,
    given: &[String],
    format: Format,
    run: impl Fn(&Command) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    let turns = turns(given)?;
    let (out, own) = (command.common.out().to_owned(), command.common.set.len());
    let mut folders: Vec<PathBuf> = vec![];
    // All of them are read before the first is run.
    for turn in &turns {
        turn.onto(&mut command.common, &out, own);
        command.common.load()?;
    }
    let mut whole = Exit::Ok;
    for turn in &turns {
        turn.onto(&mut command.common, &out, own);
        let folder = command.common.out().to_owned();
        print::note(&format!("{}: --set {}", folder.display(), turn.set.join(" --set ")));
        match run(command)? {
            Exit::Ok => {}
            Exit::Failed => whole = Exit::Failed,
            stopped => return Ok(stopped),
        }
        folders.push(folder);
    }
    let has_scores = |folder: &PathBuf| {
        Ok::<_, anyhow::Error>(Ledger::read(&Layout::new(folder).ledger())?.last(COMPARED).is_some())
    };
    let missing = folders.iter().map(has_scores).collect::<Result<Vec<_>, _>>()?.contains(&false);
    if whole != Exit::Ok || missing {
        let why = if missing { "not every folder has stage scores" } else { "a stage failed" };
        print::note(&format!("no table of them all: {why}"));
        return Ok(whole);
    }
    compare::compare(&folders, format)
}

/// The runs of all values: of several settings the first values go together, then the second ones.
fn turns(given: &[String]) -> anyhow::Result<Vec<Turn>> {
    let mut turns: Vec<Turn> = vec![];
    for (place, each) in given.iter().enumerate() {
        let shown = set::shown(each);
        let (_, values) = set::split(each).map_err(|why| anyhow::anyhow!("--each {shown}: {why}"))?;
        let (key, _) = each.split_once('=').unwrap_or((each, ""));
        let Some(values) = values.as_array().filter(|values| values.len() > 1) else {
            anyhow::bail!("--each {shown}: expected KEY=[VALUE, VALUE, ...], with two values at least")
        };
        if place == 0 {
            let named = |value: &toml::Value| Turn { name: name(value), set: vec![] };
            turns = values.iter().map(named).collect();
        }
        anyhow::ensure!(
            values.len() == turns.len(),
            "--each {shown} has {} values, and the first --each {}: the first values of all go together, then the second ones, so give each as many",
            values.len(),
            turns.len()
        );
        turns
            .iter_mut()
            .zip(values)
            .for_each(|(turn, value)| turn.set.push(format!("{}={value}", key.trim())));
    }
    for (place, turn) in turns.iter().enumerate() {
        let twice = turns[..place].iter().any(|other| other.name.eq_ignore_ascii_case(&turn.name));
        anyhow::ensure!(
            !turn.name.is_empty() && !twice,
            "--each: folders are called by the first setting's values, and {} would be {:?}{}: name places or values that end otherwise",
            turn.set[0],
            turn.name,
            if twice { " as well" } else { "" }
        );
    }
    Ok(turns)
}

impl Turn {
    /// Its settings behind `own` others, and its folder in `out`.
    fn onto(&self, common: &mut Common, out: &Path, own: usize) {
        common.set.truncate(own);
        common.set.extend(self.set.iter().cloned());
        common.out = Some(out.join(&self.name));
    }
}

/// A value as a folder is called: of a path its end, of others what they are, each in letters, digits and `.`, `_` and `-`.
fn name(value: &toml::Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let end = text.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let spaced: String = end.chars().map(|c| if fits(c) { c } else { ' ' }).collect();
    spaced.split_whitespace().collect::<Vec<_>>().join("-").trim_start_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(given: &[&str]) -> Result<Vec<(String, Vec<String>)>, String> {
        let given: Vec<String> = given.iter().map(|each| (*each).to_owned()).collect();
        let turns = turns(&given).map_err(|error| error.to_string())?;
        Ok(turns.into_iter().map(|turn| (turn.name, turn.set)).collect())
    }

    #[test]
    fn values_of_several_settings_go_together_and_name_folders() {
        let found =
            of(&["encoder.path=[\"a/bert\", \"Bio BERT/\"]", "vocabulary.case = [\"uncased\", \"cased\"]"]);
        let expected = [
            ("bert", ["encoder.path=\"a/bert\"", "vocabulary.case=\"uncased\""]),
            ("Bio-BERT", ["encoder.path=\"Bio BERT/\"", "vocabulary.case=\"cased\""]),
        ];
        let expected = expected.map(|(name, set)| (name.to_owned(), set.map(str::to_owned).to_vec()));
        assert_eq!(found.unwrap(), expected);
        let rates = of(&["finetune.learning_rate=[1e-4, 0.5]"]).unwrap();
        assert_eq!(rates.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["0.0001", "0.5"]);
        let tables = of(&["encoder=[{ from = \"x\" }, { from = \"y\" }]"]).unwrap();
        assert_eq!(tables[1].0, "from-y");
    }

    #[test]
    fn what_cannot_be_told_apart_is_refused() {
        for (given, expected) in [
            (&["a=1"][..], "expected KEY=[VALUE, VALUE, ...]"),
            (&["a=[1]"], "two values at least"),
            (&["a"], "expected KEY=VALUE"),
            (&["a=[1, 2]", "b=[1, 2, 3]"], "--each b=[1, 2, 3] has 3 values, and the first --each 2"),
            (&["a=[\"x/bert\", \"y/BERT\"]"], "a=\"y/BERT\" would be \"BERT\" as well"),
            (&["a=[\"/\", \"y\"]"], "a=\"/\" would be \"\""),
            (&["a=[\"..\", \"y\"]"], "would be \"\""),
        ] {
            let why = of(given).unwrap_err();
            assert!(why.contains(expected), "{given:?}: {why}");
        }
    }
}
