//! Published sets of texts with gold labels: where their files lie, what they look like, which are for what.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use base::whole::write_whole;
use downstream::example::schema::Licence;
use downstream::example::{Measure, Part, write};
use downstream::funnel::Step;
use downstream::set::Item;
use downstream::set::assemble::{Drawn, Plan, assemble};
use downstream::set::format::Format;
use downstream::set::glue::{Task, Unlabelled};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::super::folder;
use super::super::location::{Location, Place, Places};
use super::classes;
use super::listed::{Listed, Lists};
use crate::engine::context::Context;

/// The folder of rows without labels, within the artifact.
pub(crate) const UNLABELLED: &str = "unlabelled";

/// The table `[benchmarks.set]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// The file format, as published.
    pub format: Format,
    /// Files, or folders whose files with the format's extensions are all read, for training; none with `trained_on`.
    ///
    /// Source: none: it takes some to train on.
    #[serde(default, skip_serializing)]
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
    /// Test files without labels, of format `glue`: stage `submission` predicts them, each as the file that the leaderboard expects.
    ///
    /// Source: none: nothing is handed in.
    #[serde(default, skip_serializing)]
    pub unlabelled: Vec<Location>,
    /// Shares of the training data for other parts, rounded to whole documents, groups of pairs with the same first text, or rows where the file
    /// has no grouping (sentences, in CoNLL without documents); 0 where files are given.
    #[serde(default)]
    pub drawn: Drawn,
    /// Documents of `train` that are for other parts, by lists of their names, such as BLUE's ids for development.
    #[serde(default, skip_serializing_if = "Listed::is_empty")]
    pub listed: Listed,
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
    /// Parts that there must be examples of.
    needed: Vec<Part>,
    places: Vec<(Part, Place)>,
    /// Files elsewhere that are read with these.
    beside: Vec<Place>,
    /// Files without labels.
    unlabelled: Vec<Place>,
    /// Lists of documents.
    listed: Lists,
}

impl Config {
    /// Whether every number is in its range; `key` is where they stand.
    pub(super) fn ranges(&self, key: &str) -> anyhow::Result<()> {
        let has_files = |part| match part {
            Part::Dev => !self.dev.is_empty(),
            Part::Test => !self.test.is_empty(),
            Part::Train | Part::MaskSearch => false,
        };
        anyhow::ensure!(
            self.unlabelled.is_empty() || self.glue().is_some(),
            "{key}.unlabelled: predictions are handed in for GLUE, whose format is `glue`; other texts are predicted by `engraft predict`: leave it out"
        );
        for (part, _) in self.listed.all().iter().filter(|(_, list)| list.is_some()) {
            let Drawn { dev, test, mask_search, .. } = self.drawn;
            let share = [(Part::Dev, dev), (Part::Test, test), (Part::MaskSearch, mask_search)];
            let drawn = share.iter().any(|(of, share)| of == part && *share > 0.0);
            let name = part.name();
            anyhow::ensure!(
                !drawn,
                "{key}.listed.{name} names documents for {name}, which is drawn as well: set {key}.drawn.{name} = 0.0, also where a preset says otherwise"
            );
            anyhow::ensure!(
                !has_files(*part),
                "{key}.listed.{name} names documents for {name}, which has files as well: leave one of them out"
            );
        }
        self.drawn.check(has_files).map_err(|error| anyhow::anyhow!("{key}.drawn: {error}"))?;
        self.format.set().check().map_err(|error| anyhow::anyhow!("{key}.format: {error}"))
    }

    /// The task of GLUE that it is.
    pub(super) fn glue(&self) -> Option<Task> {
        if let Format::Glue(task) = self.format { Some(task) } else { None }
    }

    /// Whether it has a part on which a head mask can be searched.
    pub(super) fn has_mask_search(&self) -> bool {
        self.drawn.mask_search > 0.0 || self.listed.has(Part::MaskSearch)
    }
}

impl Source {
    /// `key` is the config's, for messages; `trained_on` the benchmark whose models are tried on this one.
    pub(super) fn new(
        config: &Config,
        trained_on: Option<&str>,
        key: &str,
        places: &Places<'_>,
    ) -> anyhow::Result<Self> {
        let mut needed = vec![Part::Train, Part::Dev, Part::Test];
        if let Some(on) = trained_on {
            let of_files =
                [("train", &config.train), ("dev", &config.dev), ("unlabelled", &config.unlabelled)];
            let other = of_files.into_iter().find(|(_, files)| !files.is_empty()).map(|(part, _)| part);
            let Drawn { dev, test, mask_search, .. } = config.drawn;
            let other = other.or((dev + test + mask_search > 0.0).then_some("drawn"));
            let other = other.or((!config.listed.is_empty()).then_some("listed"));
            if let Some(other) = other {
                anyhow::bail!(
                    "{key}.set.{other} is for models of its own, and {key}.trained_on names those of {on}: leave one of them out"
                );
            }
            needed = vec![Part::Test];
        }
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
        let (mut all, mut beside) = (vec![], vec![]);
        for (part, locations) in parts {
            let name = part.name();
            anyhow::ensure!(
                !locations.is_empty()
                    || drawn(part) > 0.0
                    || config.listed.has(part)
                    || !needed.contains(&part),
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
                for relative in set.beside(&place.name()) {
                    beside.push(place.relative(&relative).with_context(|| {
                        format!("{key} = {location:?} is read with {relative}: name the file of a folder with both, as published")
                    })?);
                }
                all.push((part, place));
            }
        }
        let unlabelled = config.unlabelled.iter().enumerate();
        let unlabelled = unlabelled.map(|(i, file)| file.place(&format!("{key}.unlabelled.{i}"), places));
        let unlabelled = unlabelled.collect::<anyhow::Result<_>>()?;
        let listed = Lists::new(&config.listed, &key, places)?;
        Ok(Self { key, config: config.clone(), needed, places: all, beside, unlabelled, listed })
    }

