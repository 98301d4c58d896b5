//! Counts, PMI, NPMI and relevance against golden part h, and its auxiliary terms.
//!
//! The folder is `ENGRAFT_GOLDENS`, or `tests/fixtures/golden`.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use base::cancel::CancelToken;
use candle_core::{Device, Tensor};
use engraft_tests::golden::{folder, json};
use serde_json::Value;
use tasks::token::encode::Case;
use text::count::Pair;
use text::count::{
    self, Adjacent, Counting, Distance, LEAST_MEMORY, Order, Read, Room, Table, Weight, Within,
};
use text::pmi::{self, Matrix, Measure, Relevance, Words};

/// Golden part h.
struct Golden {
    json: Value,
    tensors: HashMap<String, Tensor>,
    vocabulary: Vec<String>,
}

/// The three ways of counting, by the names that the golden set has for them.
fn ways(json: &Value) -> Result<[(&'static str, Counting); 3]> {
    let width = |key: &str| Ok::<_, anyhow::Error>(usize::try_from(json[key].as_u64().context("a width")?)?);
    let distance =
        Distance { window: width("glove_window")?, weight: Weight::Equal, order: Order::Symmetric };
    Ok([
        ("sentence", Counting::Presence),
        ("window", Counting::Window(width("sliding_window")?)),
        ("glove_window", Counting::Distance(distance)),
    ])
}

impl Golden {
    fn read() -> Result<Self> {
        let json = json("h_pmi")?;
        let tensors = candle_core::safetensors::load(folder().join("h_pmi.safetensors"), &Device::Cpu)?;
        let vocabulary = serde_json::from_value(json["vocab"].clone())?;
        Ok(Self { json, tensors, vocabulary })
    }

    fn square(&self, name: &str) -> Result<Vec<Vec<f64>>> {
        Ok(self.tensors[name].to_dtype(candle_core::DType::F64)?.to_vec2()?)
    }

    fn count(&self, pairs: Counting, folder: &Path) -> Result<Read> {
        let config = count::Config {
            case: Case::Uncased,
            within: Within::Document,
            pairs,
            adjacent: Adjacent::Leave,
            min_count: 1,
            max_words: None,
            max_distinct: None,
        };
        let room =
            Room { memory: LEAST_MEMORY, threads: 2, folder: folder.to_owned(), cancel: CancelToken::NEVER };
        let sentences: Vec<Vec<String>> = serde_json::from_value(self.json["sentences"].clone())?;
        let counted = count::count(&config, count::Share::Whole, &room, |feed| {
            sentences.iter().try_for_each(|words| feed.text(&words.join(" ")))
        });
        counted.map_err(|error: count::Error| error)?.write(folder)?;
        Ok(Read::open(folder)?)
    }
}

fn score(read: &Read, measure: Measure, relevance: Relevance, folder: &Path) -> Result<Matrix> {
    let config = pmi::Config {
        min_count: 1,
        max_words: None,
        words: Words::All,
        min_pair_count: 1,
        measure,
        smoothing: 1.0,
        shift: 1.0,
        relevance,
        top_k: None,
    };
    pmi::score(read, &config, folder)?;
    Ok(Matrix::open(&folder.join(pmi::MATRIX))?)
}

/// The scores of a folder, by the letters of both words in both orders.
fn scores(folder: &Path, matrix: &Matrix) -> Result<HashMap<(String, String), f64>> {
    use arrow_array::cast::AsArray as _;
    use arrow_array::types::{Float64Type, UInt32Type};
    let file = File::open(folder.join(pmi::Table::Pairs.file()))?;
    let mut all = HashMap::new();
    for batch in parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file)?.build()? {
        let batch = batch?;
        let word = |column: usize, row: usize| {
            let rank = batch.column(column).as_primitive::<UInt32Type>().value(row);
            matrix.word(rank).map(str::to_owned).context("a word")
        };
        for row in 0..batch.num_rows() {
            let score = batch.column(3).as_primitive::<Float64Type>().value(row);
            all.insert((word(0, row)?, word(1, row)?), score);
            all.insert((word(1, row)?, word(0, row)?), score);
        }
    }
    Ok(all)
}

#[test]
fn counts_are_those_of_the_golden_set() -> Result<()> {
    let golden = Golden::read()?;
    for (name, counting) in ways(&golden.json)? {
        let dir = tempfile::tempdir()?;
        let read = golden.count(counting, dir.path())?;
        let index: HashMap<&str, usize> =
            golden.vocabulary.iter().zip(0..).map(|(w, i)| (w.as_str(), i)).collect();
        let mut found = vec![vec![0.0; index.len()]; index.len()];
        let at = |rank: u32| index[read.words[rank as usize].letters.as_str()];
        read.pairs(Table::Pairs, |Pair { left, right, count }| {
            let (a, b) = (at(left), at(right));
            // A square has both orders: a word beside itself counts twice.
            found[a][b] += count as f64;
            found[b][a] += count as f64;
            Ok::<(), count::Error>(())
        })?;
        let expected =
            if name == "glove_window" { "glove_window.X".to_owned() } else { format!("{name}.cooccur") };
        let expected = golden.square(&expected)?;
        for (a, row) in found.iter().enumerate() {
            for (b, &count) in row.iter().enumerate().filter(|(b, _)| *b != a || name == "glove_window") {
                // Of the other two the golden set says only which pairs there are; their scores prove how often.
                let count = if name == "glove_window" { count } else { f64::from(u8::from(count > 0.0)) };
                ensure!(
                    count == expected[a][b],
                    "{name}: {} {}: {count}, not {}",
                    golden.vocabulary[a],
                    golden.vocabulary[b],
                    expected[a][b]
                );
            }
        }
    }
    Ok(())
}

#[test]
fn pmi_npmi_and_relevance_are_those_of_the_golden_set() -> Result<()> {
    let golden = Golden::read()?;
    for (name, counting) in ways(&golden.json)? {
        let dir = tempfile::tempdir()?;
        let read = golden.count(counting, dir.path())?;
        for (tensor, measure) in [("pmi_neg_inf_as_0", Measure::Pmi), ("npmi", Measure::Npmi)] {
            let to = tempfile::tempdir()?;
            let matrix = score(&read, measure, Relevance::Max, to.path())?;
            let (found, expected) =
                (scores(to.path(), &matrix)?, golden.square(&format!("{name}.{tensor}"))?);
            for (a, row) in golden.vocabulary.iter().zip(&expected) {
                for (b, &expected) in golden.vocabulary.iter().zip(row).filter(|(b, _)| *b != a) {
                    let score = found.get(&(a.clone(), b.clone())).copied().unwrap_or(0.0);
                    ensure!(
                        (score - expected).abs() <= 1e-9,
                        "{name}.{tensor}: {a} {b}: {score}, not {expected}"
                    );
                }
            }
        }
        let to = tempfile::tempdir()?;
        let matrix = score(&read, Measure::Pmi, Relevance::Max, to.path())?;
        let expected = golden.square(&format!("{name}.relevance_ppmi_over_max"))?;
        for (a, row) in golden.vocabulary.iter().zip(&expected) {
            for (b, &expected) in golden.vocabulary.iter().zip(row) {
                let found = match (matrix.id(a), matrix.id(b)) {
                    (Some(a), Some(b)) => f64::from(matrix.relevance(a, b)),
                    // A word that no sentence of this draw has is relevant to itself alone.
                    _ => f64::from(u8::from(a == b)),
                };
                ensure!((found - expected).abs() <= 1e-6, "{name}: {a} {b}: {found}, not {expected}");
            }
        }
    }
    Ok(())
}
