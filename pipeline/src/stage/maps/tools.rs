//! What samples of maps are made with: vocabulary, dictionary, phrases, relevance and graph, read from the artifacts before.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::path::PathBuf;

use base::read::ReadError;
use batch::maps::expand::Map;
use batch::maps::sample::{NO_WORD, Sample};
use kg::table::schema::Table;
use kg::table::{EntityId, Graph};
use rayon::iter::ParallelIterator;
use rayon::slice::ParallelSlice;
use tasks::Error;
use tasks::maps::generators::{Counts, From, Generator, Limits, Spell, Text};
use tasks::maps::graph::Adjacency;
use tasks::maps::spelt::{self, Hidden, Mention, Speller, Spelt};
use tasks::token::encode::{Case, Vocabulary};
use text::count::Read;
use text::ner::{Dictionary, Report, Tagger};
use text::phrase;
use text::pmi::{MATRIX, Matrix};
use text::word::Words;
use text::{Document, Entity, Span, sentence};

use super::judge::Judge;
use super::names::keys;
use super::piece::{Piece, shifted, within};
use super::{Config, Entities, Graph as GraphMap, Phrases, Terms, Unit};
use crate::engine::context::Context;

/// Texts of one thread at a time.
const TEXTS: usize = 64;

/// Everything that samples are made with.
#[derive(Debug)]
pub(crate) struct Tools {
    config: Config,
    case: Case,
    vocabulary: Vocabulary,
    /// Entities by their keys in lower case, with and without the namespace; only where entities are marked.
    keys: HashMap<String, EntityId>,
    dictionary: Option<Dictionary>,
    phrases: Option<phrase::Phrases>,
    matrix: Option<Matrix>,
    adjacency: Option<Adjacency>,
    sources: (Option<PathBuf>, Option<PathBuf>),
}

impl Tools {
    /// Reads what `config` asks for.
    pub(super) fn load(
        config: &Config,
        vocabulary: Vocabulary,
        case: Case,
        artifact: &dyn Fn(&str) -> anyhow::Result<PathBuf>,
    ) -> anyhow::Result<Self> {
        let mut graph = None;
        if config.needs_graph() {
            let triples = artifact("triples")?;
            graph = Some((Graph::read(&triples)?, triples));
        }
        let dictionary = match (&config.entities, &graph) {
            (Entities::Dictionary(filters), Some((graph, triples))) => {
                Some(Dictionary::of_graph(graph, triples, filters)?)
            }
            _ => None,
        };
        let phrases = match &config.phrases {
            Phrases::Neighbours(config) => {
                Some(phrase::Phrases::of(&Read::open(&artifact("counts")?)?, config)?)
            }
            Phrases::Marked | Phrases::None => None,
        };
        let (mut matrix, mut relevance) = (None, None);
        if config.terms == Terms::Relevance {
            let path = artifact("pmi")?.join(MATRIX);
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
        Ok(Self {
            config: config.clone(),
            case,
            vocabulary,
            keys,
            dictionary,
            phrases,
            matrix,
            adjacency,
            sources: (relevance, table),
        })
    }

    /// Why a map of a sample has nothing beside its diagonal.
    #[must_use]
    pub(crate) fn why_empty(&self, map: Map, sample: &Sample) -> Option<String> {
        super::empty::reason(&self.config, map, sample)
    }

    /// Whether words keep case.
    #[must_use]
    pub(crate) fn case(&self) -> Case {
        self.case
    }

    /// The vocabulary.
    #[must_use]
    pub(crate) fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// What became of the dictionary's terms.
    #[must_use]
    pub(crate) fn dictionary(&self) -> Option<&Report> {
        self.dictionary.as_ref().map(Dictionary::report)
    }

    /// Compares what the dictionary finds with what the corpus marks.
    pub(super) fn judge(&self) -> Judge<'_> {
        Judge::new(self.dictionary.as_ref())
    }

