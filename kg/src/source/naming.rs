//! Whether the texts of a source fit its ids: an id must not become a name unseen, nor a text be left over.

use std::path::PathBuf;

use base::line::Place;
use base::read::ReadError;
use base::share::Share;

use super::code::is_clear_code;
use crate::canon::Canon;
use crate::table::Builder;
use crate::table::builder::DraftEntity;

/// How much of a source may not fit. All of it is counted and told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Allowed {
    /// Entities, or relations, that have no text though others of the source have.
    pub max_untexted: Share,
    /// Texts of a file whose ids are in no triple.
    pub max_unused_texts: Share,
    /// Rows of a file that are left out because they do not fit.
    pub max_unfit: Share,
}

/// What was found in one source. It can be judged when all sources are read: another one may have a text for an id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Naming {
    pub(super) source: String,
    pub(super) allowed: Allowed,
    pub(super) entities: Untexted<(DraftEntity, String)>,
    pub(super) relations: Untexted<String>,
    pub(super) unused: Vec<Unused>,
    pub(super) coded: Coded,
}

/// What goes by its id where no texts are given, and looks like a code.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Coded {
    pub(super) entities: Vec<(DraftEntity, String)>,
    pub(super) relations: Vec<String>,
}

/// Things without a text, among those that could have one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Untexted<T> {
    pub(super) without: Vec<T>,
    pub(super) all: u64,
}

/// The texts of a file that nothing asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unused {
    pub(super) file: PathBuf,
    /// The first one's id and line.
    pub(super) id: String,
    pub(super) line: u64,
    pub(super) texts: u64,
    pub(super) all: u64,
}

/// Ids that a message names.
const EXAMPLES: usize = 3;

impl Naming {
    /// Of a source whose files name what they list: so many may go by their ids.
    pub(super) fn of_names(
        source: String,
        max_untexted: Share,
        entities: Untexted<(DraftEntity, String)>,
        relations: Untexted<String>,
    ) -> Self {
        let allowed = Allowed { max_untexted, ..Allowed::default() };
        Self { source, allowed, entities, relations, unused: Vec::new(), coded: Coded::default() }
    }

    /// Has all statements about entities without a text left out, unless another source has one, and those of the source's relations without a text.
    pub(super) fn leave_out(&self, builder: &mut Builder) {
        self.entities.without.iter().for_each(|(entity, _)| builder.leave_out_unnamed(*entity));
        self.relations.without.iter().for_each(|key| builder.leave_out_relation(&self.source, key));
    }

    /// What is to be told of it, if all of it is allowed.
    ///
    /// # Errors
    /// When more is left without text, or more texts without use, than is allowed.
    pub fn settle(self, canon: &Canon) -> Result<Vec<String>, ReadError> {
        let entities = self.entities.without.iter().filter(|(entity, _)| canon.is_nameless(*entity));
        let entities: Vec<&str> = entities.map(|(_, id)| id.as_str()).collect();
        // A relation that merging has inverted is called by its inverse.
        let merged = &canon.report().relations;
        let is_there = |key: &&String| {
            merged.iter().any(|one| one.relation == **key && (one.triples > 0 || one.unnamed > 0))
        };
        let relations = self.relations.without.iter().filter(is_there);
        let relations: Vec<&str> = relations.map(String::as_str).collect();
        let mut told = Vec::new();
        for (things, without, all) in
            [("entities", &entities, self.entities.all), ("relations", &relations, self.relations.all)]
        {
            told.extend(match canon.leaves_out_unnamed() {
                true => self.left_out(things, without, all),
                false => self.untexted(things, without, all)?,
            });
        }
        let coded = self.coded.entities.iter().filter(|(entity, _)| canon.is_nameless(*entity));
        let coded: Vec<&str> = coded.map(|(_, id)| id.as_str()).collect();
        told.extend(self.coded("entities", &coded, self.entities.all));
        let coded: Vec<&str> = self.coded.relations.iter().map(String::as_str).collect();
        told.extend(self.coded("relations", &coded, self.relations.all));
        for Unused { file, id, line, texts, all } in &self.unused {
            if !self.allowed.max_unused_texts.allows(*texts, *all) {
                let place = Place { file: file.clone(), line: *line, column: None };
                let found =
                    format!("{texts} of {all} texts are of ids that are in no triple, this first ({id:?})");
                let remedy = format!(
                    "give the file that belongs to the triples (sources.triples.{}.max_unused_texts = {:.4} would allow as many)",
                    self.source,
                    Share::least(*texts, *all, 4)
                );
                return Err(ReadError::new(place, found, "texts of the source's ids", remedy));
            }
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            told.push(format!(
                "{}: {texts} of {all} texts of {name} are of ids that are in no triple",
                self.source
            ));
        }
        Ok(told)
    }

    /// What is to be told of `things` that go by their ids where these are codes. Names of genes are a few letters and digits as well (`TP53`): such count
    /// where most are codes.
    fn coded(&self, things: &str, codes: &[&str], all: u64) -> Option<String> {
        let clear: Vec<&str> = codes.iter().copied().filter(|id| is_clear_code(id)).collect();
        let codes = if 2 * codes.len() as u64 > all { codes } else { &clear };
        let count = codes.len();
        let given = if things == "entities" { "entity_texts" } else { "relation_texts" };
        (count > 0).then(|| {
            format!(
                "{}: {count} of {all} {things} are called by ids that look like codes ({}): {given} would give them names",
                self.source,
                examples(codes)
            )
        })
    }

    /// What is to be told of `things` whose statements were left out, if there are any.
    fn left_out(&self, things: &str, without: &[&str], all: u64) -> Option<String> {
        let (count, examples) = (without.len(), examples(without));
        (count > 0).then(|| {
            format!(
                "{}: {count} of {all} {things} have no text, and their statements are dropped ({examples})",
                self.source
            )
        })
    }

    /// What is to be told of `things` without a text, if there are any.
    fn untexted(&self, things: &str, without: &[&str], all: u64) -> Result<Option<String>, ReadError> {
        let (count, source, examples) = (without.len() as u64, &self.source, examples(without));
        if self.allowed.max_untexted.allows(count, all) {
            let told = || {
                format!(
                    "{source}: {count} of {all} {things} have no text and are called by their ids ({examples})"
                )
            };
            return Ok((count > 0).then(told));
        }
        let other = self.unused.first().map(|unused| {
            let name = unused.file.file_name().unwrap_or_default().to_string_lossy();
            format!("; {name} has texts of ids that are in no triple ({:?})", unused.id)
        });
        let found = format!(
            "{count} of {all} {things} have no text and would be called by their ids ({examples}){}",
            other.unwrap_or_default()
        );
        let given = if things == "relations" { "names for these relations" } else { "texts for these ids" };
        let remedy = format!(
            "give {given} (max_untexted = {:.4} of the source {source} would allow as many)",
            Share::least(count, all, 4)
        );
        Err(ReadError::new(source.as_str(), found, "the text of each", remedy))
    }
}

fn examples(ids: &[&str]) -> String {
    let shown = ids.iter().take(EXAMPLES).map(|id| format!("{:?}", id.chars().take(40).collect::<String>()));
    let more = if ids.len() > EXAMPLES { ", ..." } else { "" };
    format!("{}{more}", shown.collect::<Vec<_>>().join(", "))
}
