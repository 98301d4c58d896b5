//! Stage `rank`: link prediction, relation prediction and triple classification on a held-out part.

mod classify;
mod config;
mod leaks;
mod score;
mod told;

use std::collections::BTreeMap;

use anyhow::Context as _;
use base::rng::RngKey;
use base::whole::write_whole;
use kg::split::Part;
use model::eval::link::Rank;
use rayon::iter::{IntoParallelRefIterator, ParallelExtend, ParallelIterator};
use tasks::builder::Form;
use tasks::link::write::{Candidate, Place};
use tasks::link::{Group, Question, Room, Stated, some, write};
use tasks::sample::Held;
use tasks::sample::{Slot, Triple};
use tasks::shard::items::Encoder;

use super::compute::Compute;
use super::encoder::Base;
use super::shards::{Made, Shards, longest_packed};
use super::split;
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::stage::{Input, Stage};
use config::By;
pub(crate) use config::Config;
use score::Scorer;

/// The name of the stage.
pub(crate) const NAME: &str = "rank";
/// All measures, within the artifact. Written last.
pub(crate) const SCORES: &str = "rank.json";
/// The same as tables to be read.
const TABLE: &str = "rank.md";
/// Where each entity stood that was asked for.
pub(crate) const RANKS: &str = "ranks.parquet";
/// Where each relation stood that was asked for.
pub(crate) const RELATIONS: &str = "relation_ranks.parquet";

/// The best candidates.
const BEST: &str = "candidates.parquet";

/// The stage.
#[derive(Debug)]
pub(crate) struct Ranking {
    /// What to ask, and of whom.
    pub config: Config,
    /// Where the model is.
    pub base: Base,
    /// The graph's names as the model reads them.
    pub shards: Shards,
    /// What counts as a leak between parts.
    pub split: split::Config,
    /// What it computes on.
    pub compute: Compute,
}

/// What questions are asked about.
struct Graph<'a> {
    made: &'a Made,
    corpus: &'a tasks::sample::Corpus<'a>,
    held: &'a [Held],
    stated: Stated,
}

impl Graph<'_> {
    /// The triples of a held-out part with their rows.
    fn part(&self, part: Part) -> (&[Triple], &[u32]) {
        let held = self.held.iter().find(|held| held.part == part);
        held.map_or((&[], &[]), |held| (&held.triples, &held.rows))
    }
}

impl Ranking {
    /// Asks for every slot of every triple, and says where the answers stand; sorted by triple and side.
    fn answers(
        &self,
        graph: &Graph<'_>,
        asked: &[(Triple, u32)],
        scorer: &dyn Scorer,
        given_away: &BTreeMap<u32, &'static str>,
        besides: usize,
        context: &Context,
    ) -> anyhow::Result<Vec<Answered>> {
        let room = Room {
            entities: u32::try_from(graph.corpus.entities.len())?,
            relations: u32::try_from(graph.corpus.relations.len())?,
            candidates: self.config.candidates,
            seed: self.seed("candidates"),
            together: scorer.together(),
        };
        let questions = self
            .config
            .slots
            .iter()
            .flat_map(|&slot| asked.iter().map(move |&(triple, row)| Question { slot, triple, row }));
        let groups = room.groups(questions.collect());
        context.record("questions", self.config.slots.len() * asked.len());
        context.record("triples_scored", groups.iter().map(Group::len).sum::<usize>());
        context.progress().unit("triples");
        context.progress().total_rows((groups.iter().map(Group::len).sum::<usize>() + besides) as u64);
        let (mut answers, mut from) = (vec![], 0);
        while from < groups.len() {
            let mut end = from + 1;
            let mut triples = groups[from].len();
            // Of one slot, so that a scorer knows what is asked.
            while let Some(next) = groups.get(end).filter(|next| next.slot == groups[from].slot) {
                if triples + next.len() > scorer.together() {
                    break;
                }
                triples += next.len();
                end += 1;
            }
            let together = &groups[from..end];
            let triples: Vec<Triple> = together.iter().flat_map(Group::triples).collect();
            let scores = scorer.scores(together[0].slot, &triples, context)?;
            let mut rest = &scores[..];
            let mut each = vec![];
            for group in together {
                let (own, others) = rest.split_at(group.len());
                each.extend((0..group.stems.len()).map(|stem| Stem { group, stem, scores: own }));
                rest = others;
            }
            let most = self.config.best as usize;
            answers.par_extend(each.par_iter().flat_map_iter(|stem| stem.answered(&graph.stated, most)));
            from = end;
        }
        for answer in &mut answers {
            answer.given_away = given_away.get(&answer.question.row).copied();
        }
        answers.sort_by_key(|answer| (answer.question.row, answer.question.slot));
        Ok(answers)
    }

