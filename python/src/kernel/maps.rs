//! Kernel `maps`: the semantic attention maps of texts, as samples of spans and sparse pairs.

use std::path::PathBuf;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use batch::maps::sample::Sample;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use serde_json::json;
use tasks::Error;
use tasks::maps::config::{Config, Entities, Phrases};
use tasks::maps::folders::Folders;
use tasks::maps::generators::Counts;
use tasks::maps::piece::Piece as Document;
use tasks::maps::reader::Reader;
use tasks::maps::tools::Tools;
use tasks::token::encode::{Case, Vocabulary};

use super::batches::{Batches, Held};
use super::given::Given;
use super::pool::{Spare, pool};
use super::samples::{Samples, schema};
use super::texts::{Piece, Texts};
use super::{options, tokenizer};
use crate::raised::raised;

/// What messages call it.
const OF: &str = "Maps()";

/// Makes the samples of texts that the stage `maps` makes: token ids, the words that these belong to, and which words are a mention of an entity, a phrase,
/// related by a corpus or by a graph.
///
/// `vocabulary` is as for `Tokenizer`, with its `case`. `triples`, `counts` and `pmi` are the folders that the stages of these names make; which of them are
/// needed, the settings say, and one that nothing is made with is refused. Further arguments are the settings of `maps` of a config, under their names there:
/// `unit`, `limits`, `entities` (needs `triples`), `phrases` (`neighbours` needs `counts`), `terms` ("relevance" needs `pmi`), `graph` ("adjacent" needs `triples`);
/// docs/config.md has each with its default. What is "marked" there, a column of texts does not have.
///
/// >>> maps = engraft.Maps("out/vocabulary", "out/triples", "out/counts", "out/pmi", limits={"tokens": 64}, graph="adjacent")
/// >>> maps.make(["Heart failure with a cough. No fever."])
/// <engraft.Batches of 2 rows: row, chunk, real, auxiliary, cut, input_ids, token_type_ids, words, entities, phrases, types, ...>
///
/// Raises OSError for what cannot be read, ValueError for a setting that is none, out of its range, or needs a folder that is not given.
#[pyclass(module = "engraft", name = "Maps", frozen)]
pub(crate) struct Maps {
    tools: Tools,
    given: Given,
}

#[pymethods]
impl Maps {
    #[new]
    #[pyo3(signature = (vocabulary, triples=None, counts=None, pmi=None, *, case=None, **settings))]
    fn new(
        py: Python<'_>,
        vocabulary: PathBuf,
        triples: Option<PathBuf>,
        counts: Option<PathBuf>,
        pmi: Option<PathBuf>,
        case: Option<&str>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let kept = settings.map_or_else(|| Ok(PyDict::new(py)), PyDictMethods::copy)?;
        for (name, folder) in [("triples", &triples), ("counts", &counts), ("pmi", &pmi)] {
            kept.set_item(name, folder.as_ref())?;
        }
        kept.set_item("case", case)?;
        let given = Given::new(&vocabulary, Some(&kept), &[], py)?;
        let of = settings.map(|settings| options::object(settings, "")).transpose()?.unwrap_or_default();
        let config: Config = options::settings(OF, of)?;
        config.check().map_err(|error| options::invalid(OF, &error))?;
        unmarked(&config)?;
        let case = tokenizer::case(case)?;
        let (pool, folders) = (pool(py)?, Folders { triples, counts, pmi });
        let tools = py.detach(move || {
            pool.install(|| {
                let vocabulary = tokenizer::read(&vocabulary, case)?;
                let case = case_of(&vocabulary);
                folders.check(&config, case)?;
                Tools::load(&config, vocabulary, case, &folders)
            })
        });
        let tools = tools.map_err(|error| match error {
            Error::Setting(_) | Error::Unfit(_) => PyValueError::new_err(format!("{OF}: {error}")),
            error => raised(&error),
        })?;
        Ok(Self { tools, given })
    }

