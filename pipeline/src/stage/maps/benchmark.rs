//! Stage `maps-BENCHMARK`: the semantic attention maps of a benchmark's texts, which all fine-tunings that attend by maps read.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use base::whole::write_whole;
use batch::maps::expand::Map;
use batch::maps::sample::Sample;
use downstream::example::{Answer, Choice};
use kg::split::Part;
use tasks::maps::generators::Counts;
use tasks::maps::hub;
use tasks::maps::index::{Index, Options};
use tasks::maps::piece::Piece;
use tasks::maps::read::Maps;
use tasks::maps::tools::Tools;
use tasks::maps::write::{Target, Writer};
use tasks::shard::index::{PartIndex, Tokenizer};

use super::of_texts::{MadeWith, MappedRows};
use super::told::{Linked, record, warn_of_nothing, warn_of_types};
use super::{Mapping, STAGE_VERSION, digests};
use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::licence::Licence;
use crate::engine::stage::{Input, Stage};
use crate::stage::benchmark::{self, Read};
use crate::stage::corpus::Corpus;
use crate::stage::finetune::quirks::PairOrder;
use crate::stage::submission;

/// What maps are made with, in the artifact.
const MADE_WITH: &str = "made_with.json";
/// What a second text's annotations are called behind the id of its example.
const PAIR: &str = "/pair";

/// The name of the stage for a benchmark.
#[must_use]
pub(crate) fn name(benchmark: &str) -> String {
    format!("maps-{benchmark}")
}

/// Which texts of a benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    /// Its examples.
    Examples,
    /// Those without labels, whose predictions are handed in, behind so many others.
    Unlabelled { before: usize },
}

impl Of {
    fn part(self) -> Part {
        match self {
            Of::Examples => Part::Train,
            Of::Unlabelled { .. } => Part::Test,
        }
    }
}

/// The stage.
#[derive(Debug)]
pub(crate) struct OfBenchmark {
    name: String,
    benchmark: String,
    mapping: Arc<Mapping>,
    /// Most tokens of a row besides auxiliary terms.
    max_tokens: usize,
    pairs: PairOrder,
    /// What an annotator says of its texts, by the ids of examples.
    parsed: Option<Corpus>,
}

/// One row's texts.
type Texts = (Piece, Option<Piece>);

impl OfBenchmark {
    /// The stage for the benchmark `of`, whose rows have at most `max_tokens` tokens.
    #[must_use]
    pub(crate) fn new(
        of: &str,
        mapping: Arc<Mapping>,
        max_tokens: usize,
        pairs: PairOrder,
        parsed: Option<Corpus>,
    ) -> Self {
        Self { name: name(of), benchmark: format!("benchmark-{of}"), mapping, max_tokens, pairs, parsed }
    }

    /// The rows of the benchmark's examples, and those without labels.
    fn texts(&self, tools: &Tools, context: &Context) -> anyhow::Result<[(Of, Vec<Texts>); 2]> {
        let folder = context.artifact(&self.benchmark)?;
        let Read::Examples(examples) = benchmark::read(folder)? else {
            anyhow::bail!(
                "{} is a ranking, whose pairs are put together while it is trained on",
                self.benchmark
            )
        };
        let mut parsed = self.parsed(tools, context)?;
        let mut found = 0_u64;
        let mut piece = |id: String, text: &str| -> anyhow::Result<Piece> {
            let Some(parsed) = parsed.as_mut().and_then(|parsed| parsed.remove(&id)) else {
                return Ok(Piece::unmarked(text));
            };
            found += 1;
            parsed.onto(text).map_err(|at| {
                anyhow::anyhow!(
                    "{}: the annotated text of example {id} is not the benchmark's: they differ at character {at}; annotate the texts of {} as they are",
                    self.key(),
                    self.benchmark
                )
            })
        };
        let mut rows = vec![];
        for of in &examples.examples.examples {
            let text = piece(of.id.clone(), &of.text)?;
            if let Answer::Choice(Choice { choices, .. }) = &of.answer {
                for (number, choice) in choices.iter().enumerate() {
                    rows.push((text.clone(), Some(piece(format!("{}/{number}", of.id), choice)?)));
                }
                continue;
            }
            let pair = of.pair.as_deref().map(|pair| piece(format!("{}{PAIR}", of.id), pair)).transpose()?;
            rows.push(self.ordered(text, pair));
        }
        let mut unlabelled = vec![];
        for (id, of) in submission::unlabelled(folder)? {
            let text = piece(id.clone(), &of.text)?;
            let pair = of.pair.as_deref().map(|pair| piece(format!("{id}{PAIR}"), pair)).transpose()?;
            unlabelled.push(self.ordered(text, pair));
        }
        if let Some(left) = &parsed {
            let all = found + left.len() as u64;
            context.record("annotated", serde_json::json!({"documents": all, "of_examples": found}));
            if let Some(unknown) = left.keys().min().filter(|_| found == 0) {
                anyhow::bail!(
                    "{}: none of its {all} documents has the id of an example (the first is {unknown:?}): name them by the ids of {}, a second text by its example's id and {PAIR:?}",
                    self.key(),
                    self.benchmark
                );
            }
        }
        Ok([(Of::Examples, rows), (Of::Unlabelled { before: 0 }, unlabelled)])
    }

    fn key(&self) -> String {
        format!("benchmarks.{}.parsed", self.benchmark.trim_start_matches("benchmark-"))
    }

    fn ordered(&self, text: Piece, pair: Option<Piece>) -> Texts {
        match pair {
            None => (text, None),
            Some(pair) => {
                let (first, second) = self.pairs.of(text, pair);
                (first, Some(second))
            }
        }
    }