    fn seed(&self, purpose: &str) -> RngKey {
        RngKey::new(self.config.seed).named("rank").named(purpose)
    }
}

/// A question and how it was answered.
#[derive(Debug, Clone)]
struct Answered {
    question: Question,
    /// Where the answer stands without other true ones.
    filtered: Rank,
    /// Where it stands with them.
    raw: Rank,
    score: f32,
    /// How a shown triple gives the answer away, if one does.
    given_away: Option<&'static str>,
    /// The best candidates.
    best: Vec<Candidate>,
}

impl Answered {
    /// As it is stored.
    fn stored(&self) -> write::Answered {
        let place =
            |rank: Rank| Place { rank: rank.realistic(), candidates: rank.candidates, ties: rank.ties };
        let Self { question, filtered, raw, score, given_away, .. } = *self;
        write::Answered { question, filtered: place(filtered), raw: place(raw), score, given_away }
    }
}

/// Tokens of the longest row of a triple; refuses what is longer than the encoder's positions.
pub(super) fn room(encoder: &Encoder, positions: usize) -> anyhow::Result<usize> {
    let (layout, family) = (encoder.layout, encoder.special.family);
    let (entities, relations) = (&encoder.entities.counts, &encoder.relations.counts);
    let longest = match layout.form {
        Form::Slotted => layout.longest(family),
        Form::Packed => longest_packed(layout.limits, entities, relations, family),
    };
    anyhow::ensure!(
        longest <= positions,
        "the row of a triple may have {longest} tokens, and the encoder has {positions} positions: lower shards.layout.limits.node and edge"
    );
    Ok(longest)
}

/// Questions that differ in their answers alone.
struct Stem<'a> {
    group: &'a Group,
    stem: usize,
    /// Of the whole group.
    scores: &'a [f32],
}

impl Stem<'_> {
    /// Where the answer of each question stands among the candidates; the `most` best of these.
    fn answered(&self, stated: &Stated, most: usize) -> Vec<Answered> {
        let candidates: Vec<(Triple, f32, bool)> = (self.group.answers(self.stem, self.scores))
            .map(|(triple, score)| (triple, score, stated.has(triple)))
            .collect();
        let best = best(self.group.slot, &candidates, most);
        let of_stem = self.group.questions.iter().filter(|(_, stem)| *stem == self.stem);
        let answered = of_stem.map(|&(question, _)| {
            let others = || candidates.iter().filter(|(triple, ..)| *triple != question.triple);
            let own = candidates.iter().find(|(triple, ..)| *triple == question.triple);
            let score = own.map_or(f32::NEG_INFINITY, |(_, score, _)| *score);
            let raw = Rank::of(score, others().map(|(_, score, _)| *score));
            let filtered =
                Rank::of(score, others().filter(|(.., stated)| !stated).map(|(_, score, _)| *score));
            Answered { question, filtered, raw, score, given_away: None, best: best.clone() }
        });
        answered.collect()
    }
}

/// The best `most` of a question's candidates.
fn best(slot: Slot, candidates: &[(Triple, f32, bool)], most: usize) -> Vec<Candidate> {
    if most == 0 {
        return vec![];
    }
    let mut all = candidates.to_vec();
    all.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
    all.truncate(most);
    let stored =
        all.into_iter().map(|(triple, score, stated)| Candidate { id: triple[slot as usize], score, stated });
    stored.collect()
}

impl Stage for Ranking {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> u32 {
        1
    }

