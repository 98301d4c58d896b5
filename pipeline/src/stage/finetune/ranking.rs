//! Ranking passages for queries, as a benchmark: a right passage and wrong ones to learn from, lists of candidates to be tried on.

use std::collections::BTreeMap;
use std::ops::Range;

use base::rng::RngKey;
use downstream::capr::PassageId;
use downstream::capr::part::Part as Held;
use downstream::capr::read::Folder;
use downstream::capr::training::Trainer;
use downstream::capr::{Collection, QueryId, Wording};
use downstream::encode::{Frame, Framed, Texts as Encoded};
use downstream::example::Part;
use model::eval::retrieval::{self, Query};
use model::output::{Anchor, Batch, Group, Output, Targets};
use serde_json::json;
use tasks::token::encode::Vocabulary;

use super::benchmark::{Benchmark, Score, drawn, only};
use super::config::{Fixed, NegativesFrom, Scorer};
use super::known::Known;
use crate::bundle::task_file::Asked;
use crate::engine::context::Context;

/// The ranks that recall is said at.
const AT: [usize; 3] = [1, 5, 10];

/// In front of the number of a query, which is none of a passage.
const QUERIES: u64 = 1 << 32;

/// A collection's texts as tokens.
struct Texts {
    folder: Folder,
    queries: Encoded,
    passages: Encoded,
}

/// Both collections of a benchmark.
pub(super) struct Ranking {
    /// What is trained on; none where the models of another benchmark are tried.
    train: Option<Texts>,
    test: Texts,
    /// The queries that are trained on, rising.
    items: Vec<QueryId>,
    /// Those that are looked at, by part.
    looked: BTreeMap<Part, Vec<QueryId>>,
    output: Output,
    negatives: usize,
    negatives_from: NegativesFrom,
    seed: RngKey,
    /// Of the wrong passages that heads are measured by: the same for every model.
    probed: RngKey,
    frame: Frame,
    /// What is known of texts, where heads attend by it.
    known: Option<Known>,
    wording: Wording,
}

impl Texts {
    fn new(folder: Folder, vocabulary: &Vocabulary, fixed: &Fixed) -> anyhow::Result<Self> {
        let Collection { queries, passages, .. } = &folder.collection;
        let queries: Vec<String> = queries.iter().map(|query| query.text(fixed.ranking.wording)).collect();
        let queries: Vec<&str> = queries.iter().map(String::as_str).collect();
        let passages: Vec<&str> = passages.iter().map(|passage| passage.text.as_str()).collect();
        let queries = Encoded::new(vocabulary, &queries, fixed.max_tokens)?;
        let passages = Encoded::new(vocabulary, &passages, fixed.max_tokens)?;
        Ok(Self { folder, queries, passages })
    }

    fn queries(&self, part: Held) -> Vec<QueryId> {
        self.folder.parts.queries(&self.folder.collection, part)
    }
}

impl Ranking {
    /// Encodes what a benchmark's stage wrote, to be trained on with `seed`.
    ///
    /// # Errors
    /// When a text cannot be encoded.
    pub(super) fn new(
        name: &str,
        train: Option<Folder>,
        test: Folder,
        vocabulary: &Vocabulary,
        fixed: &Fixed,
        seed: u64,
    ) -> anyhow::Result<Self> {
        let train = train.map(|train| Texts::new(train, vocabulary, fixed)).transpose()?;
        let test = Texts::new(test, vocabulary, fixed)?;
        let of_train = |part: Held| train.as_ref().map_or_else(Vec::new, |train| train.queries(part));
        let most = &fixed.max_examples;
        let of = |part: Part, queries: Vec<QueryId>, most: usize| -> Vec<QueryId> {
            let places = drawn((0..queries.len()).collect(), most, name, part.name());
            places.into_iter().map(|place| queries[place]).collect()
        };
        let looked = [
            (Part::Dev, of(Part::Dev, of_train(Held::Dev), most.dev)),
            (Part::MaskSearch, of(Part::MaskSearch, test.queries(Held::MaskSearch), most.mask_search)),
            (Part::Test, of(Part::Test, test.queries(Held::Main), most.test)),
        ];
        let trained = of_train(Held::Main);
        let most = most.of_train(trained.len());
        Ok(Self {
            items: of(Part::Train, trained, most),
            looked: looked.into(),
            train,
            test,
            output: match fixed.ranking.scorer {
                Scorer::CrossEncoder => Output::Rank { loss: fixed.ranking.loss },
                Scorer::BiEncoder => Output::Embedding { scale: fixed.ranking.scale },
            },
            negatives: fixed.ranking.negatives,
            negatives_from: fixed.ranking.negatives_from,
            seed: RngKey::new(seed).named("ranking"),
            probed: RngKey::new(0).named("probed").named(name),
            frame: fixed.frame(vocabulary),
            known: None,
            wording: fixed.ranking.wording,
        })
    }

