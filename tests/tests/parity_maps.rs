//! Maps and auxiliary terms against the golden inputs of parts g and h, cell by cell.
//!
//! The folder is `ENGRAFT_GOLDENS`, or `tests/fixtures/golden`.

use std::collections::HashMap;
use std::ops::Range;

use anyhow::{Context, Result, ensure};
use batch::Place;
use batch::family::Family;
use batch::maps::expand::{Map, expand};
use batch::maps::sample::Sample;
use candle_core::{DType, Device, Tensor};
use engraft_tests::golden::{folder, json};
use serde_json::Value;
use tasks::maps::auxiliary::{Finder, Relevance};
use tasks::maps::generators::{From, Generator, Limits, Text};
use tasks::maps::spelt::{Mention, Spelt};
use tasks::token::encode::Special;

fn tensors(name: &str) -> Result<HashMap<String, Tensor>> {
    let path = folder().join(name);
    candle_core::safetensors::load(&path, &Device::Cpu).with_context(|| path.display().to_string())
}

/// The relevance of part h, counted by sentences.
struct Matrix {
    words: Vec<String>,
    rows: Vec<(Vec<u32>, Vec<f32>)>,
}

impl Matrix {
    fn read() -> Result<Self> {
        let words: Vec<String> = serde_json::from_value(json("h_pmi")?["vocab"].clone())?;
        let tensors = tensors("h_pmi.safetensors")?;
        let square = tensors.get("sentence.relevance_ppmi_over_max").context("no relevance")?;
        let square = square.to_dtype(DType::F32)?.to_vec2::<f32>()?;
        let related = |(of, row): (usize, Vec<f32>)| {
            let others = (0_u32..).zip(row).filter(|(id, value)| *id as usize != of && *value > 0.0);
            others.unzip()
        };
        Ok(Self { words, rows: square.into_iter().enumerate().map(related).collect() })
    }
}

impl Relevance for Matrix {
    fn id(&self, word: &str) -> Option<u32> {
        (0..).zip(&self.words).find(|(_, found)| *found == word).map(|(id, _)| id)
    }

    fn word(&self, id: u32) -> Option<&str> {
        self.words.get(id as usize).map(String::as_str)
    }

    fn related(&self, id: u32) -> (&[u32], &[f32]) {
        self.rows.get(id as usize).map_or((&[], &[]), |(words, relevance)| (words, relevance))
    }

    fn words(&self) -> usize {
        self.words.len()
    }
}

/// A text of part g.
struct Query {
    spelt: Spelt,
    mentions: Vec<Mention>,
    phrases: Vec<Range<usize>>,
    /// Its auxiliary words.
    auxiliary: Vec<String>,
}

impl Query {
    fn read(json: &Value, spell: &dyn Fn(&str) -> Vec<u32>) -> Result<Self> {
        let words: Vec<String> = serde_json::from_value(json["words"].clone())?;
        let mut spelt = Spelt::default();
        words.iter().try_for_each(|word| spelt.push(word, &spell(word)))?;
        let ranges = |name: &str| -> Result<Vec<Range<usize>>> {
            let ends: Vec<[usize; 2]> = serde_json::from_value(json[name].clone())?;
            Ok(ends.into_iter().map(|[start, end]| start..end).collect())
        };
        let mention = |words: Range<usize>| Mention { words: vec![words], entities: Vec::new() };
        Ok(Self {
            spelt,
            mentions: ranges("entities")?.into_iter().map(mention).collect(),
            phrases: ranges("phrases")?,
            auxiliary: serde_json::from_value(json["aux"].clone())?,
        })
    }

    fn text(&self) -> Text<'_> {
        Text { spelt: &self.spelt, mentions: &self.mentions, phrases: &self.phrases }
    }
}

