//! Texts in, mentions of a graph's entities out: documents are tagged by all threads, and written in their order.

pub(crate) mod output;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Context as _;
use base::cancel::CancelToken;
use kg::table::{Entity, Graph};
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use serde::{Deserialize, Serialize};
use text::Document;
use text::ner::annotate::{Annotator, Settings};
use text::ner::{Context, Dictionary, Names};
use text::tagged::Tagged;

use self::output::Output;

/// Bytes of texts that are tagged together: enough for all threads, little beside a dictionary.
const BYTES: usize = 4 << 20;

/// Documents that are tagged together.
const DOCUMENTS: usize = 1 << 13;

/// What texts are tagged with.
#[derive(Debug)]
pub(crate) struct Tools {
    names: Names,
    context: Option<Context>,
    entities: Vec<Entity>,
}

/// Refuses a dictionary whose filters, the settings at `key`, leave nothing to look for.
///
/// # Errors
/// Says why names were dropped.
pub(crate) fn has_names(dictionary: &Dictionary, key: &str) -> anyhow::Result<()> {
    anyhow::ensure!(
        !dictionary.is_empty(),
        "no name of the graph passes {key} (dropped: {}): loosen the filters of these names",
        dictionary.report().written.told()
    );
    Ok(())
}

impl Tools {
    /// The names of the graph in the folder `triples`.
    ///
    /// # Errors
    /// When the graph cannot be read, or none of its names passes the filters.
    pub(crate) fn new(triples: &Path, settings: &Settings, context: Option<Context>) -> anyhow::Result<Self> {
        let graph = Graph::read(triples)?;
        let names = Names::of_graph(&graph, triples, settings)?;
        has_names(names.dictionary(), "tag.dictionary")?;
        Ok(Self { names, context, entities: graph.into_entities() })
    }

    /// Which names are looked for.
    pub(crate) fn names(&self) -> &Names {
        &self.names
    }
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Found {
    /// Documents read.
    pub(crate) documents: u64,
    /// Bytes of their texts.
    pub(crate) bytes: u64,
    /// Mentions, by how they name their entity.
    pub(crate) mentions: BTreeMap<Cow<'static, str>, u64>,
    /// Mentions of which their sentence says something, by what.
    pub(crate) modifiers: BTreeMap<Cow<'static, str>, u64>,
    /// Different entities that are the most likely ones of mentions.
    pub(crate) entities: u64,
}

impl Found {
    /// All mentions.
    pub(crate) fn all(&self) -> u64 {
        self.mentions.values().sum()
    }

    /// Adds what was found in other documents; how many different entities they have together has to be counted.
    pub(crate) fn add(&mut self, other: &Self) {
        self.documents += other.documents;
        self.bytes += other.bytes;
        for (sums, more) in [(&mut self.mentions, &other.mentions), (&mut self.modifiers, &other.modifiers)] {
            more.iter().for_each(|(name, count)| *sums.entry(name.clone()).or_insert(0) += count);
        }
    }
}

/// Tags documents and hands them on.
pub(crate) struct Tagging<'t> {
    tools: &'t Tools,
    out: Box<dyn Output + 't>,
    cancel: CancelToken,
    waiting: Vec<(Option<String>, Document)>,
    bytes: usize,
    found: Found,
    /// By entity, whether it was found.
    seen: Vec<bool>,
}

impl<'t> Tagging<'t> {
    /// Ready to tag documents, which `out` takes, until `cancel` says to stop.
    pub(crate) fn new(tools: &'t Tools, out: Box<dyn Output + 't>, cancel: CancelToken) -> Self {
        let seen = vec![false; tools.entities.len()];
        Self { tools, out, cancel, waiting: Vec::new(), bytes: 0, found: Found::default(), seen }
    }

    /// Takes the next document, of `file` where there are several.
    ///
    /// # Errors
    /// When documents cannot be written, or it is to stop.
    pub(crate) fn push(&mut self, file: Option<&str>, document: &Document) -> anyhow::Result<()> {
        self.cancel.check()?;
        let Document { id, text, sentences, .. } = document;
        let kept = Document {
            id: id.clone(),
            text: text.clone(),
            sentences: sentences.clone(),
            ..Document::default()
        };
        self.bytes += text.len();
        self.waiting.push((file.map(str::to_owned), kept));
        if self.bytes < BYTES && self.waiting.len() < DOCUMENTS { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> anyhow::Result<()> {
        let (tools, waiting) = (self.tools, std::mem::take(&mut self.waiting));
        let annotator = || Annotator::new(&tools.names, tools.context.as_ref());
        let tagged: Vec<Tagged> = waiting
            .into_par_iter()
            .map_init(annotator, |annotator, (file, document)| {
                let mentions = annotator.annotate(&document);
                let Document { id, text, sentences, .. } = document;
                Tagged { file, id, text, sentences, mentions }
            })
            .collect();
        self.bytes = 0;
        for one in &tagged {
            self.count(one);
        }
        self.out.write(&tagged, &tools.entities)
    }

    fn count(&mut self, tagged: &Tagged) {
        let found = &mut self.found;
        found.documents += 1;
        found.bytes += tagged.text.len() as u64;
        for mention in &tagged.mentions {
            *found.mentions.entry(mention.how.name().into()).or_insert(0) += 1;
            for modifier in mention.modifiers.iter() {
                *found.modifiers.entry(modifier.name().into()).or_insert(0) += 1;
            }
            let seen = mention.candidates.first().and_then(|best| self.seen.get_mut(best.entity.index()));
            if let Some(seen) = seen.filter(|seen| !**seen) {
                *seen = true;
                found.entities += 1;
            }
        }
    }

    /// Tags what waits, and ends what is written.
    ///
    /// # Errors
    /// When documents cannot be written.
    pub(crate) fn finish(mut self) -> anyhow::Result<Found> {
        self.flush()?;
        self.out.finish().context("mentions cannot be written")?;
        Ok(self.found)
    }
}
