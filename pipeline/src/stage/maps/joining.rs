//! Stage `maps` of a corpus in parts: puts together what the stages of the parts made.

use std::path::{Path, PathBuf};

use tasks::maps::config::Config as Samples;
use tasks::maps::join::{Into, Stretch, join};
use tasks::maps::{hub, index::Index};
use tasks::shard::file::Size;

use super::judge::Marks;
use super::told::{Linked, warn_of_nothing};
use super::{Mapping, NAME, STAGE_VERSION, record};
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::stage::{Input, Stage};
use crate::stage::corpus::{Corpus, Told, part_name};

/// The stage.
#[derive(Debug)]
pub(crate) struct Joining {
    corpus: Corpus,
    size: Size,
    items_per_group: usize,
    /// The stages of the parts.
    parts: Vec<String>,
    /// What these look for.
    samples: Samples,
}

impl Mapping {
    /// The stages that make the maps of its corpus: itself, or one for each part and one that joins them.
    #[must_use]
    pub(crate) fn stages(self, parts: Option<&[Corpus]>) -> Vec<Box<dyn Stage>> {
        let Some(parts) = parts else { return vec![Box::new(self)] };
        let names: Vec<String> = (1..=parts.len()).map(|number| part_name(NAME, number)).collect();
        let mut stages: Vec<Box<dyn Stage>> = Vec::new();
        for (name, corpus) in names.iter().zip(parts) {
            let (config, vocabulary) = (self.config.clone(), self.vocabulary.clone());
            stages.push(Box::new(Self {
                name: name.clone(),
                config,
                corpus: corpus.clone(),
                vocabulary,
                parsed: None,
            }));
        }
        stages.push(Box::new(Joining {
            corpus: self.corpus,
            size: self.config.size,
            items_per_group: self.config.items_per_group,
            parts: names,
            samples: self.config.samples,
        }));
        stages
    }
}

impl Stage for Joining {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> u32 {
        STAGE_VERSION
    }

    fn describe(&self, to: &mut dyn Describe) {
        describe::config(to, "maps.size", &self.size);
        describe::config(to, "maps.items_per_group", &self.items_per_group);
    }

    fn inputs(&self) -> Vec<Input> {
        self.parts.iter().map(Input::artifact).collect()
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let (folders, told) = Told::of_parts(context, &self.parts)?;
        let stretch =
            |(folder, told): (&PathBuf, &Told)| Stretch { folder: folder.clone(), documents: told.kept() };
        let parts: Vec<Stretch> = folders.iter().zip(&told).map(stretch).collect();
        let progress = context.progress();
        progress.unit("documents");
        let into = Into { folder: context.out(), size: self.size, items_per_group: self.items_per_group };
        let mut watch = |documents| {
            progress.add_rows(documents);
            Ok(context.check()?)
        };
        let mut index: Index = join(&parts, into, &mut watch)?;
        let told = Told::joined(told);
        told.check(&self.corpus)?;
        told.record(context);
        for (part, counts) in &index.texts {
            record(context, counts, index.part(*part).map_or(0, |part| part.tokens));
            // Each part says for itself how words were linked.
            warn_of_nothing(context, &self.samples, counts, Linked::Some);
        }
        Marks::of_parts(&folders)?.record(context);
        hub::write(context.out(), &index)?;
        index.write(context.out())?;
        Ok(())
    }

    fn inspect(&self, file: &Path) -> anyhow::Result<Vec<String>> {
        crate::stage::triples::inspect_parquet(file)
    }
}