    /// The same, by what is known of texts; `name` is the benchmark's.
    ///
    /// # Errors
    /// When an annotator's texts are none of it.
    pub(super) fn knowing(self, known: Option<Known>, name: &str, context: &Context) -> anyhow::Result<Self> {
        if let Some(known) = &known {
            let of = |texts: &Texts| -> Vec<String> {
                let Collection { queries, passages, .. } = &texts.folder.collection;
                let queries = queries.iter().map(|query| query.text(self.wording));
                queries.chain(passages.iter().map(|passage| passage.text.clone())).collect()
            };
            known.covered(name, || self.train.iter().chain([&self.test]).flat_map(of), context)?;
        }
        Ok(Self { known, ..self })
    }

    fn texts(&self, part: Part) -> &Texts {
        match part {
            // Without what is trained on there is no query of these parts.
            Part::Train | Part::Dev => self.train.as_ref().unwrap_or(&self.test),
            Part::MaskSearch | Part::Test => &self.test,
        }
    }

    fn looked(&self, part: Part) -> &[QueryId] {
        self.looked.get(&part).map_or(&[], Vec::as_slice)
    }

    /// A query that is looked at, with its list of candidates.
    fn listed(&self, part: Part, sample: usize) -> (&Texts, Sample) {
        let (texts, query) = (self.texts(part), self.looked(part)[sample]);
        let passages = texts.folder.lists[query.0 as usize].passages.clone();
        (texts, Sample { query, passages })
    }

    /// Whether queries and passages are rows of their own.
    fn is_bi(&self) -> bool {
        matches!(self.output, Output::Embedding { .. })
    }

    /// Adds the rows of a query with passages: one for each, or the query's and then theirs.
    fn rows(&self, texts: &Texts, sample: &Sample, rows: &mut Framed) -> anyhow::Result<()> {
        if let Some(known) = &self.known {
            let all = 0..usize::from(self.is_bi()) + sample.passages.len();
            return self.known_rows(known, texts, sample, all, rows);
        }
        let Sample { query, passages } = sample;
        let query = texts.queries.get(query.0 as usize);
        if self.is_bi() {
            rows.single(query);
        }
        for passage in passages {
            match self.is_bi() {
                true => rows.single(texts.passage(*passage)),
                false => rows.pair(query, texts.passage(*passage)),
            }
        }
        Ok(())
    }

    /// Adds `some` of the same rows with what is known of their words.
    fn known_rows(
        &self,
        known: &Known,
        texts: &Texts,
        Sample { query, passages }: &Sample,
        some: Range<usize>,
        rows: &mut Framed,
    ) -> anyhow::Result<()> {
        let collection = &texts.folder.collection;
        let query = collection.query(*query).text(self.wording);
        let passages = passages.iter().map(|passage| collection.passage(*passage).text.as_str());
        let query = query.as_str();
        let of: Vec<(&str, Option<&str>)> = match self.is_bi() {
            true => {
                let texts = std::iter::once(query).chain(passages).map(|text| (text, None));
                texts.skip(some.start).take(some.len()).collect()
            }
            false => passages.map(|text| (query, Some(text))).skip(some.start).take(some.len()).collect(),
        };
        known.push(&of, rows)
    }

    /// Samples whose first passage is the right one, as a batch.
    fn told(&self, texts: &Texts, samples: &[Sample]) -> anyhow::Result<Batch> {
        let mut rows = Framed::new(self.frame)?;
        samples.iter().try_for_each(|sample| self.rows(texts, sample, &mut rows))?;
        let group = |sample: &Sample| Group { rows: sample.passages.len(), right: 0 };
        let targets = match self.is_bi() {
            true => Targets::Anchors(texts.anchors(samples)),
            false => Targets::Groups(samples.iter().map(group).collect()),
        };
        Ok(only(rows.rows, targets))
    }
}

/// A sample of queries: what is read for each.
struct Sample {
    query: QueryId,
    /// The right one first, where there is one right one.
    passages: Vec<PassageId>,
}

impl Texts {
    fn passage(&self, passage: PassageId) -> &[u32] {
        self.passages.get(passage.0 as usize)
    }

    /// Whether a passage answers a query, or has the text of one that does.
    fn answers(&self, query: QueryId, passage: PassageId) -> bool {
        let collection = &self.folder.collection;
        let text = |passage: PassageId| collection.passage(passage).text.as_str();
        let mut right = collection.query(query).relevant.iter();
        right.any(|right| *right == passage || text(*right) == text(passage))
    }

    /// What a softmax over the batch is told of some samples, whose rows are one query's and then its passages'.
    fn anchors(&self, samples: &[Sample]) -> Vec<Anchor> {
        let passages: Vec<&[PassageId]> = samples.iter().map(|sample| &*sample.passages).collect();
        Anchor::of_samples(&passages, |at, passage| self.answers(samples[at].query, *passage))
    }
}

impl Benchmark for Ranking {
    fn output(&self) -> &Output {
        &self.output
    }

    fn asked(&self) -> Asked {
        if self.is_bi() { Asked::Similarity } else { Asked::Rank }
    }

    fn pairs(&self) -> bool {
        true
    }

