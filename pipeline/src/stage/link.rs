//! Stage `link`: mentions with ids are linked to a graph's entities by the vectors of their names, and it is measured how often rightly.
//!
//! As SapBERT is evaluated (Liu et al. 2021): a mention's vector is compared with those of all names, by the cosine. Beside each encoder stands what looking a mention up among the
//! names gives, whatever their case. The search is exact: every name is looked at.

pub(crate) mod config;
mod encoding;
mod names;
mod told;

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use anyhow::Context as _;
use base::whole::write_whole;
use kg::table::read::retired;
use kg::table::{Entity, Graph};
use model::predict::Predictor;
use serde::Serialize;
use tasks::token::encode::Case;
use text::Document;
use text::ner::of_graph::each_name;

pub(crate) use self::config::Config;
use self::config::{Candidates, name};
use self::encoding::Encoding;
use self::names::Names;
pub(crate) use self::told::INTERVALS;
use self::told::{Answer, Measured};
use super::compute::Compute;
use super::corpus::{Corpus, Told};
use super::encoder::{self, Base};
use super::finetune::begin::Bases;
use super::location::Places;
use super::vocabulary;
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::licence::Licence;
use crate::engine::stage::{Input, Stage};

/// The name of the stage.
const NAME: &str = "link";
/// All measures, within the artifact. Written last.
const SCORES: &str = "link.json";
/// The same as a table to be read.
const TABLE: &str = "link.md";
/// What was said of each mention.
const ANSWERS: &str = "answers.jsonl";

/// The stage.
#[derive(Debug)]
pub(crate) struct Linking {
    config: Config,
    sets: Vec<Corpus>,
    models: Vec<(&'static str, Base)>,
    vocabulary: (vocabulary::Source, Case),
    compute: Compute,
}

impl Linking {
    /// The stage for `config`.
    ///
    /// # Errors
    /// When a place is invalid or the config does not make an encoder that is named.
    pub(crate) fn new(
        config: &Config,
        bases: &Bases,
        vocabulary: &(vocabulary::Source, Case),
        compute: Compute,
        places: &Places<'_>,
    ) -> anyhow::Result<Self> {
        let sets = config.sets.iter().enumerate();
        let sets = sets.map(|(i, set)| Corpus::of(&format!("link.sets.{i}.texts"), &set.texts, places));
        let models = config.of.iter().map(|&from| Ok((name(from), bases.clone().of("link.of", Some(from))?)));
        Ok(Self {
            config: config.clone(),
            sets: sets.collect::<anyhow::Result<_>>()?,
            models: models.collect::<anyhow::Result<_>>()?,
            vocabulary: vocabulary.clone(),
            compute,
        })
    }

    /// The names of the entities that are candidates, and which entity a key leads to.
    fn names(&self, triples: &Path) -> anyhow::Result<(Names, Graph, HashMap<String, u32>)> {
        let graph = Graph::read(triples)?;
        let mut names = Names::default();
        let is_asked = |entity: &Entity| self.config.types.allow(&entity.types);
        match self.config.names {
            Candidates::All => each_name(&graph, triples, |text, id| {
                if graph.entities().get(id.index()).is_some_and(is_asked) {
                    names.push(text, id.0);
                }
            })?,
            Candidates::Preferred => {
                let all = graph.entities().iter().zip(0_u32..);
                all.filter(|(entity, _)| is_asked(entity))
                    .for_each(|(entity, id)| names.push(&entity.text, id));
            }
        }
        let mut keys = HashMap::new();
        for (entity, id) in graph.entities().iter().zip(0_u32..) {
            for key in std::iter::once(&entity.key).chain(&entity.same_as) {
                keys.insert(key.clone(), id);
            }
        }
        // What a release gave up means what took its place.
        let retired: BTreeMap<String, String> = retired(triples)?.into_iter().collect();
        for (key, other) in retired {
            if let Some(&id) = keys.get(&other) {
                keys.entry(key).or_insert(id);
            }
        }
        anyhow::ensure!(
            !names.is_empty(),
            "link.types leaves no entity of the graph: name types that it has"
        );
        Ok((names, graph, keys))
    }

