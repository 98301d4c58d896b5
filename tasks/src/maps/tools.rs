//! What samples of maps are made with: vocabulary, dictionary, phrases, relevance and graph, read from the artifacts before.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use base::read::ReadError;
use batch::maps::sample::{NO_WORD, Sample};
use kg::table::schema::Table;
use kg::table::{EntityId, Graph};
use rayon::iter::ParallelIterator;
use rayon::slice::ParallelSlice;
use text::count::{self, Read};
use text::ner::of_graph::GraphError;
use text::ner::{self, Dictionary};
use text::phrase;
use text::pmi::{MATRIX, Matrix};
use text::{Document, Entity, Span};

use super::config::{Config, Entities, Graph as GraphMap, Phrases};
use super::folders::Folders;
use super::generators::{Counts, From, Generator, Limits, Spell};
use super::graph::Adjacency;
use super::keys::keys;
use super::piece::Piece;
use super::reader::Reader;
use crate::Error;
use crate::token::encode::{Case, Vocabulary};

/// Texts of one thread at a time.
const TEXTS: usize = 64;

/// Everything that samples are made with.
#[derive(Debug)]
pub struct Tools {
    config: Config,
    case: Case,
    vocabulary: Vocabulary,
    /// Entities by their keys in lower case, with and without the namespace; only where entities are marked.
    keys: HashMap<String, EntityId>,
    dictionary: Option<Dictionary>,
    phrases: Option<phrase::Phrases>,
    matrix: Option<Matrix>,
    adjacency: Option<Adjacency>,
    relevance: Option<PathBuf>,
    table: Option<PathBuf>,
    /// Texts that something is marked in, by themselves.
    annotated: HashMap<String, Piece>,
}

impl Tools {
    /// Reads what `config` asks for.
    ///
    /// # Errors
    /// When it asks for a folder that is not there, or what is read is damaged or gives nothing.
    pub fn load(
        config: &Config,
        vocabulary: Vocabulary,
        case: Case,
        folders: &Folders,
    ) -> Result<Self, Error> {
        let mut graph = None;
        if config.needs_graph() {
            let triples = folders.triples(config)?;
            graph = Some((Graph::read(triples)?, triples));
        }
        let dictionary = match (&config.entities, &graph) {
            (Entities::Dictionary(filters), Some((graph, triples))) => {
                Some(Dictionary::of_graph(graph, triples, filters).map_err(of_dictionary)?)
            }
            _ => None,
        };
        let phrases = match &config.phrases {
            Phrases::Neighbours(config) => {
                let counts = Read::open(folders.counts()?).map_err(of_counts)?;
                Some(phrase::Phrases::of(&counts, config).map_err(of_counts)?)
            }
            Phrases::Marked | Phrases::None => None,
        };
        let (mut matrix, mut relevance) = (None, None);
        if config.needs_scores() {
            let path = folders.scores()?.join(MATRIX);
            matrix = Some(Matrix::open(&path)?);
            relevance = Some(path);
        }
        let (mut adjacency, mut table) = (None, None);
        if let Some((graph, triples)) = graph.as_ref().filter(|_| config.graph == GraphMap::Adjacent) {
            adjacency = Some(Adjacency::of_graph(graph));
            table = Some(triples.join(Table::Triples.file()));
        }
        let marked = graph.as_ref().filter(|_| config.entities == Entities::Marked);
        let keys = marked.map(|(graph, _)| keys(graph)).unwrap_or_default();
        let config = config.clone();
        let annotated = HashMap::new();
        Ok(Self {
            config,
            case,
            vocabulary,
            keys,
            dictionary,
            phrases,
            matrix,
            adjacency,
            relevance,
            table,
            annotated,
        })
    }

    /// Takes what is marked in these texts wherever one of them is mapped; of two of the same text the first.
    pub fn annotate(&mut self, pieces: Vec<Piece>) {
        for piece in pieces {
            self.annotated.entry(piece.text.clone()).or_insert(piece);
        }
    }

    /// Whether something may be marked in texts.
    #[must_use]
    pub fn has_annotated(&self) -> bool {
        !self.annotated.is_empty()
    }

    /// Whether something may be marked in this text.
    #[must_use]
    pub fn is_annotated(&self, text: &str) -> bool {
        self.annotated(text).is_some()
    }

    /// What is marked in a text, if anything may be.
    pub(super) fn annotated(&self, text: &str) -> Option<&Piece> {
        self.annotated.get(text)
    }

    /// A text with what is marked in it.
    fn marked(&self, text: &str) -> Piece {
        self.annotated(text).cloned().unwrap_or_else(|| Piece::unmarked(text))
    }

    /// A part of a text with what is marked in it, which is `shown` as a vocabulary spells words that follow others.
    #[must_use]
    pub fn marked_part(&self, text: &str, bytes: &Range<usize>, shown: &str) -> Piece {
        let piece = self.annotated(text).and_then(|piece| piece.part(bytes).behind(shown));
        piece.unwrap_or_else(|| Piece::unmarked(shown))
    }