    /// The digests of the relevance matrix, and of the table of triples, which stands for the graph, where they are used.
    ///
    /// # Errors
    /// When a file cannot be read.
    pub(super) fn digests(&self, context: &Context) -> anyhow::Result<[Option<String>; 2]> {
        let of = |path: &Option<PathBuf>| {
            let digest = path.as_deref().map(|path| context.digest(path)).transpose()?;
            anyhow::Ok(digest.map(|digest| digest.to_string()))
        };
        Ok([of(&self.sources.0)?, of(&self.sources.1)?])
    }

    /// What a document has for samples, as far as these tools take it from there.
    #[must_use]
    pub(crate) fn piece(&self, document: &Document) -> Piece {
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
    pub(crate) fn sample(&self, text: &str) -> Result<(Sample, Vec<String>), Error> {
        let mut reader = Reader::new(self);
        reader.read_unmarked(text)?;
        let spell = |word: &str| self.vocabulary.encode(&self.vocabulary.within(word));
        let mut generator = Generator::new(self.from(&spell))?;
        let sample = generator.build(reader.text(), None)?;
        let row = sample.row();
        let of_text = row.words[..usize::from(row.real)].iter().filter(|word| **word != NO_WORD).max();
        let of_text = of_text.map_or(0, |last| usize::from(*last) + 1);
        let words = (0..of_text).filter_map(|word| reader.spelt.get(word));
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
    pub(crate) fn rows(
        &self,
        limits: Limits,
        texts: &[(&str, Option<&str>)],
    ) -> Result<(Vec<Sample>, Counts), (usize, Error)> {
        let piece = |(text, pair): &(&str, Option<&str>)| (Piece::unmarked(text), pair.map(Piece::unmarked));
        let some = |texts: &[(&str, Option<&str>)]| {
            self.some_rows(0, limits, &texts.iter().map(piece).collect::<Vec<_>>())
        };
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
    pub(super) fn rows_from(
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

    pub(super) fn from<'t>(&'t self, spell: Spell<'t>) -> From<'t> {
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
    pub(crate) fn samples(&self, first: u32, pieces: &[Piece]) -> Result<(Vec<Sample>, Counts), Error> {
        let spell = |word: &str| self.vocabulary.encode(&self.vocabulary.within(word));
        let (mut generator, mut made) = (Generator::new(self.from(&spell))?, Vec::new());
        let mut reader = Reader::new(self);
        for (document, piece) in (first..).zip(pieces) {
            let starts = match self.config.unit {
                Unit::Sentence => sentence::of(&piece.text, &piece.sentences),
                Unit::Document => Cow::Borrowed(&[][..]),
            };
            let (mut start, mut chunk) = (0, 0);
            for end in starts.iter().copied().chain([piece.text.len()]) {
                let begin = std::mem::replace(&mut start, end);
                // The space behind a sentence would be a token of RoBERTa's.
                let bytes = begin..begin + piece.text[begin..end].trim_end().len();
                reader.read(piece, bytes)?;
                if reader.spelt.is_empty() {
                    continue;
                }
                made.push(Sample { document, chunk, ..generator.build(reader.text(), None)? });
                chunk += 1;
            }
        }
        generator.counts.mentions.cut += reader.crossing;
        Ok((made, generator.counts))
    }

    /// The graph's entities that an annotation names.
    fn named(&self, entity: &Entity) -> Vec<EntityId> {
        let known = |concept: &String| self.keys.get(concept.to_lowercase().as_str());
        entity.concepts.iter().filter_map(known).copied().collect()
    }
}

/// Reads one text after the other, by words.
pub(super) struct Reader<'t> {
    tools: &'t Tools,
    words: Words,
    tagger: Option<Tagger<'t>>,
    found: Vec<text::ner::Mention>,
    speller: Speller<'t>,
    spelt: Spelt,
    mentions: Vec<Mention>,
    phrases: Vec<Range<usize>>,
    /// Marked entities that begin in a part and end in another.
    crossing: u64,
}

impl<'t> Reader<'t> {
    pub(super) fn new(tools: &'t Tools) -> Self {
        Self {
            tools,
            words: Words::new(tools.case),
            tagger: tools.dictionary.as_ref().map(Tagger::new),
            found: Vec::new(),
            speller: Speller::new(&tools.vocabulary),
            spelt: Spelt::default(),
            mentions: Vec::new(),
            phrases: Vec::new(),
            crossing: 0,
        }
    }

    /// What was read.
    pub(super) fn text(&self) -> Text<'_> {
        Text { spelt: &self.spelt, mentions: &self.mentions, phrases: &self.phrases }
    }

    /// The words of the text, spelt.
    pub(super) fn spelt(&self) -> &Spelt {
        &self.spelt
    }

    /// The words of the text as they are written.
    pub(super) fn words(&self) -> &Words {
        &self.words
    }

    /// Hides words: mentions and phrases become those of `shown`, the text without them. Where it has other words, as byte-level BPE may see it, nothing is
    /// known of the text.
    ///
    /// # Errors
    /// When the tokenizer refuses it, or a word is shown as nothing.
    pub(super) fn hide(&mut self, hidden: &[Hidden], shown: &str) -> Result<(), Error> {
        let spelt = std::mem::take(&mut self.spelt);
        self.read_unmarked(shown)?;
        if self.spelt.len() != spelt.len() {
            self.mentions.clear();
            self.phrases.clear();
        }
        self.spelt = spelt;
        let has = |words: &Range<usize>| hidden.iter().any(|of| words.contains(&of.word));
        self.mentions.retain(|mention| !mention.words.iter().any(has));
        self.phrases.retain(|phrase| !has(phrase));
        self.spelt.hide(hidden)
    }

    /// Reads a text in which nothing is marked.
    pub(super) fn read_unmarked(&mut self, text: &str) -> Result<(), Error> {
        self.read(&Piece::unmarked(text), 0..text.len())
    }

    /// Reads a part of a document.
    fn read(&mut self, piece: &Piece, bytes: Range<usize>) -> Result<(), Error> {
        let text = &piece.text[bytes.clone()];
        self.words.split(text);
        self.spelt.read(&mut self.speller, text, &mut self.words)?;
        self.mentions.clear();
        if let (Some(tagger), Some(dictionary)) = (&mut self.tagger, &self.tools.dictionary) {
            tagger.tag(text, &mut self.found);
            self.mentions.extend(self.found.iter().map(|mention| Mention {
                // By place, since the dictionary splits words without case.
                words: vec![spelt::cover(&self.words, &mention.bytes)],
                entities: dictionary.entities(mention.term).to_vec(),
            }));
        } else if self.tools.config.entities == Entities::Marked {
            let inside = within(&piece.entities, &bytes);
            let begins =
                |entity: &&Entity| entity.pieces.first().is_some_and(|first| bytes.contains(&first.start));
            self.crossing += (piece.entities.iter().filter(begins).count() - inside.len()) as u64;
            self.mentions = spelt::mentions(&self.words, &inside, |entity| self.tools.named(entity));
        }
        match (&self.tools.phrases, &self.tools.config.phrases) {
            (Some(phrases), _) => {
                phrases.segment(self.words.iter().map(|word| word.letters), &mut self.phrases);
            }
            (None, Phrases::Marked) => {
                let inside = piece.phrases.iter().filter_map(|phrase| shifted(phrase, &bytes));
                self.phrases = spelt::phrases(&self.words, &inside.collect::<Vec<_>>());
            }
            (None, _) => self.phrases.clear(),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tasks::shard::file::Size;

    use super::*;

    fn tools(most: usize) -> Tools {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vocab.txt");
        base::whole::write_whole(&path, b"[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\npain\nfever\n##s\nof\n,\n")
            .unwrap();
        let config = Config {
            unit: Unit::Sentence,
            limits: Limits { tokens: most, terms: 0, auxiliary: 0 },
            entities: Entities::None,
            phrases: Phrases::None,
            terms: Terms::None,
            graph: GraphMap::None,
            size: Size::Rows(10),
            items_per_group: 10,
        };
        let none = |name: &str| anyhow::bail!("there is no artifact {name}");
        let vocabulary = Vocabulary::load(&path, Case::Uncased).unwrap();
        Tools::load(&config, vocabulary, Case::Uncased, &none).unwrap()
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
