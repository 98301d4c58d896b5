//! Published sets of texts with gold labels: where their files lie, what they look like, which are for what.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tasks::downstream::example::schema::Licence;
use tasks::downstream::example::{Measure, Part, write};
use tasks::downstream::funnel::Step;
use tasks::downstream::set::Item;
use tasks::downstream::set::assemble::{Drawn, Plan, assemble};
use tasks::downstream::set::format::Format;

use super::super::folder;
use super::super::location::{Location, Place, Places};
use super::classes;
use crate::engine::context::Context;

/// The table `[benchmarks.set]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// The file format, as published.
    pub format: Format,
    /// Files, or folders whose files with the format's extensions are all read, for training.
    #[serde(skip_serializing)]
    pub train: Vec<Location>,
    /// The same for `dev`; left out where a share is drawn.
    ///
    /// Source: none: a share of `train` is drawn.
    #[serde(default, skip_serializing)]
    pub dev: Vec<Location>,
    /// The same for `test`; left out where a share is drawn.
    ///
    /// Source: none: a share of `train` is drawn.
    #[serde(default, skip_serializing)]
    pub test: Vec<Location>,
    /// Shares of the training data for other parts, rounded to whole documents, groups of pairs with the same first text, or rows where the file
    /// has no grouping (sentences, in CoNLL without documents); 0 where files are given.
    #[serde(default)]
    pub drawn: Drawn,
    /// The metric (docs/formats.md); left out, the publishers'.
    #[serde(default)]
    pub measure: Option<Measure>,
    /// The negative class, excluded from F1; left out, the format's.
    #[serde(default)]
    pub negative_class: Option<String>,
    /// Terms of use of the texts, recorded in the artifact.
    ///
    /// Source: ours: what is not known to be free is treated as restricted.
    #[serde(default)]
    pub licence: Licence,
}

/// A config whose places are known.
#[derive(Debug)]
pub(super) struct Source {
    key: String,
    config: Config,
    places: Vec<(Part, Place)>,
}

impl Config {
    /// Whether every number is in its range; `key` is where they stand.
    pub(super) fn ranges(&self, key: &str) -> anyhow::Result<()> {
        let has_files = |part| match part {
            Part::Dev => !self.dev.is_empty(),
            Part::Test => !self.test.is_empty(),
            Part::Train | Part::MaskSearch => false,
        };
        self.drawn.check(has_files).map_err(|error| anyhow::anyhow!("{key}.drawn: {error}"))?;
        self.format.set().check().map_err(|error| anyhow::anyhow!("{key}.format: {error}"))
    }

    /// Whether it has a part on which a head mask can be searched.
    pub(super) fn has_mask_search(&self) -> bool {
        self.drawn.mask_search > 0.0
    }
}

impl Source {
    /// `key` is the config's, for messages.
    pub(super) fn new(config: &Config, key: &str, places: &Places<'_>) -> anyhow::Result<Self> {
        let key = format!("{key}.set");
        let set = config.format.set();
        let measure = config.measure.unwrap_or_else(|| set.measure());
        measure.check(set.kind()).map_err(|error| anyhow::anyhow!("{key}.measure: {error}"))?;
        let parts = [(Part::Train, &config.train), (Part::Dev, &config.dev), (Part::Test, &config.test)];
        let drawn = |part: Part| match part {
            Part::Dev => config.drawn.dev,
            Part::Test => config.drawn.test,
            Part::Train | Part::MaskSearch => 0.0,
        };
        let mut all = vec![];
        for (part, locations) in parts {
            let name = part.name();
            anyhow::ensure!(
                !locations.is_empty() || drawn(part) > 0.0,
                "{key}: nothing is for {name}: name files ({name} = [...]){}",
                if part == Part::Train { "" } else { ", or draw a share of those for training (drawn)" }
            );
            for (number, location) in locations.iter().enumerate() {
                let key = format!("{key}.{name}.{number}");
                let place = location.place(&key, places)?;
                let twice = all.iter().any(|(_, other): &(Part, Place)| other.is_same(&place));
                anyhow::ensure!(!twice, "{key} = {location:?} is read already: name every file once");
                anyhow::ensure!(
                    !set.is_a_folder() || !place.is_file(),
                    "{key} = {location:?} is a file, but what is read with it lies beside it: name the folder"
                );
                all.push((part, place));
            }
        }
        Ok(Self { key, config: config.clone(), places: all })
    }

    pub(super) fn places(&self) -> Vec<&Place> {
        self.places.iter().map(|(_, place)| place).collect()
    }

    /// Writes the folder of examples and leaves facts.
    pub(super) fn write(&self, name: &str, context: &Context) -> anyhow::Result<()> {
        let set = self.config.format.set();
        let mut items: BTreeMap<Part, Vec<Item>> = BTreeMap::new();
        let mut funnel: Vec<Step> = vec![];
        let mut known = HashSet::new();
        for (part, place) in &self.places {
            for file in self.files(place, context)? {
                context.check()?;
                anyhow::ensure!(
                    known.insert(file.clone()),
                    "{}: {} is read already: name every file once",
                    place.label(),
                    file.display()
                );
                let of_part = items.entry(*part).or_default();
                let steps = set.read(&file, &mut |item| {
                    context.progress().add_rows(1);
                    of_part.push(item);
                })?;
                add(&mut funnel, steps);
            }
        }
        let plan = Plan {
            name,
            measure: self.config.measure.unwrap_or_else(|| set.measure()),
            negative_class: self.config.negative_class.as_deref().or(set.negative_class()),
            drawn: self.config.drawn,
        };
        let (examples, shared) =
            assemble(&items, plan).map_err(|error| anyhow::anyhow!("{}: {error}", self.key))?;
        let searched = self.config.drawn.mask_search > 0.0;
        for part in Part::ALL {
            anyhow::ensure!(
                (part == Part::MaskSearch && !searched) || !examples.of(part).is_empty(),
                "{}: no text is for {}, of {}: take more files, or another share in drawn",
                self.key,
                part.name(),
                examples.examples.len()
            );
        }
        context.check()?;
        let index = write::write(context.out(), &examples, self.config.licence, &funnel)?;
        classes::record(context, &index);
        context.record("measure", json!(index.measure));
        context.record("texts_also_trained_on", json!(shared));
        super::record(context, &[(name, &funnel)]);
        Ok(())
    }

    fn files(&self, place: &Place, context: &Context) -> anyhow::Result<Vec<PathBuf>> {
        let (path, set) = (place.path(context)?, self.config.format.set());
        let (endings, is_folder) = (set.extensions(), path.is_dir());
        anyhow::ensure!(
            is_folder || !set.is_a_folder(),
            "{}: {} is a file, but what is read with it lies beside it: name the folder",
            place.label(),
            path.display()
        );
        let mut found = folder::ending(&path, endings).with_context(|| place.label().to_owned())?;
        found.retain(|file| !is_folder || set.has_items(file));
        anyhow::ensure!(
            !found.is_empty(),
            "{}: no file below {} ends in {}, which is what the format looks for",
            place.label(),
            path.display(),
            endings.join(" or ")
        );
        Ok(found)
    }
}

/// Adds what became of a file to what became of those before it: a format has the same steps for each of its files.
fn add(funnel: &mut Vec<Step>, of_file: Vec<Step>) {
    if funnel.is_empty() {
        *funnel = of_file;
        return;
    }
    for (all, step) in funnel.iter_mut().zip(of_file) {
        all.keep(step.kept);
        step.dropped.iter().for_each(|(reason, count)| all.drop(reason, *count));
    }
}