    /// How samples are made.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Whether words keep case.
    #[must_use]
    pub fn case(&self) -> Case {
        self.case
    }

    /// The vocabulary.
    #[must_use]
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// What entities are called, where they are looked for.
    #[must_use]
    pub fn dictionary(&self) -> Option<&Dictionary> {
        self.dictionary.as_ref()
    }

    /// Linked neighbours, where phrases are made of them.
    #[must_use]
    pub fn phrases(&self) -> Option<&phrase::Phrases> {
        self.phrases.as_ref()
    }

    /// The relevance matrix that was read, if any.
    #[must_use]
    pub fn relevance(&self) -> Option<&Path> {
        self.relevance.as_deref()
    }

    /// The table of triples, which stands for the graph, where entities are related by it.
    #[must_use]
    pub fn table(&self) -> Option<&Path> {
        self.table.as_deref()
    }

    /// What a document has for samples, as far as these tools take it from there.
    #[must_use]
    pub fn piece(&self, document: &Document) -> Piece {
        let (mut entities, mut phrases) = (Vec::new(), Vec::new());
        if self.config.entities == Entities::Marked {
            entities.clone_from(&document.entities);
            if entities.is_empty() {
                // Some formats mark spans, which name no concept.
                let entity = |span: &Span| Entity {
                    pieces: vec![span.bytes.clone()],
                    label: span.label,
                    concepts: Vec::new(),
                };
                entities.extend(document.spans.iter().map(entity));
            }
        }
        if self.config.phrases == Phrases::Marked {
            phrases.clone_from(&document.phrases);
        }
        Piece { text: document.text.clone(), sentences: document.sentences.clone(), entities, phrases }
    }

    /// The sample of one text, whole, and its words, those of auxiliary terms behind the text's.
    ///
    /// # Errors
    /// As [`Tools::samples`].
    pub fn sample(&self, text: &str) -> Result<(Sample, Vec<String>), Error> {
        let mut reader = Reader::new(self);
        reader.read_unmarked(text)?;
        let spell = |word: &str| self.vocabulary.encode(&self.vocabulary.within(word));
        let mut generator = Generator::new(self.from(&spell))?;
        let sample = generator.build(reader.text(), None)?;
        let row = sample.row();
        let of_text = row.words[..usize::from(row.real)].iter().filter(|word| **word != NO_WORD).max();
        let of_text = of_text.map_or(0, |last| usize::from(*last) + 1);
        let words = (0..of_text).filter_map(|word| reader.spelt().get(word));
        let mut words: Vec<String> = words.map(|(letters, _)| letters.to_owned()).collect();
        words.resize(row.word_count(), String::new());
        for (&word, &id) in row.words.iter().zip(row.input_ids).skip(usize::from(row.real)) {
            let written = u32::try_from(id).ok().and_then(|id| self.vocabulary.written(id));
            if let Some(label) = words.get_mut(usize::from(word)) {
                label.push_str(&written.unwrap_or_default());
            }
        }
        Ok((sample, words))
    }

    /// The sample of each text or pair within `limits`, whole, with the tokens that are cut of it; and what became of them all. Threads
    /// change nothing.
    ///
    /// # Errors
    /// As [`Tools::samples`], with the number of the text.
    pub fn rows(
        &self,
        limits: Limits,
        texts: &[(&str, Option<&str>)],
    ) -> Result<(Vec<Sample>, Counts), (usize, Error)> {
        let piece =
            |(text, pair): &(&str, Option<&str>)| (self.marked(text), pair.map(|pair| self.marked(pair)));
        self.rows_of(limits, &texts.iter().map(piece).collect::<Vec<_>>())
    }

    /// The same of texts that something may be marked in.
    ///
    /// # Errors
    /// As [`Tools::samples`], with the number of the text.
    pub fn rows_of(
        &self,
        limits: Limits,
        texts: &[(Piece, Option<Piece>)],
    ) -> Result<(Vec<Sample>, Counts), (usize, Error)> {
        let some = |texts: &[(Piece, Option<Piece>)]| self.some_rows(0, limits, texts);
        let chunks: Vec<_> = texts.par_chunks(TEXTS).map(some).collect();
        let (mut all, mut counts) = (Vec::with_capacity(texts.len()), Counts::default());
        for (number, chunk) in chunks.into_iter().enumerate() {
            let (rows, of_chunk) = chunk.map_err(|(text, error)| (number * TEXTS + text, error))?;
            all.extend(rows);
            counts.add(&of_chunk);
        }
        Ok((all, counts))
    }

    /// The same of texts that something may be marked in, of which the first has the number `first`.
    ///
    /// # Errors
    /// As [`Tools::samples`].
    pub fn rows_from(
        &self,
        first: u32,
        limits: Limits,
        texts: &[(Piece, Option<Piece>)],
    ) -> Result<(Vec<Sample>, Counts), Error> {
        self.some_rows(first, limits, texts).map_err(|(text, error)| {
            let place = format!("text {}", first as usize + text);
            ReadError::new(place, error.to_string(), "", "").into()
        })
    }