#[test]
fn maps_are_the_golden_inputs() -> Result<()> {
    let (matrix, json, golden) = (Matrix::read()?, json("g_kam")?, tensors("g_kam.safetensors")?);
    let pieces: HashMap<String, Vec<u32>> = serde_json::from_value(json["word_pieces"].clone())?;
    let spell = |word: &str| pieces.get(word).cloned().unwrap_or_default();
    let spelled = |word: &str| -> Result<Vec<u32>, tasks::Error> { Ok(spell(word)) };
    let queries = json["samples"].as_array().context("samples")?;
    let queries: Vec<Query> =
        queries.iter().map(|query| Query::read(query, &spell)).collect::<Result<_>>()?;
    ensure!(queries.len() > 2, "the golden file has {} texts", queries.len());
    let special = Special { padding: 0, unknown: 1, cls: 2, sep: 3, blank: 4, family: Family::Bert };
    for name in ["inputs_noaux", "inputs_aux"] {
        let most = if name == "inputs_aux" { queries[0].auxiliary.len() } else { 0 };
        let limits = Limits { tokens: 512, terms: most, auxiliary: 512 };
        let from = From { special, limits, terms: Some((&matrix, &spelled)), graph: None };
        let mut generator = Generator::new(from)?;
        let build = |query: &Query| generator.build(query.text(), None);
        let samples: Vec<Sample> = queries.iter().map(build).collect::<Result<_, _>>()?;
        let tensor = |field: &str| golden.get(&format!("{name}.{field}")).with_context(|| field.to_owned());
        let (rows, width) = tensor("input_ids")?.dims2()?;
        let place = |(row, sample): (usize, &Sample)| Place { row, start: 0, len: sample.row().tokens() };
        let places = samples.iter().enumerate().map(place);
        let placed: Vec<_> = places.zip(samples.iter().map(Sample::row)).collect();
        let found = expand(&placed, &[Map::Entity, Map::Phrase, Map::Term], rows, width)?;
        ensure!(found == tensor("maps")?.flatten_all()?.to_vec1::<f32>()?, "{name}.maps differ");
        let padded = |sample: &Sample| {
            let ids = sample.input_ids.iter().map(|&id| i64::from(id));
            ids.chain(std::iter::repeat(i64::from(special.padding))).take(width).collect::<Vec<_>>()
        };
        let ids: Vec<Vec<i64>> = samples.iter().map(padded).collect();
        ensure!(ids == tensor("input_ids")?.to_vec2::<i64>()?, "{name}.input_ids differ");
        let lengths =
            |length: fn(&Sample) -> u16| samples.iter().map(|s| i64::from(length(s))).collect::<Vec<_>>();
        ensure!(lengths(|s| s.real) == tensor("n_real")?.to_vec1::<i64>()?, "{name}.n_real differs");
        ensure!(lengths(|s| s.auxiliary) == tensor("n_aux")?.to_vec1::<i64>()?, "{name}.n_aux differs");
    }
    Ok(())
}

#[test]
fn auxiliary_terms_are_the_golden_answers() -> Result<()> {
    let (matrix, json) = (Matrix::read()?, json("h_pmi")?);
    let answers = json["aux_terms(sentence relevance)"].as_array().context("answers")?;
    ensure!(!answers.is_empty(), "the golden file has no answers");
    let mut finder = Finder::default();
    for answer in answers {
        let mut sentence: Vec<String> = serde_json::from_value(answer["sentence"].clone())?;
        sentence.sort_unstable();
        sentence.dedup();
        let expected: Vec<String> = serde_json::from_value(answer["aux_words"].clone())?;
        let average: Vec<f64> = serde_json::from_value(answer["mean_relevance"].clone())?;
        let ids: Vec<u32> = sentence.iter().filter_map(|word| matrix.id(word)).collect();
        let found = finder.find(&matrix, &ids, sentence.len(), expected.len());
        let words: Vec<Option<&str>> = found.iter().map(|term| matrix.word(term.id)).collect();
        ensure!(words == expected.iter().map(|word| Some(word.as_str())).collect::<Vec<_>>(), "{words:?}");
        // Ours are 32 bits each before they are added.
        let near = found.iter().zip(average).all(|(term, average)| (term.relevance - average).abs() < 1e-6);
        ensure!(near, "{found:?}");
    }
    Ok(())
}
