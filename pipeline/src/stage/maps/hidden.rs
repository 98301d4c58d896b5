//! Samples of texts in which words are hidden: nothing is known of these, in no map and by no auxiliary term.

use batch::maps::sample::Sample;
use tasks::Error;
use tasks::downstream::lama::MASK;
use tasks::maps::generators::{From, Generator, Limits};
use tasks::maps::spelt::{Hidden, Spelt, cover};
use tasks::shard::file::Size;
use tasks::token::encode::{Case, Vocabulary};
use text::word::Words;

use super::tools::{Reader, Tools};
use super::{Config, Entities, Graph, Phrases, Terms};

/// What stands for a mask while its text is split into words.
const WORD: &str = "mask";

/// The words that are hidden of a text, by its number, given its words.
pub(crate) type Hide<'a> = &'a mut dyn FnMut(usize, &Spelt, &Words) -> Vec<Hidden>;

impl Tools {
    /// Tools that make samples of which nothing is known.
    ///
    /// # Errors
    /// When the tokenizer refuses it.
    pub(crate) fn plain(vocabulary: Vocabulary, case: Case) -> anyhow::Result<Self> {
        let config = Config {
            unit: super::Unit::Sentence,
            limits: Limits { tokens: 4, terms: 0, auxiliary: 0 },
            entities: Entities::None,
            phrases: Phrases::None,
            terms: Terms::None,
            graph: Graph::None,
            size: Size::Rows(1),
            items_per_group: 1,
        };
        Self::load(&config, vocabulary, case, &|name| anyhow::bail!("maps of nothing need no {name}"))
    }

    /// The sample of each text with [`MASK`]s within `limits`, of which nothing is known.
    ///
    /// # Errors
    /// As [`Tools::samples`], with the number of the text.
    pub(crate) fn with_masks(&self, limits: Limits, texts: &[&str]) -> Result<Vec<Sample>, (usize, Error)> {
        let (mut written, mut masks) = (vec![], vec![]);
        for text in texts {
            let (mut whole, mut of_text) = (String::new(), vec![]);
            for (place, piece) in text.split(MASK).enumerate() {
                if place > 0 {
                    of_text.push(whole.len()..whole.len() + WORD.len());
                    whole.push_str(WORD);
                }
                whole.push_str(piece);
            }
            written.push(whole);
            masks.push(of_text);
        }
        let written: Vec<&str> = written.iter().map(String::as_str).collect();
        let blank = self.vocabulary().special().blank;
        let mut hide = |text: usize, _: &Spelt, words: &Words| {
            let of_text = masks[text].iter().flat_map(|mask| cover(words, mask));
            of_text.map(|word| Hidden { word, shown: vec![blank] }).collect()
        };
        self.hiding(limits, &written, &mut hide)
    }

    /// The sample of each text within `limits`, in which the words that `hide` says are hidden.
    ///
    /// # Errors
    /// As [`Tools::samples`], with the number of the text.
    pub(crate) fn hiding(
        &self,
        limits: Limits,
        texts: &[&str],
        hide: Hide<'_>,
    ) -> Result<Vec<Sample>, (usize, Error)> {
        let spell = |word: &str| self.vocabulary().encode(&self.vocabulary().within(word));
        let from = From { limits, ..self.from(&spell) };
        let mut generator = Generator::new(from).map_err(|error| (0, error.into()))?;
        let mut reader = Reader::new(self);
        let mut made = Vec::with_capacity(texts.len());
        for (number, text) in texts.iter().enumerate() {
            let wrong = |error| (number, error);
            reader.read_unmarked(text).map_err(wrong)?;
            let hidden = hide(number, reader.spelt(), reader.words());
            reader.hide(&hidden).map_err(wrong)?;
            made.push(generator.build(reader.text(), None).map_err(wrong)?);
        }
        Ok(made)
    }
}
