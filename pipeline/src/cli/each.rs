//! One config run once for each of several values of a setting, each into a folder of its own, and the scores of all side by side.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::json;
use store::location::is_address;

use super::args::{Command, Common};
use super::compare;
use super::exit::Exit;
use super::print::{self, Format};
use crate::compare::COMPARED;
use crate::config::set;
use crate::engine::Engine;

/// One of the runs.
#[derive(Debug, PartialEq, Eq)]
struct Turn {
    /// What its folder's name ends in.
    name: String,
    /// Its settings, as `--set` takes them.
    set: Vec<String>,
}

/// What is done of each run.
pub(super) struct Doing<Check, Run> {
    /// Refuses what cannot be run, and says whether scores come of it.
    pub check: Check,
    /// Runs it.
    pub run: Run,
}

/// Runs with each of the values in turn, in a folder beside `--out` that is named after it, then compares the scores. All runs are checked before the first one begins; one that was
/// interrupted is resumed by the same command.
///
/// # Errors
/// When values cannot be told apart, a setting is invalid, or a run is refused.
pub(super) fn each(
    command: &mut Command,
    given: &[String],
    format: Format,
    doing: &Doing<impl Fn(&Command) -> anyhow::Result<bool>, impl Fn(&Command) -> anyhow::Result<Exit>>,
) -> anyhow::Result<Exit> {
    let turns = turns(given, &command.common.set)?;
    let (out, own) = (command.common.out().to_owned(), command.common.set.len());
    let mut is_compared = true;
    for turn in &turns {
        turn.onto(&mut command.common, &out, own)?;
        is_compared &= (doing.check)(command).with_context(|| command.common.out().display().to_string())?;
    }
    let (mut folders, mut failed): (Vec<PathBuf>, Vec<String>) = (vec![], vec![]);
    for turn in &turns {
        turn.onto(&mut command.common, &out, own)?;
        let folder = command.common.out().to_owned();
        match format {
            Format::Text => print::note(&format!("{}: {}", folder.display(), turn.shown())),
            Format::Json => {
                let set: Vec<String> = turn.set.iter().map(|set| set::shown(set)).collect();
                print::line(&json!({"event": "each", "out": folder, "set": set}).to_string())?;
            }
        }
        match (doing.run)(command)? {
            Exit::Ok => folders.push(folder),
            Exit::Failed => failed.push(folder.display().to_string()),
            stopped => return Ok(stopped),
        }
    }
    let whole = if failed.is_empty() { Exit::Ok } else { Exit::Failed };
    if !is_compared {
        print::note(
            "scores are not compared: none of the stages `scores`, `results` and `rank` is among what was run",
        );
        return Ok(whole);
    }
    if !folders.is_empty() {
        compare::compare(&folders, format)?;
    }
    if !failed.is_empty() {
        print::note(&format!("not compared, since a stage failed there: {}", failed.join(", ")));
    }
    Ok(whole)
}

/// Refuses goals that an engine has not, or a folder that is another config's; whether scores come of the goals, in this process.
///
/// # Errors
/// Says which.
pub(super) fn is_compared(engine: &Engine, goals: &[String]) -> anyhow::Result<bool> {
    engine.admitted()?;
    let (graph, needed) = (engine.graph(), engine.graph().needed(goals)?);
    Ok(!engine.follows() && needed.into_iter().any(|place| COMPARED.contains(&graph.stage(place).name())))
}