    fn describe(&self, to: &mut dyn Describe) {
        describe::config(to, "rank", &self.config);
        describe::config(to, "shards.layout", &self.shards.config.layout);
        describe::config(to, "vocabulary.case", &self.shards.case);
        describe::config(to, "split.suspect.share", &self.split.suspect.share);
        describe::config(to, "split.suspect.support", &self.split.suspect.support);
        describe::config(to, "split.together", &self.split.together);
        describe::config(to, "split.parts", &self.split.parts);
        self.base.describe(to);
        self.compute.describe(to);
        self.shards.vocabulary.describe(to);
    }

    fn begins_with(&self) -> Option<String> {
        Some(self.base.name())
    }

    fn computes_on(&self) -> Option<String> {
        Some(self.compute.told())
    }

    fn inputs(&self) -> Vec<Input> {
        let mut inputs = vec![Input::artifact("triples"), Input::artifact("split")];
        for input in self.shards.vocabulary.inputs().into_iter().chain([self.base.input()]) {
            if !inputs.contains(&input) {
                inputs.push(input);
            }
        }
        inputs
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let made = Made::of_graph(context, &self.shards)?;
        let (corpus, held) = made.corpus()?;
        let stated = Stated::new(&corpus, self.config.same);
        let graph = Graph { made: &made, corpus: &corpus, held: &held, stated };
        let (triples, rows) = graph.part(self.config.part.part());
        anyhow::ensure!(
            !triples.is_empty(),
            "the part {} has no triple to ask for: give split.parts a share for it (where it has one, all triples went elsewhere that belong together: another split seed), or name another part (rank.part)",
            self.config.part.part()
        );
        let asked = some(rows, self.config.max_triples, self.seed("triples"));
        let asked: Vec<(Triple, u32)> =
            asked.into_iter().map(|place| (triples[place], rows[place])).collect();
        let leaks = leaks::found(context, &made, &self.split)?;
        leaks::warn(context, &asked, &leaks, &self.config);
        let encoder = Encoder::new(&corpus, &made.vocabulary, self.shards.config.layout)?;
        let folder = self.base.folder(context)?;
        self.shards.vocabulary.belongs(&made.vocabulary, &folder)?;
        let device = self.compute.device(context)?;
        let sizes = model::checkpoint::sizes(&folder)?;
        super::encoder::fits(made.vocabulary.size(), made.vocabulary.special(), &sizes)?;
        room(&encoder, sizes.max_position_embeddings)?;
        let samples = (self.config.classification)
            .then(|| classify::Drawn::new(self, &graph, &asked, context))
            .transpose()?
            .flatten();
        let scorer = score::scorer(&self.config, &folder, &device, &encoder)
            .with_context(|| format!("rank.by is {:?}", self.config.by.name()))?;
        let besides = samples.as_ref().map_or(0, classify::Drawn::len);
        let answers = self.answers(&graph, &asked, &*scorer, &leaks, besides, context)?;
        let classified =
            samples.map(|samples| classify::classified(self.config.by, &samples, &*scorer, context));
        let classified = classified.transpose()?;
        if self.config.best > 0 {
            let of = answers.iter().map(|answer| (answer.question, answer.best.as_slice()));
            write::write_candidates(&context.out().join(BEST), of)?;
        }
        let (relations, entities): (Vec<Answered>, Vec<Answered>) =
            answers.into_iter().partition(|answer| answer.question.slot == Slot::Relation);
        let of = told::Of {
            config: &self.config,
            model: self.base.name(),
            graph: &made.graph,
            triples: asked.len(),
            leaks: &leaks,
            asked: &asked,
        };
        let (scores, table) = told::told(&of, &entities, &relations, classified.as_ref())?;
        for (file, answers) in [(RANKS, &entities), (RELATIONS, &relations)] {
            if !answers.is_empty() {
                write::write(
                    &context.out().join(file),
                    &answers.iter().map(Answered::stored).collect::<Vec<_>>(),
                )?;
            }
        }
        write_whole(&context.out().join(TABLE), table.as_bytes())?;
        write_whole(&context.out().join(SCORES), &serde_json::to_vec_pretty(&scores)?)?;
        context.record("scores", told::brief(&scores));
        Ok(())
    }

    fn inspect(&self, file: &std::path::Path) -> anyhow::Result<Vec<String>> {
        super::triples::inspect_parquet(file)
    }
}

#[cfg(test)]
mod tests;