    /// The mentions of a set whose ids the graph has.
    fn asked(
        &self,
        place: usize,
        keys: &HashMap<String, u32>,
        context: &Context,
    ) -> anyhow::Result<(Vec<Asked>, Left, Told)> {
        let set = &self.config.sets[place];
        let (mut asked, mut left) = (Vec::new(), Left::default());
        let mut labels = Vec::new();
        let (all, told) = self.sets[place].read(context, |_, document: &Document| {
            for entity in &document.entities {
                let pieces: Vec<&str> =
                    entity.pieces.iter().filter_map(|piece| document.text.get(piece.clone())).collect();
                labels.push(entity.label);
                let ids = entity.concepts.iter().map(|concept| match concept.split_once(':') {
                    Some((prefix, id)) => format!("{}:{id}", prefix.to_lowercase()),
                    None => format!("{}:{concept}", set.namespace),
                });
                let entities: Vec<u32> = ids.filter_map(|id| keys.get(&id).copied()).collect();
                asked.push(Asked { document: document.id.clone(), text: pieces.join(" "), entities });
            }
            Ok(())
        })?;
        let mut labels = labels.into_iter().map(|label| all.names().get(label.number()).cloned());
        asked.retain(|one| {
            let kind = labels.next().flatten().unwrap_or_default();
            let other = !set.kinds.is_empty() && !set.kinds.contains(&kind);
            left.other_kinds += u64::from(other);
            left.unknown_ids += u64::from(!other && one.entities.is_empty());
            !other && !one.entities.is_empty()
        });
        anyhow::ensure!(
            !asked.is_empty(),
            "link.sets {:?} has no mention whose id the graph has ({} of other kinds, {} with other ids): look at namespace and kinds",
            set.texts.name,
            left.other_kinds,
            left.unknown_ids
        );
        Ok((asked, left, told))
    }
}

/// A mention that is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Asked {
    document: String,
    text: String,
    /// The entities that its ids name; any of them is right.
    entities: Vec<u32>,
}

/// Mentions that are not asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
struct Left {
    /// Of kinds that are not asked for.
    other_kinds: u64,
    /// Whose ids the graph lacks.
    unknown_ids: u64,
}

impl Stage for Linking {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> u32 {
        4
    }

    fn describe(&self, to: &mut dyn Describe) {
        describe::config(to, "link", &self.config);
        self.sets.iter().for_each(|set| set.describe_files(to));
        self.models.iter().for_each(|(_, base)| base.describe(to));
        self.compute.describe(to);
        self.vocabulary.0.describe_with(self.vocabulary.1, to);
    }

    fn computes_on(&self) -> Option<String> {
        Some(self.compute.told())
    }

    fn licence(&self, _: &Path) -> anyhow::Result<Licence> {
        Ok(self.sets.iter().map(Corpus::licence).fold(Licence::None, Licence::with))
    }

    fn inputs(&self) -> Vec<Input> {
        let sets = self.sets.iter().flat_map(Corpus::inputs);
        let models = self.models.iter().map(|(_, base)| base.input());
        let all = std::iter::once(Input::artifact("triples")).chain(sets).chain(models);
        super::location::once(all.chain(self.vocabulary.0.inputs()))
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let (names, graph, keys) = self.names(context.artifact("triples")?)?;
        let (mut sets, mut told) = (Vec::new(), Vec::new());
        for place in 0..self.sets.len() {
            let (asked, left, of) = self.asked(place, &keys, context)?;
            sets.push((asked, left));
            told.push(of);
        }
        Told::joined(told).record(context);
        let vocabulary = self.vocabulary.0.load(context, self.vocabulary.1)?;
        let device = self.compute.device(context)?;
        let progress = context.progress();
        progress.unit("names");
        let mentions: usize = sets.iter().map(|(asked, _)| asked.len()).sum();
        progress.total_rows(((names.len() + mentions) * self.models.len()) as u64);
        let mut measured = Measured::new(&sets, &self.config);
        let mut answers: Vec<u8> = Vec::new();
        for (name, base) in &self.models {
            let folder = base.folder(context)?;
            let predictor = Predictor::encoder(&folder, &device)?;
            predictor.can_pool(self.config.pooling).with_context(|| folder.display().to_string())?;
            encoder::fits(vocabulary.size(), vocabulary.special(), predictor.config())
                .with_context(|| folder.display().to_string())?;
            self.vocabulary.0.belongs(&vocabulary, &folder)?;
            encoder::room(NAME, self.config.max_tokens, predictor.config().max_position_embeddings)?;
            let encoding = Encoding {
                vocabulary: &vocabulary,
                predictor: &predictor,
                context,
                pooling: self.config.pooling,
                max_tokens: self.config.max_tokens,
            };
            let (found, cut) = encoding.nearest(&names, &sets)?;
            measured.cut(name, cut);
            for (place, (found, (asked, _))) in found.into_iter().zip(&sets).enumerate() {
                for (one, found) in asked.iter().zip(&found) {
                    let answer = Answer { model: name, set: &self.config.sets[place].texts.name, one, found };
                    answer.write(&graph, &mut answers)?;
                }
                measured.add(place, name, asked, &found)?;
            }
        }
        for (place, (asked, _)) in sets.iter().enumerate() {
            let found: Vec<Vec<(u32, f32)>> = asked.iter().map(|one| names.exactly(&one.text)).collect();
            measured.add(place, "names", asked, &found)?;
        }
        let scores = measured.told(names.len(), graph.entities().len());
        context.record("linked", scores.clone());
        write_whole(&context.out().join(ANSWERS), &answers)?;
        write_whole(&context.out().join(TABLE), told::table(&scores).as_bytes())?;
        write_whole(&context.out().join(SCORES), &serde_json::to_vec_pretty(&scores)?)?;
        Ok(())
    }
}