    /// The samples of each text, as the files of the stage `maps` have them: one for each sentence with a word, or with `unit="document"` for each text. Columns:
    ///
    ///   row                        int64: the text, from `first_row`
    ///   chunk                      int64: number of the sample in its text, from 0
    ///   real, auxiliary            int32: tokens of the text, [CLS] and [SEP] included, and of auxiliary terms behind them
    ///   cut                        int64: tokens of the text that were cut
    ///   input_ids                  list of int32: [CLS] text [SEP], then auxiliary terms, without padding
    ///   token_type_ids             list of int8: 0
    ///   words                      list of int32: number of each token's word, auxiliary terms last; 65535 for [CLS] and [SEP]
    ///   entities                   list of int32: number of each word's mention of an entity, from 1; 0 for none
    ///   phrases                    list of int32: number of each word's phrase, from 1; 0 for auxiliary terms
    ///   types                      list of int32: the first word that is the same as each word
    ///   term_first, term_second    list of int32: pairs of related words, the smaller number first
    ///   relevance                  list of float: relevance of each pair, above 0 and at most 1
    ///   graph_first, graph_second  list of int32: pairs of mentions whose entities a triple joins
    ///
    /// A null text, and one without a word, has no row. `report` counts samples, and what was found and cut, as the index of the stage does.
    ///
    /// Raises TypeError for what are no texts, ValueError for a text that cannot be encoded.
    #[pyo3(signature = (texts, *, column=None, first_row=0))]
    fn make(
        &self,
        py: Python<'_>,
        texts: &Bound<'_, PyAny>,
        column: Option<&str>,
        first_row: i64,
    ) -> PyResult<Batches> {
        let texts = Texts::new(texts, column, first_row)?;
        let (pool, schema, readers, mut counts) = (pool(py)?, schema(), Spare::new(), Counts::default());
        let batches = texts.batches(py, |pieces| {
            let make =
                |piece: &Piece| readers.with(|| Reader::new(&self.tools), |reader| Made::of(reader, piece));
            let made: Result<Vec<Made>, Error> = pool.install(|| pieces.par_iter().map(make).collect());
            let made = made.map_err(|error| raised(&error))?;
            made.iter().for_each(|made| counts.add(&made.counts));
            gathered(&schema, &made)
        })?;
        Ok(Batches::new(Held { schema, batches }, Some(json!(counts))))
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        slf.get().given.reduce(slf.as_any())
    }

    fn __repr__(&self) -> String {
        let limits = self.tools.config().limits;
        format!(
            "<engraft.Maps of at most {} tokens and {} of auxiliary terms>",
            limits.tokens, limits.auxiliary
        )
    }
}

/// Refuses settings that take what files mark.
fn unmarked(config: &Config) -> PyResult<()> {
    for (setting, is_marked) in
        [("entities", config.entities == Entities::Marked), ("phrases", config.phrases == Phrases::Marked)]
    {
        if is_marked {
            return Err(PyValueError::new_err(format!(
                "{OF}: {setting}=\"marked\", but nothing is marked in a column of texts: find them otherwise, or run the stage on files that mark them"
            )));
        }
    }
    Ok(())
}

/// The case of the words that a vocabulary spells.
fn case_of(vocabulary: &Vocabulary) -> Case {
    let by_rule = || if vocabulary.rule().lowercase { Case::Uncased } else { Case::Cased };
    vocabulary.splits().unwrap_or_else(by_rule)
}

/// The samples of a piece.
struct Made {
    /// Number of the row that has the piece's first text.
    first: i64,
    samples: Vec<Sample>,
    counts: Counts,
}

impl Made {
    fn of(reader: &mut Reader<'_>, piece: &Piece) -> Result<Self, Error> {
        let first = piece.rows().next().map_or(0, |(row, _)| row);
        let texts: Vec<Document> =
            piece.rows().map(|(_, text)| Document::unmarked(text.unwrap_or_default())).collect();
        let (samples, counts) = reader.samples(0, &texts)?;
        Ok(Self { first, samples, counts })
    }
}

/// The rows of all pieces, one behind the other.
fn gathered(schema: &SchemaRef, pieces: &[Made]) -> PyResult<Vec<RecordBatch>> {
    let (mut batches, mut samples) = (Vec::new(), Samples::new());
    for Made { first, samples: made, .. } in pieces {
        for sample in made {
            if samples.is_full_for(sample) {
                batches.push(samples.finish(schema)?);
            }
            samples.push(first + i64::from(sample.document), sample);
        }
    }
    batches.push(samples.finish(schema)?);
    Ok(batches)
}