    pub(super) fn places(&self) -> Vec<&Place> {
        let places = self.places.iter().chain(&self.listed.places).map(|(_, place)| place);
        places.chain(&self.beside).chain(&self.unlabelled).collect()
    }

    /// Writes the folder of examples and leaves facts.
    pub(super) fn write(&self, name: &str, context: &Context) -> anyhow::Result<()> {
        let set = self.config.format.set();
        let mut items: BTreeMap<Part, Vec<Item>> = BTreeMap::new();
        let mut funnel: Vec<Step> = vec![];
        let (mut known, mut named) = (HashSet::new(), self.listed.named(context)?);
        for (part, place) in &self.places {
            for file in self.files(place, context)? {
                context.check()?;
                anyhow::ensure!(
                    known.insert(file.clone()),
                    "{}: {} is read already: name every file once",
                    place.label(),
                    file.display()
                );
                let name = to_first_dot(&file);
                items.entry(*part).or_default();
                let steps = set.read(&file, &mut |item| {
                    context.progress().add_rows(1);
                    let part = if *part == Part::Train { named.part(&item.group, &name) } else { *part };
                    items.entry(part).or_default().push(item);
                })?;
                add(&mut funnel, steps);
            }
        }
        self.listed.told(&named, context)?;
        let plan = Plan {
            name,
            measure: self.config.measure.unwrap_or_else(|| set.measure()),
            negative_class: self.config.negative_class.as_deref().or(set.negative_class()),
            drawn: self.config.drawn,
        };
        let (examples, shared) =
            assemble(&items, plan).map_err(|error| anyhow::anyhow!("{}: {error}", self.key))?;
        let searched = self.config.has_mask_search().then_some(Part::MaskSearch);
        for part in self.needed.iter().copied().chain(searched) {
            anyhow::ensure!(
                !examples.of(part).is_empty(),
                "{}: no text is for {}, of {}: take more files, or another share in drawn",
                self.key,
                part.name(),
                examples.examples.len()
            );
        }
        if let Some((id, times)) = &shared.repeated {
            context.warn(format!(
                "{}: {times} examples have an id that another of their part has (the first is {id:?}): they are called PART/ID, ID#2 and so on; give each its own where predictions are to be joined by ids",
                self.key
            ));
        }
        context.check()?;
        let unlabelled = self.write_unlabelled(context)?;
        let index = write::write(context.out(), &examples, self.config.licence, &funnel)?;
        classes::record(context, &index);
        classes::doubt(context, &self.key, &index, &shared)?;
        classes::missing(context, &self.key, set.wanted(), &index);
        context.record("measure", json!(index.measure));
        context.record("texts_also_trained_on", json!(shared));
        super::record(context, &[(name, &funnel), (UNLABELLED, &unlabelled)]);
        Ok(())
    }

    /// Writes the rows of each file without labels, called as its predictions are handed in.
    fn write_unlabelled(&self, context: &Context) -> anyhow::Result<Vec<Step>> {
        let Some(task) = self.config.glue().filter(|_| !self.unlabelled.is_empty()) else {
            return Ok(vec![]);
        };
        let mut funnel = vec![];
        let folder = context.out().join(UNLABELLED);
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        let mut named = HashSet::new();
        for place in &self.unlabelled {
            let file = place.path(context)?;
            let name = task.submission(&file);
            anyhow::ensure!(
                named.insert(name),
                "{}: its predictions would be handed in as {name}.tsv, as another file's: leave one out",
                place.label()
            );
            let mut rows: Vec<u8> = vec![];
            let mut written = Ok(());
            let mut steps = task.read_unlabelled(&file, &mut |row: Unlabelled| {
                context.progress().add_rows(1);
                if written.is_ok() {
                    written = serde_json::to_writer(&mut rows, &row);
                    rows.push(b'\n');
                }
            })?;
            written?;
            steps.iter_mut().for_each(|step| step.of = format!("rows of {name}"));
            funnel.extend(steps);
            write_whole(&folder.join(format!("{name}.jsonl")), &rows)?;
        }
        Ok(funnel)
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

/// The name of a file up to the first dot.
fn to_first_dot(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').next().unwrap_or_default().to_owned()
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
        step.mended.iter().for_each(|(how, count)| all.mend(how, *count));
    }
}
