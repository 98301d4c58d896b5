//! What README.md and croissant.json say of a shard folder: what the index says.

mod licence;

use std::path::Path;

use base::visible::markdown;
use batch::task::{Material, Predicts, Task};
use serde_json::{Value, json};

use super::index::{FILE, Index, Source, TOKENIZER, TaskIndex};
use super::schema::{FORMAT, VERSION, columns};
use crate::Error;
use crate::builder::Form;
use crate::hub::croissant::{self, Whole};
use crate::hub::readme::{self, block, put};
use crate::hub::{self, CROISSANT, Named, README, Set};
use crate::task::{has_negatives, spec};

/// Describes the shards of `index`, which lie in `folder`. Call it after every shard is in place and before the index is written.
///
/// # Errors
/// When the disk refuses.
pub fn write(folder: &Path, index: &Index) -> Result<(), Error> {
    let sets: Vec<Set<'_>> = index
        .tasks
        .iter()
        .map(|task| Ok(set(task, index.layout.form)?.with_classes(classes(task.task, index))))
        .collect::<Result<_, Error>>()?;
    let mut text = text(index, &sets);
    if folder.join(TOKENIZER).is_dir() {
        put(
            &mut text,
            format_args!(
                "\n`AutoTokenizer.from_pretrained(\"{TOKENIZER}\")` reads the vocabulary, which lies there.\n"
            ),
        );
    }
    hub::write(folder, &text, &croissant::text(&whole(index), &sets))
}

/// The rows of a task. Every list has a value for each token.
fn set(task: &TaskIndex, form: Form) -> Result<Set<'_>, Error> {
    let name = task.task.name();
    let named = Named {
        name,
        called: format!("task {name}"),
        below: format!("{name}/"),
        about: spec(task.task).asks,
    };
    Set::new(named, &columns(task.task, form), &task.parts, |part, _| part.tokens)
}

/// What the classes of a task are called; none where tokens are predicted.
fn classes(task: Task, index: &Index) -> Vec<String> {
    match task.predicts() {
        Predicts::Relation => index.relations.clone(),
        Predicts::Tags => index.classes.clone(),
        Predicts::Truth => spec(task).truth.into_iter().flatten().map(str::to_owned).collect(),
        Predicts::Name | Predicts::MaskedTokens => vec![],
    }
}

fn text(index: &Index, sets: &[Set<'_>]) -> String {
    let mut text = readme::front("engraft shards", sets);
    text.push_str(&about(index));
    if is_of_graph(index) {
        text.push_str(&sources_of_triples(&index.sources));
    }
    if index.tasks.iter().any(|task| task.task.made_of() == Material::Texts) {
        put(&mut text, format_args!("\n{LICENCE_OF_TEXTS}\n"));
    }
    for set in sets {
        text.push_str(&readme::set_text(set));
    }
    text.push_str(&made(index));
    text
}

/// Whether a task is made of a graph.
fn is_of_graph(index: &Index) -> bool {
    index.tasks.iter().any(|task| task.task.made_of() != Material::Texts)
}

/// What the rows show.
fn shown(index: &Index) -> &'static str {
    if is_of_graph(index) { "Triples of knowledge graphs and texts" } else { "Texts" }
}

fn about(index: &Index) -> String {
    let of = shown(index);
    let mut text = format!(
        "\n# engraft shards\n\n{of} as encoded training samples, one folder and one config per task. \
         `{FILE}` (`{FORMAT}`, version {VERSION}) lists every file with its checksums, `{CROISSANT}` describes them as Croissant.\n\n"
    );
    if let Some(task) = index.tasks.first().map(|task| task.task.name()) {
        put(
            &mut text,
            format_args!(
                "```python\nload_dataset(FOLDER, {task:?}, split=\"train\", streaming=True)\n```\n\n"
            ),
        );
    }
    let vocabulary = readme::vocabulary(&index.tokenizer);
    text.push_str(&vocabulary);
    if !index.relations.is_empty() {
        put(&mut text, format_args!(" The first classes of task relation are: {}.", first(&index.relations)));
    }
    text.push('\n');
    if !index.classes.is_empty() {
        put(&mut text, format_args!("Classes of task tagging: {}.\n", listed(&index.classes)));
    }
    text
}