/// The runs of all values: of several settings the first values are paired, then the second ones. `sets` are settings of all runs.
fn turns(given: &[String], sets: &[String]) -> anyhow::Result<Vec<Turn>> {
    let mut turns: Vec<Turn> = vec![];
    let mut keys: Vec<&str> = sets.iter().filter_map(|set| Some(set.split_once('=')?.0.trim())).collect();
    for (place, each) in given.iter().enumerate() {
        let shown = set::shown(each);
        let (_, values) = set::split(each).map_err(|why| anyhow::anyhow!("--each {shown}: {why}"))?;
        let key = each.split_once('=').map_or("", |(key, _)| key.trim());
        let Some(values) = values.as_array().filter(|values| values.len() > 1) else {
            anyhow::bail!(
                "--each {shown}: expected KEY=[VALUE, VALUE, ...], with two values at least, texts in quotes"
            )
        };
        let is_within = |one: &str, other: &str| {
            one.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        if let Some(other) = keys.iter().find(|other| is_within(key, other) || is_within(other, key)) {
            anyhow::bail!("--each {key} and {other} set the same: leave one of them out");
        }
        keys.push(key);
        if place == 0 {
            let names = names(key, values);
            turns = names.into_iter().map(|name| Turn { name, set: vec![] }).collect();
        }
        anyhow::ensure!(
            values.len() == turns.len(),
            "--each {key} has {} values, and the first --each {}: values are paired in order, so give each as many",
            values.len(),
            turns.len()
        );
        turns.iter_mut().zip(values).for_each(|(turn, value)| turn.set.push(format!("{key}={value}")));
    }
    for (place, turn) in turns.iter().enumerate() {
        let is_twice = turns[..place].iter().any(|other| other.name.eq_ignore_ascii_case(&turn.name));
        anyhow::ensure!(
            !turn.name.is_empty() && !is_twice,
            "--each names folders after the first setting's values, and {} gives no name{}: choose other values",
            set::shown(&turn.set[0]),
            if is_twice { " apart from the others" } else { "" }
        );
    }
    Ok(turns)
}

impl Turn {
    /// Its settings behind `own` others, and its folder beside `out`.
    fn onto(&self, common: &mut Common, out: &Path, own: usize) -> anyhow::Result<()> {
        let of_all = out.file_name().and_then(|name| name.to_str());
        let of_all = of_all.with_context(|| {
            format!("--out is {}, whose name --each cannot add to: name a folder", out.display())
        })?;
        common.set.truncate(own);
        common.set.extend(self.set.iter().cloned());
        common.out = Some(out.with_file_name(format!("{of_all}-{}", self.name)));
        Ok(())
    }

    /// Its settings, without what may be secret in them.
    fn shown(&self) -> String {
        self.set.iter().map(|set| format!("--set {}", set::shown(set))).collect::<Vec<_>>().join(" ")
    }
}

/// What values are called in the names of folders: of paths and URLs as much of their ends as tells them apart, of others what they are, each in letters, digits and `.`, `_` and `-`.
/// A number says little by itself: before what is no text stands its key.
fn names(key: &str, values: &[toml::Value]) -> Vec<String> {
    if !values.iter().all(toml::Value::is_str) {
        let name = |value| format!("{key}-{}", parts(value).join("-"));
        return values.iter().map(name).collect();
    }
    let parts: Vec<Vec<String>> = values.iter().map(parts).collect();
    let longest = parts.iter().map(Vec::len).max().unwrap_or(1);
    let of = |most: usize| -> Vec<String> {
        parts.iter().map(|parts| parts[parts.len().saturating_sub(most)..].join("-")).collect()
    };
    let differ = |names: &[String]| {
        let mut all: Vec<String> = names.iter().map(|name| name.to_ascii_lowercase()).collect();
        all.sort();
        all.windows(2).all(|pair| pair[0] != pair[1])
    };
    (1..longest).map(of).find(|names| differ(names)).unwrap_or_else(|| of(longest))
}

/// The parts of a value that folders may be named by.
fn parts(value: &toml::Value) -> Vec<String> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    // What stands behind it may be a signature.
    let text = if is_address(&text) { text.split(['?', '#']).next().unwrap_or_default() } else { &text };
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let name = |part: &str| {
        let spaced: String = part.chars().map(|c| if fits(c) { c } else { ' ' }).collect();
        spaced.split_whitespace().collect::<Vec<_>>().join("-").trim_matches('.').to_owned()
    };
    text.split('/').map(name).filter(|name| !name.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(given: &[&str]) -> Result<Vec<(String, Vec<String>)>, String> {
        let given: Vec<String> = given.iter().map(|each| (*each).to_owned()).collect();
        let turns = turns(&given, &[]).map_err(|error| error.to_string())?;
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
        assert_eq!(
            rates.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
            ["finetune.learning_rate-0.0001", "finetune.learning_rate-0.5"]
        );
        let tables = of(&["encoder=[{ from = \"x\" }, { from = \"y\" }]"]).unwrap();
        assert_eq!(tables[1].0, "encoder-from-y");
        let longer = of(&["a=[\"o1/retrain/model\", \"o2/retrain/model\"]"]).unwrap();
        assert_eq!(
            longer.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
            ["o1-retrain-model", "o2-retrain-model"]
        );
        let signed = of(&["a=[\"https://h/x?sig=secret\", \"https://h/y?sig=secret\"]"]).unwrap();
        assert_eq!((signed[0].0.as_str(), signed[1].0.as_str()), ("x", "y"));
        let turn = Turn { name: String::new(), set: signed[0].1.clone() };
        assert_eq!(turn.shown(), "--set a=...");
    }

    #[test]
    fn a_setting_of_all_runs_is_no_setting_of_each() {
        let refused = turns(&["encoder.seed=[1, 2]".to_owned()], &["encoder={ seed = 9 }".to_owned()]);
        assert_eq!(
            refused.unwrap_err().to_string(),
            "--each encoder.seed and encoder set the same: leave one of them out"
        );
    }

    #[test]
    fn what_cannot_be_told_apart_is_refused() {
        for (given, expected) in [
            (&["a=1"][..], "expected KEY=[VALUE, VALUE, ...]"),
            (&["a=[1]"], "two values at least"),
            (&["a"], "expected KEY=VALUE"),
            (&["a=[1, 2]", "b=[1, 2, 3]"], "--each b has 3 values, and the first --each 2"),
            (&["a=[\"x/bert\", \"X/BERT\"]"], "gives no name apart from the others"),
            (&["a=[\"/\", \"y\"]"], "a=\"/\" gives no name"),
            (&["a=[\"..\", \"y\"]"], "gives no name"),
            (&["a.b=[1, 2]", "a=[3, 4]"], "--each a and a.b set the same"),
            (&["a=[x, y]"], "texts in quotes"),
        ] {
            let why = of(given).unwrap_err();
            assert!(why.contains(expected), "{given:?}: {why}");
        }
    }
}