    fn classes(&self) -> &[String] {
        &[]
    }

    fn items(&self) -> usize {
        self.items.len()
    }

    fn batch(&self, epoch: u64, items: &[usize]) -> anyhow::Result<Batch> {
        let train = self.texts(Part::Train);
        let Folder { collection, parts, lists, .. } = &train.folder;
        let trainer = Trainer::new(collection, parts, Held::Main, self.negatives, self.seed);
        let trainer = match self.negatives_from {
            NegativesFrom::Documents => trainer,
            NegativesFrom::Candidates => trainer.hard(lists),
        };
        let sample = |item: &usize| {
            let query = self.items[*item];
            let found = trainer.draw(epoch, query)?;
            Ok(Sample { query, passages: std::iter::once(found.positive).chain(found.negatives).collect() })
        };
        self.told(train, &items.iter().map(sample).collect::<anyhow::Result<Vec<_>>>()?)
    }

    fn samples(&self, part: Part) -> usize {
        self.looked(part).len()
    }

    fn id(&self, part: Part, sample: usize) -> String {
        let query = self.looked(part)[sample];
        self.texts(part).folder.collection.query(query).text(Wording::Aspect)
    }

    fn framed(&self) -> anyhow::Result<Framed> {
        Ok(Framed::new(self.frame)?)
    }

    fn push(&self, part: Part, sample: usize, rows: &mut Framed) -> anyhow::Result<()> {
        let (texts, sample) = self.listed(part, sample);
        self.rows(texts, &sample, rows)
    }

    fn numbers(&self, part: Part, sample: usize) -> Option<Vec<u64>> {
        self.known.as_ref()?;
        let (_, Sample { query, passages }) = self.listed(part, sample);
        let query = self.is_bi().then_some(QUERIES | u64::from(query.0));
        Some(query.into_iter().chain(passages.iter().map(|passage| u64::from(passage.0))).collect())
    }

    fn push_some(
        &self,
        part: Part,
        sample: usize,
        some: Range<usize>,
        rows: &mut Framed,
    ) -> anyhow::Result<()> {
        let (texts, sample) = self.listed(part, sample);
        match &self.known {
            Some(known) => self.known_rows(known, texts, &sample, some, rows),
            None => self.rows(texts, &sample, rows),
        }
    }

    fn answers(&self, part: Part, sample: usize) -> anyhow::Result<usize> {
        let query = self.looked(part)[sample];
        Ok(self.texts(part).folder.lists[query.0 as usize].passages.len())
    }

    fn probe(&self, part: Part, samples: Range<usize>) -> anyhow::Result<Batch> {
        let texts = self.texts(part);
        let sample = |&query: &QueryId| {
            let list = &texts.folder.lists[query.0 as usize];
            let of = |relevant: bool| {
                let all = list.passages.iter().zip(&list.relevant);
                all.filter(move |(_, found)| **found == relevant).map(|(passage, _)| *passage)
            };
            // As many beside the first answer as in training: other answers would be wrong ones there.
            let mut others: Vec<PassageId> = of(false).collect();
            self.probed.at(u64::from(query.0)).shuffle(&mut others);
            others.truncate(self.negatives);
            Sample { query, passages: of(true).take(1).chain(others).collect() }
        };
        self.told(texts, &self.looked(part)[samples].iter().map(sample).collect::<Vec<_>>())
    }

    fn score(&self, part: Part, outputs: &[Vec<f32>]) -> anyhow::Result<Score> {
        let (texts, queries) = (self.texts(part), self.looked(part));
        let scores: Vec<f64> = outputs.iter().flatten().map(|&score| f64::from(score)).collect();
        let mut from = 0;
        let asked: Vec<Query<'_>> = queries
            .iter()
            .map(|query| {
                let relevant = &texts.folder.lists[query.0 as usize].relevant;
                let of = from..from + relevant.len();
                from = of.end;
                Query { scores: scores.get(of).unwrap_or(&[]), relevant }
            })
            .collect();
        let report = retrieval::evaluate(&asked, &AT)?;
        let mut others: BTreeMap<String, f64> =
            report.recall_at.iter().map(|(k, value)| (format!("recall_at_{k}"), *value)).collect();
        others.extend(report.hit_at.iter().map(|(k, value)| (format!("hit_at_{k}"), *value)));
        others.extend([("map".to_owned(), report.map), ("mrr".to_owned(), report.mrr)]);
        let value = others.remove("recall_at_1").unwrap_or_default();
        Ok(Score { samples: report.queries, metric: "recall_at_1".to_owned(), value, others })
    }

    fn facts(&self) -> BTreeMap<String, serde_json::Value> {
        let counts = |texts: &Texts| {
            json!({
                "documents": texts.folder.collection.documents.len(),
                "passages": texts.folder.collection.passages.len(),
                "queries": texts.folder.collection.queries.len(),
            })
        };
        let train = self.train.iter().map(|train| ("train".to_owned(), counts(train)));
        train.chain([("test".to_owned(), counts(&self.test))]).collect()
    }
}