    /// What the annotator says, by the names of its documents.
    fn parsed(&self, tools: &Tools, context: &Context) -> anyhow::Result<Option<HashMap<String, Piece>>> {
        let Some(parsed) = &self.parsed else { return Ok(None) };
        let mut all = HashMap::new();
        parsed.each(context, |_, document| {
            let twice = all.insert(document.id.clone(), tools.piece(document));
            anyhow::ensure!(twice.is_none(), "{}: document {:?} is there twice", self.key(), document.id);
            Ok(())
        })?;
        Ok(Some(all))
    }
}

impl Stage for OfBenchmark {
    fn name(&self) -> &str {
        &self.name
    }

    fn version(&self) -> u32 {
        STAGE_VERSION
    }

    fn describe(&self, to: &mut dyn Describe) {
        self.mapping.describe_tools(to);
        to.field("maps.limits.tokens", self.max_tokens.into());
        describe::config(to, "maps.size", &self.mapping.config.size);
        describe::config(to, "maps.items_per_group", &self.mapping.config.items_per_group);
        if !self.pairs.is_as_given() {
            describe::config(to, "finetune.quirks.pairs", &self.pairs);
        }
        if let Some(parsed) = &self.parsed {
            parsed.describe(to);
        }
        self.mapping.vocabulary.0.describe_with(self.mapping.vocabulary.1, to);
    }

    fn licence(&self, _: &Path) -> anyhow::Result<Licence> {
        Ok(self.parsed.as_ref().map_or(Licence::None, Corpus::licence))
    }

    fn inputs(&self) -> Vec<Input> {
        let mut inputs = vec![Input::artifact(&self.benchmark)];
        inputs.extend(self.parsed.iter().flat_map(Corpus::inputs));
        inputs.extend(self.mapping.vocabulary.0.inputs());
        inputs.extend(self.mapping.inputs_of_tools());
        inputs
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let (source, case) = &self.mapping.vocabulary;
        let path = source.path(context)?;
        let vocabulary = source.load(context, *case)?;
        let limits = self.mapping.limits_of(self.max_tokens)?;
        let tools = self.mapping.load(vocabulary, &|name| Ok(context.artifact(name)?.to_owned()))?;
        let digest = blake3::hash(&std::fs::read(&path)?).to_hex().to_string();
        let mut written: Vec<(PartIndex, Counts)> = vec![];
        for (of, texts) in self.texts(&tools, context)? {
            let target = Target {
                folder: context.out(),
                part: of.part(),
                tokenizer: &digest,
                size: self.mapping.config.size,
                items_per_group: self.mapping.config.items_per_group,
            };
            let build = |first: u32, texts: &[Texts]| tools.rows_from(first, limits, texts);
            let mut writer = Writer::new(target, &build)?;
            for texts in texts {
                context.check()?;
                context.progress().add_rows(1);
                writer.push(texts)?;
            }
            let (part, counts) = writer.finish()?;
            if of == Of::Examples {
                record(context, &counts, part.tokens);
                warn_of_nothing(context, tools.config(), &counts, Linked::by(&tools));
                warn_of_types(context, &tools);
            }
            written.push((part, counts));
        }
        let made_with = self.mapping.made_with(&Map::ALL, context)?;
        write_whole(&context.out().join(MADE_WITH), &serde_json::to_vec_pretty(&made_with)?)?;
        let [relevance, graph] = digests(&tools, context)?;
        let vocabulary = tools.vocabulary();
        let tokenizer = Tokenizer { blake3: digest, size: vocabulary.size(), special: vocabulary.special() };
        let mut index = Index::new(Options { limits, relevance, graph }, tokenizer, written);
        hub::write(context.out(), &index)?;
        index.write(context.out())?;
        Ok(())
    }

    fn inspect(&self, file: &Path) -> anyhow::Result<Vec<String>> {
        crate::stage::triples::inspect_parquet(file)
    }
}

/// What these maps of a benchmark are made with, as the artifact of its stage says.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn made_with(folder: &Path, maps: &[Map]) -> anyhow::Result<MadeWith> {
    let path = folder.join(MADE_WITH);
    let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
    let mut made: MadeWith = serde_json::from_slice(&bytes).with_context(|| path.display().to_string())?;
    if !maps.contains(&Map::Term) {
        made.files.retain(|file, _| !file.starts_with("pmi/"));
    }
    Ok(made)
}

/// So many rows of a benchmark, with these maps, as the artifact of its stage has them.
///
/// # Errors
/// When it is damaged, or has others.
pub(crate) fn rows(folder: &Path, of: Of, count: usize, maps: &[Map]) -> anyhow::Result<MappedRows> {
    let index = Index::read(folder)?;
    let mut found: BTreeMap<usize, Sample> = BTreeMap::new();
    let from = match of {
        Of::Examples => 0,
        Of::Unlabelled { before } => before,
    };
    for file in index.part(of.part()).map_or(&[][..], |part| &part.files) {
        let file = Maps::open(folder, file)?;
        for group in 0..file.groups() {
            for row in file.group(group)?.rows() {
                let place = row.document as usize;
                if (from..from + count).contains(&place) {
                    let sample = row.to_sample();
                    let with_terms = maps.contains(&Map::Term);
                    found.insert(place, if with_terms { sample } else { sample.without_terms() });
                }
            }
        }
    }
    anyhow::ensure!(
        found.len() == count,
        "{}: it has maps of {} texts, and {count} are looked for: make it again (`engraft run`)",
        folder.display(),
        found.len()
    );
    Ok(MappedRows::new(found.into_values().collect(), maps)?)
}
