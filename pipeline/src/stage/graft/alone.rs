//! What an encoder comes to without grafting: fine-tuned as it is, with other attentions, on several benchmarks together; and one table of it all.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use downstream::example::Kind;
use model::device::Recompute;

use super::Row;
use super::around::{Around, stage_name, submission};
use super::best::Candidates;
use crate::engine::stage::Stage;
use crate::stage::benchmark as tried;
use crate::stage::encoder::Base;
use crate::stage::finetune::attention::{self, Attending, Kept};
use crate::stage::finetune::measure::metrics;
use crate::stage::finetune::quirks::{PairOrder, Quirks, TrainOn};
use crate::stage::finetune::scored::{Scored, Trained};
use crate::stage::finetune::{Chosen, Finetune, Looked, Tried};
use crate::stage::maps::benchmark::OfBenchmark;
use crate::stage::scores::{self, Compared, Whose};
use crate::stage::submission::HandedIn;

/// Names of rows that are no attention's and no recipe's.
const TAKEN: [&str; 2] = ["alone", "base"];

impl Around<'_> {
    /// The fine-tunings of the encoder as it is, and a table of their scores.
    ///
    /// # Errors
    /// When there is nothing to be tried on, or a setting is invalid.
    pub(crate) fn alone(&self) -> anyhow::Result<Vec<Box<dyn Stage>>> {
        let names: Vec<&str> = self.benchmarks.iter().map(String::as_str).collect();
        anyhow::ensure!(
            !names.is_empty(),
            "[finetune] has nothing to be tried on: add a table [[benchmarks]]"
        );
        self.finetuning.check(&names)?;
        self.check_trained_on()?;
        self.check_quirks()?;
        self.by_itself().iter().try_for_each(|benchmark| self.room(&self.tried(benchmark)))?;
        let mut stages = self.finetunings(Row::Base, &|_| self.base.clone());
        let mut compared: Vec<Compared> = vec![];
        for benchmark in self.by_itself() {
            let (how, whose) = ("alone".to_owned(), Whose::One);
            let stages = self.candidates(Row::Base, benchmark).stages;
            let (benchmark, began_with) = (benchmark.clone(), vec![self.base.name()]);
            compared.push(Compared { how, benchmark, began_with, stages, whose });
        }
        let of_base = |benchmark: &String| {
            self.handed_in("base", self.tried(benchmark), self.candidates(Row::Base, benchmark))
        };
        let mut handed: Vec<HandedIn> = self.trained().filter_map(of_base).collect();
        self.check_names()?;
        for benchmark in self.trained() {
            let (tried, chosen) = (self.tried(benchmark), self.chosen(Row::Base, benchmark));
            stages.extend(self.curve("alone", "base", &tried, &chosen, &mut compared));
        }
        for attention in self.attentions {
            stages.extend(self.attention(attention, &mut compared, &mut handed)?);
        }
        for recipe in self.recipes {
            recipe.check(&names)?;
            self.check_turns(recipe)?;
            stages.extend(match recipe.pairwise {
                true => self.pairs(recipe)?,
                false => self.recipe(recipe, &mut compared)?,
            });
        }
        stages.extend(submission(handed));
        let mapped = self.mapped()?;
        stages.splice(0..0, mapped);
        compared.sort_by_key(|of| self.benchmarks.iter().position(|name| *name == of.benchmark));
        stages.push(Box::new(scores::Table { of: compared }));
        Ok(stages)
    }

    /// The stages that make the maps of the benchmarks on which something attends by them.
    fn mapped(&self) -> anyhow::Result<Vec<Box<dyn Stage>>> {
        let trained: Vec<String> = self.trained().cloned().collect();
        let mut stages: BTreeMap<String, Box<dyn Stage>> = BTreeMap::new();
        // The benchmarks whose annotations something reads.
        let mut read: BTreeSet<String> = BTreeSet::new();
        for attention in &self.attentions.iter().filter(|of| of.has_maps()).collect::<Vec<_>>() {
            let on = attention.benchmarks(self.tables, &trained, &self.finetuning.fixed)?;
            let mut named: BTreeSet<String> = on.into_iter().map(str::to_owned).collect();
            let recipes = self.recipes.iter().filter(|of| of.attention.as_ref() == Some(&attention.name));
            named.extend(recipes.flat_map(|recipe| recipe.tasks.iter().cloned()));
            let too: Vec<String> = named.iter().flat_map(|on| self.tried_too(on).cloned()).collect();
            named.extend(too);
            for benchmark in named {
                let table = self.table(&benchmark)?;
                let parsed = self.parsed.get(&benchmark);
                // Whether its own texts have what the maps take, whosever models are tried on it.
                let attending = attention.attending(table, self.mapping.as_ref(), parsed);
                let (mapping, kept) = match attending.with_context(|| benchmark.clone())? {
                    Attending::Knowledge(_, mapping, kept) => (mapping, kept),
                    Attending::Plain | Attending::Labels(..) => continue,
                };
                if kept == Kept::WithTexts {
                    read.extend(mapping.parsed().map(|_| benchmark));
                    continue;
                }
                let (fixed, parsed) = (self.tried(&benchmark).fixed, parsed.cloned());
                let stage =
                    OfBenchmark::new(&benchmark, mapping, fixed.max_tokens, fixed.quirks.pairs, parsed);
                read.insert(benchmark.clone());
                stages.insert(benchmark, Box::new(stage));
            }
        }
        let takes_marks = self.mapping.as_ref().is_some_and(|mapping| mapping.takes_marks());
        for table in self.tables.iter().filter(|table| table.parsed.is_some()) {
            anyhow::ensure!(
                takes_marks && read.contains(&table.name),
                "benchmarks.{}.parsed is read by nothing: {}",
                table.name,
                if takes_marks {
                    "no attention goes by maps of its texts as they stand; leave it out"
                } else {
                    "maps.entities or maps.phrases = \"marked\" takes what it says; set one, or leave it out"
                }
            );
        }
        Ok(stages.into_values().collect())
    }

    /// Refuses names of attentions and recipes that would give two stages, or two rows of the table, one name.
    fn check_names(&self) -> anyhow::Result<()> {
        let attentions = self.attentions.iter().map(|of| ("attentions", &of.name));
        let names: Vec<_> = attentions.chain(self.recipes.iter().map(|of| ("recipes", &of.name))).collect();
        for (place, (table, name)) in names.iter().enumerate() {
            anyhow::ensure!(
                tried::can_name_a_stage(name) && !TAKEN.contains(&name.as_str()),
                "{table}.name = {name:?}: expected lower-case letters, digits, - and _, and neither `alone` nor `base`, for stages are called by it"
            );
            let twice = names[..place].iter().any(|(_, other)| other == name);
            anyhow::ensure!(
                !twice,
                "{table}.name = {name:?} stands twice among attentions and recipes: give each its own name"
            );
        }
        Ok(())
    }

    /// The table of a benchmark.
    pub(super) fn table(&self, name: &str) -> anyhow::Result<&tried::Config> {
        let found = self.tables.iter().find(|of| of.name == name);
        found.with_context(|| format!("there is no benchmark {name}"))
    }

    /// The fine-tunings with another attention; what they lead to is added to `compared`, and to `handed` what is handed in of it.
    fn attention(
        &self,
        attention: &attention::Config,
        compared: &mut Vec<Compared>,
        handed: &mut Vec<HandedIn>,
    ) -> anyhow::Result<Vec<Box<dyn Stage>>> {
        let mut stages: Vec<Box<dyn Stage>> = vec![];
        if let Some((name, on)) =
            attention.on.iter().flatten().find_map(|of| Some((of, self.trained_on(of)?)))
        {
            anyhow::bail!(
                "attentions.{}.on has {name:?}, which is tried wherever {on} is trained on: leave it out",
                attention.name
            );
        }
        anyhow::ensure!(
            !attention.has_maps() || self.compute.recompute == Recompute::None,
            "compute.recompute is layers, and attentions.{} goes by maps, which one layer hands to the next: leave one of them out",
            attention.name
        );
        let trained: Vec<String> = self.trained().cloned().collect();
        for benchmark in attention.benchmarks(self.tables, &trained, &self.finetuning.fixed)? {
            let attending = attention.attending(
                self.table(benchmark)?,
                self.mapping.as_ref(),
                self.parsed.get(benchmark),
            )?;
            let tried = Tried { attending, ..self.tried(benchmark) };
            self.room(&tried)?;
            let (how, chosen) = (attention.name.clone(), self.chosen(Row::Base, benchmark));
            let seeds = self.finetuning.seeds.iter();
            let stages_of = seeds.map(|&seed| stage_name(&attention.name, benchmark, seed)).collect();
            handed.extend(self.handed_in(&attention.name, tried.clone(), Candidates { stages: stages_of }));
            stages.extend(self.curve(&how, &attention.name, &tried, &chosen, compared));
            stages.extend(self.by_seed(
                how,
                &attention.name,
                &tried,
                &chosen,
                |_| self.base.clone(),
                compared,
            ));
        }
        Ok(stages)
    }

    /// Refuses what a reference code does otherwise where a benchmark is of another kind.
    pub(super) fn check_quirks(&self) -> anyhow::Result<()> {
        let Quirks { pairs, train, .. } = self.finetuning.fixed.quirks;
        let told = [
            (pairs != PairOrder::AsGiven, "pairs turns the pairs of sets round"),
            (
                train == TrainOn::TrainAndDev,
                "train is train_and_dev, which is for sets of classes, numbers and tags",
            ),
        ];
        let ranking =
            self.tables.iter().find(|of| matches!(of.kind(), None | Some(Kind::Choice | Kind::Span)));
        if let (Some(ranking), Some((_, what))) = (ranking, told.iter().find(|(said, _)| *said)) {
            anyhow::bail!(
                "finetune.quirks.{what}, and {} asks for {}: take one of them into a config of its own",
                ranking.name,
                if ranking.kind() == Some(Kind::Span) { "spans of passages" } else { "one of several texts" }
            );
        }
        let trained_on = |name: &String| {
            self.by_itself().contains(name) || self.recipes.iter().any(|recipe| recipe.tasks.contains(name))
        };
        if let Some(measure) = &self.finetuning.fixed.patience.measure {
            for of in self.tables.iter().filter(|of| trained_on(&of.name)) {
                let metrics = metrics(of.kind());
                anyhow::ensure!(
                    metrics.contains(&measure.as_str()),
                    "finetune.patience.measure is {measure:?}, which {} does not have, expected one of {}",
                    of.name,
                    metrics.join(", ")
                );
            }
        }
        let tagged = self.tables.iter().filter(|of| of.kind() == Some(Kind::Tags));
        let mut tagged = tagged.filter(|of| trained_on(&of.name));
        tagged.try_for_each(|of| {
            let fixed = self.finetuning.fixed.of(&of.name);
            fixed.quirks.check_rows(fixed.max_tokens, &of.name)
        })
    }

    /// A row of the table, `how`: the fine-tunings that are called by `name`, one for each seed, and what each begins with.
    pub(super) fn by_seed(
        &self,
        how: String,
        name: &str,
        tried: &Tried,
        chosen: &Chosen,
        base: impl Fn(&u64) -> Base,
        compared: &mut Vec<Compared>,
    ) -> Vec<Box<dyn Stage>> {
        let stage_of = |seed: &u64| stage_name(name, &tried.name, *seed);
        let seeds = &self.finetuning.seeds;
        let (benchmark, stages) = (tried.name.clone(), seeds.iter().map(stage_of).collect());
        let mut began_with: Vec<String> = seeds.iter().map(|seed| base(seed).name()).collect();
        began_with.dedup();
        let trained = Compared { how, benchmark, began_with, stages, whose: Whose::One };
        let elsewhere =
            self.elsewhere(&trained, tried, |other, seed| stage_name(name, other, seed), compared);
        compared.push(trained);
        let stage = |seed: &u64| {
            Box::new(Finetune {
                name: stage_of(seed),
                tried: tried.clone(),
                base: base(seed),
                chosen: chosen.clone(),
                seed: *seed,
                looked: Looked::DevAndTest,
            }) as Box<dyn Stage>
        };
        seeds.iter().map(stage).chain(elsewhere).collect()
    }

    /// The same on each share of the training examples that `finetune.curve` has.
    fn curve(
        &self,
        how: &str,
        name: &str,
        tried: &Tried,
        chosen: &Chosen,
        compared: &mut Vec<Compared>,
    ) -> Vec<Box<dyn Stage>> {
        let mut stages = vec![];
        for share in &self.finetuning.curve {
            let mut tried = tried.clone();
            tried.fixed.max_examples.train_share = Some(*share);
            // To eight digits: 0.07 is 7 %, and not 7.000000000000001.
            let percent = (share * 1e10).round() / 1e8;
            let (how, name) =
                (format!("{how}, {percent} %"), format!("{name}-{percent}pct").replace('.', "_"));
            stages.extend(self.by_seed(how, &name, &tried, chosen, |_| self.base.clone(), compared));
        }
        stages
    }

    /// The stages that try models, those of the row `trained`, on the benchmarks which have none of their own; what they lead to is added to `compared`.
    /// `stage_of` names them by benchmark and seed, `tried` is what the models were trained on.
    pub(super) fn elsewhere(
        &self,
        trained: &Compared,
        tried: &Tried,
        stage_of: impl Fn(&str, u64) -> String,
        compared: &mut Vec<Compared>,
    ) -> Vec<Box<dyn Stage>> {
        let mut stages: Vec<Box<dyn Stage>> = vec![];
        for other in self.tried_too(&trained.benchmark) {
            let seeds = &self.finetuning.seeds;
            let names: Vec<String> = seeds.iter().map(|&seed| stage_of(other, seed)).collect();
            for ((name, stage), &seed) in names.iter().zip(&trained.stages).zip(seeds) {
                let (stage, on, whose) = (stage.clone(), trained.benchmark.clone(), trained.whose);
                stages.push(Box::new(Scored {
                    name: name.clone(),
                    tried: Tried {
                        attending: tried.attending.on_texts(self.parsed.get(other)),
                        ..self.tried(other)
                    },
                    model: Trained { stage, on, whose, pruned: None },
                    seed,
                }));
            }
            let (benchmark, whose) = (other.clone(), Whose::One);
            compared.push(Compared { benchmark, stages: names, whose, ..trained.clone() });
        }
        stages
    }
}