    fn some_rows(
        &self,
        first_number: u32,
        limits: Limits,
        texts: &[(Piece, Option<Piece>)],
    ) -> Result<(Vec<Sample>, Counts), (usize, Error)> {
        let spell = |word: &str| self.vocabulary.encode(&self.vocabulary.within(word));
        let from = From { limits, ..self.from(&spell) };
        let mut generator = Generator::new(from).map_err(|error| (0, error.into()))?;
        let mut rows = vec![];
        let (mut first, mut second) = (Reader::new(self), Reader::new(self));
        for ((number, (text, pair)), document) in texts.iter().enumerate().zip(first_number..) {
            let read = first.read(text, 0..text.text.len());
            let read = read
                .and_then(|()| pair.as_ref().map_or(Ok(()), |pair| second.read(pair, 0..pair.text.len())));
            read.map_err(|error| (number, error))?;
            let sample = generator.build(first.text(), pair.as_ref().map(|_| second.text()));
            rows.push(Sample { document, ..sample.map_err(|error| (number, error))? });
        }
        Ok((rows, generator.counts))
    }

    /// What samples are made with besides texts; `spell` spells auxiliary terms.
    pub fn from<'t>(&'t self, spell: Spell<'t>) -> From<'t> {
        From {
            special: self.vocabulary.special(),
            limits: self.config.limits,
            terms: self.matrix.as_ref().map(|matrix| (matrix as _, spell)),
            graph: self.adjacency.as_ref(),
        }
    }

    /// The samples of documents, of which the first has the number `first`.
    ///
    /// # Errors
    /// When the tokenizer refuses a text, or splits it otherwise than BERT's.
    pub fn samples(&self, first: u32, pieces: &[Piece]) -> Result<(Vec<Sample>, Counts), Error> {
        Reader::new(self).samples(first, pieces)
    }

    /// The graph's entities that an annotation names.
    pub(super) fn named(&self, entity: &Entity) -> Vec<EntityId> {
        let known = |concept: &String| self.keys.get(concept.to_lowercase().as_str());
        entity.concepts.iter().filter_map(known).copied().collect()
    }
}

fn of_dictionary(error: GraphError) -> Error {
    match error {
        GraphError::Read(error) => error.into(),
        GraphError::Dictionary(ner::dictionary::Error::InvalidSetting(error)) => error.into(),
        GraphError::Dictionary(error) => Error::Unfit(error.to_string()),
    }
}

fn of_counts(error: count::Error) -> Error {
    match error {
        count::Error::InvalidSetting(error) => error.into(),
        count::Error::Index(error) => error.into(),
        count::Error::Read { file, problem } => Error::at(&file, problem, ""),
        error => Error::Unfit(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(most: usize) -> Tools {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vocab.txt");
        base::whole::write_whole(&path, b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\npain\nfever\n##s\nof\n,\n")
            .unwrap();
        let config = Config::nothing(Limits { tokens: most, terms: 0, auxiliary: 0 });
        let vocabulary = Vocabulary::load(&path, Case::Uncased).unwrap();
        Tools::load(&config, vocabulary, Case::Uncased, &Folders::default()).unwrap()
    }

    /// Texts of up to six words, some empty.
    fn text(number: usize) -> String {
        let words = ["pains", "fever,", "of"].into_iter().cycle().skip(number % 3).take(number % 7);
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn rows_are_those_of_each_text_alone_whatever_the_threads() {
        let tools = tools(9);
        // More than one thread takes at a time; every fourth is a pair.
        let texts: Vec<String> = (0..150).map(text).collect();
        let pair = |number: usize| number.is_multiple_of(4).then(|| texts[(number + 1) % 150].as_str());
        let asked: Vec<(&str, Option<&str>)> =
            texts.iter().enumerate().map(|(number, text)| (text.as_str(), pair(number))).collect();
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| tools.rows(tools.config.limits, &asked)).unwrap()
        };
        let ((rows, counts), (others, of_others)) = (with(1), with(3));
        assert!(rows == others && counts == of_others && counts.samples == 150);
        for (sample, (text, pair)) in rows.iter().zip(&asked) {
            sample.row().check().unwrap();
            if pair.is_none() {
                let document = sample.document;
                assert_eq!(sample, &Sample { document, ..tools.sample(text).unwrap().0 }, "{text}");
                let whole = tools.vocabulary().encode(text).unwrap().len();
                assert_eq!(usize::from(sample.real) - 2 + sample.cut as usize, whole, "{text}");
            } else {
                let seps = sample.input_ids.iter().filter(|id| **id == 3).count();
                assert!(seps == 2 && sample.token_types.contains(&1), "{text}: {pair:?}");
            }
        }
        let cut: u64 = rows.iter().map(|sample| u64::from(sample.cut)).sum();
        assert!(cut == counts.subwords.cut && cut > 0);
    }
}
