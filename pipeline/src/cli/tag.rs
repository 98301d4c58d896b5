//! `engraft tag`: texts in, mentions of a graph's entities out.

use std::collections::BTreeSet;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::cancel::CancelToken;
use base::funnel::Tally;
use base::gz;
use base::read::ReadError;
use report::number::thousands;
use text::file::{Format, documents, documents_of};
use text::{Document, Labels};

use super::args::{Common, Tagged};
use super::exit::Exit;
use super::{live, now, outside, predict, print, watch};
use crate::engine::Engine;
use crate::engine::outcome::Outcome;
use crate::stage::folder;
use crate::stage::location::{Place, Places};
use crate::stage::mentions::Config;
use crate::stage::remote::Remotes;
use crate::stage::report::json;
use crate::tag::{Found, Tagging};

/// Refuses a config that has no graph, and what cannot be read or written, before anything is made.
pub(super) fn ready(engine: &Engine, asked: &Tagged, common: &Common) -> anyhow::Result<()> {
    let names = engine.graph().names();
    anyhow::ensure!(
        asked.goals.iter().all(|goal| names.contains(goal)),
        "the config has no graph whose names could be found: add [sources], or name a folder with triples (--triples)"
    );
    asked.to.check(asked.into.as_deref())?;
    inputs(asked, &common.load()?.tag.unwrap_or_default().format).map(drop)
}

/// Tags with the config's graph, which is made before where need be.
pub(super) fn with_graph(
    engine: &Engine,
    asked: &Tagged,
    common: &Common,
    cancel: &CancelToken,
) -> anyhow::Result<Exit> {
    let [goal] = asked.goals.as_slice() else { return Ok(Exit::Ok) };
    // Standard output is for mentions.
    let show = watch::Show { format: print::Format::Text, detail: watch::Detail::Short, every: None };
    let watching = watch::choose(show, Arc::new(now));
    let live = live::Live::new(engine.layout(), engine.graph().names(), watching.as_ref());
    let summary = live.while_working(|| engine.run(&asked.goals, &live))?;
    drop(live);
    drop(watching);
    if summary.count(|outcome| *outcome == Outcome::Interrupted) > 0 {
        return Ok(Exit::Interrupted);
    }
    if summary.count(|outcome| matches!(outcome, Outcome::Failed(_))) > 0 {
        return Ok(Exit::Failed);
    }
    tag(asked, &engine.layout().artifact(goal), common, cancel)
}

/// Tags with the graph in the folder `triples`.
pub(super) fn tag(
    asked: &Tagged,
    triples: &Path,
    common: &Common,
    cancel: &CancelToken,
) -> anyhow::Result<Exit> {
    let config = common.load()?;
    let world = config.world.is_some();
    let config = config.tag.unwrap_or_default();
    let remotes = Arc::new(Remotes::new(outside::options(common, &CancelToken::NEVER)));
    let places = Places { data: common.data.as_deref(), world, remotes: &remotes };
    let triggers = match config.place(&places)? {
        None => None,
        Some(Place::Outside { path, .. }) => Some(path),
        Some(_) => {
            anyhow::bail!("tag.context.file lies elsewhere: `engraft tag` reads a file of this machine")
        }
    };
    asked.to.check(asked.into.as_deref())?;
    let inputs = inputs(asked, &config.format)?;
    let tools = config.tools(triples, triggers.as_deref())?;
    unlooked_for(triples)?;
    let started = now();
    let said = predict::unless_gone(|| {
        let mut tagging = Tagging::new(&tools, asked.to.open(asked.into.as_deref())?, cancel.clone());
        let all = read(&inputs, &config, &mut tagging)?;
        let found = tagging.finish()?;
        print::note(&told(&found, now().saturating_sub(started).as_secs_f64()));
        let left_out = counted(all.dropped.iter().filter(|(_, documents)| **documents > 0));
        if !left_out.is_empty() {
            print::note(&format!("note: documents that are not tagged: {left_out}"));
        }
        Ok(())
    });
    match said {
        Err(_) if cancel.is_cancelled() => Ok(Exit::Interrupted),
        said => said,
    }
}