/// A few names and how many more there are.
fn first(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let shown = names.get(..SHOWN).unwrap_or(names);
    let more = names.len().saturating_sub(SHOWN);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{rest}", listed(shown))
}

/// Names from data, as text and nothing else.
fn listed(names: &[String]) -> String {
    names.iter().map(|name| markdown(name)).collect::<Vec<_>>().join(", ")
}

/// Where the triples come from and under which licence levels, as Markdown: what is made of them has to say so too.
#[must_use]
pub fn sources_of_triples(triples: &[Source]) -> String {
    sources(triples, "triples")
}

/// The same of names, which the levels of `names` count.
#[must_use]
pub fn sources_of_names(names: &[Source]) -> String {
    sources(names, "names")
}

/// What is to be said of the licence of rows on texts.
pub const LICENCE_OF_TEXTS: &str = licence::TEXTS;

fn sources(sources: &[Source], of: &str) -> String {
    if sources.is_empty() {
        return "\n## Sources\n\nThe index names no source.\n".to_owned();
    }
    let mut text = format!(
        "\n## Sources and their licence levels\n\n{}\n\n| source | level | {of} | what the level allows |\n\
         |---|---|--:|---|\n",
        licence::ABOUT
    );
    for source in sources {
        for (level, triples) in &source.levels {
            let (name, shown, allows) = (markdown(&source.name), markdown(level), licence::meaning(level));
            put(&mut text, format_args!("| {name} | {shown} | {triples} | {allows} |\n"));
        }
    }
    text
}

/// The settings behind the rows, as they stand in the index.
fn made(index: &Index) -> String {
    let mut text = format!("\n## How it was made\n\nLayout:\n\n{}", block(&json!(index.layout)));
    if index.tasks.iter().any(|task| has_negatives(task.task)) {
        let (seed, config, counts) =
            (index.negatives.seed, json!(index.negatives.config), json!(index.negatives.counts));
        put(&mut text, format_args!("\nNegatives, drawn with seed {seed}:\n\n{}", block(&config)));
        put(&mut text, format_args!("\nWhat became of what was proposed, by part:\n\n{}", block(&counts)));
    }
    text
}

/// What Croissant says of it as a whole.
fn whole(index: &Index) -> Whole {
    // The columns decide how it is read, the contents whether it is the same.
    let version = format!("{VERSION}.0.0+{}", index.digest().get(..16).unwrap_or_default());
    Whole {
        name: "engraft shards",
        description: description(index),
        version,
        license: if is_of_graph(index) { licences(&index.sources) } else { json!(licence::TEXTS) },
        usage: json!({ "@type": "sc:CreativeWork", "name": "licence levels", "text": licence::ABOUT }),
    }
}

fn description(index: &Index) -> String {
    let rows: u64 = index.tasks.iter().flat_map(|task| &task.parts).map(|part| part.rows).sum();
    let tasks: Vec<&str> = index.tasks.iter().map(|task| task.task.name()).collect();
    format!(
        "{} as {rows} encoded training samples of the tasks {}. Token ids belong to the vocabulary \
         with the BLAKE3 digest {}. {README} says more.",
        shown(index),
        tasks.join(", "),
        index.tokenizer.blake3
    )
}

/// A licence per source, with its levels in words.
fn licences(sources: &[Source]) -> Value {
    let licence = |source: &Source| {
        let levels = source.levels.iter();
        let levels: Vec<String> = levels
            .map(|(level, triples)| format!("level {level} ({triples} triples): {}", licence::meaning(level)))
            .collect();
        json!({ "@type": "sc:CreativeWork", "name": source.name, "description": levels.join("; ") })
    };
    match sources {
        [] => json!("The index names no source."),
        _ => sources.iter().map(licence).collect(),
    }
}

#[cfg(test)]
mod tests;