/// Says how many things the sources name that the table lacks, since no triple mentions them.
fn unlooked_for(triples: &Path) -> anyhow::Result<()> {
    let file = triples.join("funnel.json");
    // Tables that others made may lie without it.
    if !file.is_file() {
        return Ok(());
    }
    let funnel: serde_json::Value = json(&file)?;
    let unused = funnel["merged"]["unused_entities"].as_u64().unwrap_or_default();
    if unused > 0 {
        print::note(&format!(
            "note: not looked for, since in no triple: {} of the things of the sources (canon.unrelated = \"keep\" keeps those that have a name)",
            thousands(unused)
        ));
    }
    Ok(())
}

/// A file to read.
struct Input {
    file: PathBuf,
    /// What its texts are told to be of: no two the same.
    name: String,
}

/// The files to read, of folders those that the format looks for; none for standard input.
fn inputs(asked: &Tagged, format: &Format) -> anyhow::Result<Vec<Input>> {
    let mut inputs = Vec::new();
    for path in &asked.files {
        let endings = format.extensions();
        let found = folder::some(folder::ending(path, endings)?, path, endings, "tag.format")?;
        inputs.extend(found.into_iter().map(|file| {
            // Below a folder that was named, else as the file is called.
            let below = folder::below(path, &file);
            let name = below.or(file.file_name().map(Path::new)).unwrap_or(&file);
            Input { name: name.to_string_lossy().into_owned(), file }
        }));
    }
    let names = inputs.iter().map(|input| input.name.as_str()).collect::<BTreeSet<_>>().len();
    if names < inputs.len() {
        inputs.iter_mut().for_each(|input| input.name = input.file.to_string_lossy().into_owned());
    }
    anyhow::ensure!(
        !inputs.is_empty() || !format.is_in_several_files() && !matches!(format, Format::Parquet(_)),
        "texts of this format cannot come from standard input: name their files"
    );
    Ok(inputs)
}

/// Tags the texts of all files, and counts their documents.
fn read(inputs: &[Input], config: &Config, tagging: &mut Tagging<'_>) -> anyhow::Result<Tally> {
    let (mut labels, mut all) = (Labels::default(), Tally::new(Path::new("texts"), &[]));
    if inputs.is_empty() {
        let name = Path::new("standard input");
        let unread = |error: io::Error| ReadError::new(name, format!("cannot be read: {error}"), "", "");
        let reader = BufReader::new(gz::reader(io::stdin().lock()).map_err(unread)?);
        let each = |document: &Document| tagging.push(None, document);
        all.add(&documents(reader, name, &config.format, &mut labels, each)?.documents);
    }
    for Input { file, name } in inputs {
        let name = (inputs.len() > 1).then_some(name.as_str());
        let each = |document: &Document| tagging.push(name, document);
        all.add(&documents_of(file, &config.format, &mut labels, each)?.documents);
    }
    Ok(all)
}

/// Counts by what they are of.
fn counted<'a>(counts: impl IntoIterator<Item = (&'a (impl std::fmt::Display + 'a), &'a u64)>) -> String {
    let parts: Vec<String> =
        counts.into_iter().map(|(what, count)| format!("{what} {}", thousands(*count))).collect();
    parts.join(", ")
}

/// What was found, and how fast.
fn told(found: &Found, seconds: f64) -> String {
    let documents = thousands(found.documents);
    let mut told = format!(
        "{documents} texts, {} mentions of {} entities, {:.2} MB/s",
        thousands(found.all()),
        thousands(found.entities),
        found.bytes as f64 / 1e6 / seconds.max(1e-9)
    );
    let parts = found.mentions.iter().filter(|(how, _)| **how != "name").chain(&found.modifiers);
    let parts = counted(parts);
    if !parts.is_empty() {
        told.push_str(&format!(" ({parts})"));
    }
    told
}
