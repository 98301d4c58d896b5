//! How much more often words occur together than by chance (pointwise mutual information), from counts.
//!
//! PMI(x, y) = ln p(x, y) - ln p(x) - ln p(y). Where pairs are counted by presence, p is the share of sentences, documents or windows; where by
//! distance, the share of all counts, and of a word's row or column of them. Paper 002 (KAM-BERT, section 3) calls the score, brought
//! to [0, 1], the relevance of two words.

mod csr;
mod keep;
mod matrix;
mod schema;
mod score;
mod write;

use base::setting::InvalidSetting;
use serde::{Deserialize, Serialize};

pub use matrix::{Matrix, Row};
pub use schema::{Funnel, Index, MATRIX, Table, VERSION};
pub use score::{Marginals, npmi};
pub use write::score;

/// Which pairs of words are scored, and how.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// Rarer words get no score.
    ///
    /// Source: ours: because two words that each occur once, together, have the highest PMI there is.
    pub min_count: u64,
    /// Keep at most this many of the remaining words, the most frequent. Without it, all are kept.
    pub max_words: Option<usize>,
    /// Which words may have a score.
    ///
    /// Source: ours: because punctuation and numbers relate to nothing in particular.
    pub words: Words,
    /// Pairs with a lower count get no score; they still count towards the marginals of their words.
    ///
    /// Source: ours: because PMI overrates rare pairs.
    pub min_pair_count: u64,
    /// What a score is. p is the share of units that contain a word or pair, out of all units, including those with no word that may have a
    /// score. With `distance`, p is a share of the sum of pair counts (both orders of each where order is ignored): a pair's own count, or
    /// for a word the counts of all pairs it is in. The sum covers pairs of two words that may have a score (`pmi.min_count`, `max_words`,
    /// `words`), a word with itself included, and pairs below `pmi.min_pair_count`; all others are ignored, as are words dropped from the
    /// counts.
    ///
    /// Source: ours: because its values have a fixed range; KAM-BERT, section 3.4, has `pmi`.
    pub measure: Measure,
    /// Context distribution smoothing, above 0 and at most 1: context counts are raised to this power (Levy, Goldberg and Dagan 2015,
    /// section 3.1: 0.75); 1 disables it. Below 1 the two orders of a pair differ. Not with `npmi`.
    ///
    /// Source: KAM-BERT, equation 7, which has none.
    pub smoothing: f64,
    /// Scores are lowered by its logarithm, at least 1 (in the same paper, the number of negatives, k); 1 disables it. Not with `measure =
    /// "npmi"`.
    ///
    /// Source: KAM-BERT, equation 7, which has none.
    pub shift: f64,
    /// How a score becomes a relevance from 0 to 1. Scores that are not positive become 0.
    ///
    /// Source: ours: because with KAM-BERT's factor Z (equation 7, not defined there; `max` here) a single pair sets the scale.
    pub relevance: Relevance,
    /// Keep at most this many pairs per word, at least 1, the highest scoring; a pair stays if it is in the top k of either word (with
    /// `directed` counts: of the first). Without it, all are kept.
    ///
    /// Source: ours: because it bounds the matrix by the number of words.
    pub top_k: Option<usize>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            min_count: 20,
            max_words: None,
            words: Words::default(),
            min_pair_count: 10,
            measure: Measure::default(),
            smoothing: 1.0,
            shift: 1.0,
            relevance: Relevance::default(),
            top_k: Some(100),
        }
    }
}

/// Which words may have a score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Words {
    /// Any word, punctuation and numbers included.
    All,
    /// Only words with a letter.
    #[default]
    Lettered,
}

/// What is computed of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// ln p(x, y) - ln p(x) - ln p(y).
    Pmi,
    /// The same, keeping only positive pairs.
    Ppmi,
    /// The same divided by -ln p(x, y), from -1 to 1.
    #[default]
    Npmi,
}

/// How a score comes into [0, 1]; what is not positive becomes 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Relevance {
    /// It is divided by the highest score (KAM-BERT).
    Max,
    /// It is divided by this quantile of the positive scores, above 0 and at most 1, and capped at 1.
    Quantile(f64),
    /// It is NPMI, whatever the score is.
    #[default]
    Npmi,
}

impl Config {
    /// Checks that the config can be meant.
    ///
    /// # Errors
    /// When a number is out of its range, or NPMI is to be smoothed or shifted, which would take it out of [-1, 1].
    pub fn check(&self) -> Result<(), InvalidSetting> {
        if !(self.smoothing > 0.0 && self.smoothing <= 1.0) {
            return Err(InvalidSetting::new("smoothing", self.smoothing, "above 0, at most 1"));
        }
        if !(self.shift >= 1.0 && self.shift.is_finite()) {
            return Err(InvalidSetting::new("shift", self.shift, "at least 1"));
        }
        if let Relevance::Quantile(quantile) = self.relevance
            && !(quantile > 0.0 && quantile <= 1.0)
        {
            return Err(InvalidSetting::new("relevance.quantile", quantile, "above 0, at most 1"));
        }
        let npmi = self.measure == Measure::Npmi || self.relevance == Relevance::Npmi;
        if npmi && self.smoothing < 1.0 {
            let expected = "1 with npmi, which is bounded only by shares as they are";
            return Err(InvalidSetting::new("smoothing", self.smoothing, expected));
        }
        if self.measure == Measure::Npmi && self.shift > 1.0 {
            return Err(InvalidSetting::new(
                "shift",
                self.shift,
                "1 with npmi, which is bounded only as it is",
            ));
        }
        if self.top_k == Some(0) {
            return Err(InvalidSetting::new("top_k", 0, "at least 1"));
        }
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::cast_possible_truncation, reason = "the nearest f32 is what is stored")]
mod tests {
    use super::*;
    use crate::count::{self, Adjacent, Counting, Distance, LEAST_MEMORY, Order, Read, Room, Weight, Within};
    use crate::word::Case;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float32Type, Float64Type, UInt32Type};
    use base::cancel::CancelToken;
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use std::fs::{self, File};
    use std::path::Path;
    use tempfile::{TempDir, tempdir};

    const TEXTS: [&str; 6] =
        ["heart pumps blood", "blood , heart", "cough fever", "fever cough heart", "cough", "rare pair"];

    fn counts(pairs: Counting) -> (TempDir, Read) {
        let dir = tempdir().unwrap();
        let config = count::Config {
            case: Case::Uncased,
            within: Within::Document,
            pairs,
            adjacent: Adjacent::Leave,
            min_count: 1,
            max_words: None,
            max_distinct: None,
        };
        let room = Room {
            memory: LEAST_MEMORY,
            threads: 1,
            folder: dir.path().to_owned(),
            cancel: CancelToken::NEVER,
        };
        let counted = count::count(&config, count::Share::Whole, &room, |feed| {
            TEXTS.iter().try_for_each(|text| feed.text(text))
        });
        counted.map_err(|e: count::Error| e).unwrap().write(dir.path()).unwrap();
        let read = Read::open(dir.path()).unwrap();
        (dir, read)
    }

    fn plain() -> Config {
        Config {
            min_count: 1,
            max_words: None,
            words: Words::Lettered,
            min_pair_count: 1,
            measure: Measure::Pmi,
            smoothing: 1.0,
            shift: 1.0,
            relevance: Relevance::Max,
            top_k: None,
        }
    }

    struct Scored {
        dir: TempDir,
        index: Index,
        matrix: Matrix,
    }

    fn scored(read: &Read, config: &Config) -> Scored {
        let dir = tempdir().unwrap();
        let index = score(read, config, dir.path()).unwrap();
        let matrix = Matrix::open(&dir.path().join(MATRIX)).unwrap();
        Scored { dir, index, matrix }
    }

    impl Scored {
        fn relevance(&self, a: &str, b: &str) -> f32 {
            self.matrix.relevance(self.matrix.id(a).unwrap(), self.matrix.id(b).unwrap())
        }

        /// Words, score and relevance of the pairs in the table.
        fn pairs(&self) -> Vec<(String, String, f64, f32)> {
            let file = File::open(self.dir.path().join(Table::Pairs.file())).unwrap();
            let reader = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().build().unwrap();
            let word = |id: u32| self.matrix.word(id).unwrap().to_owned();
            let mut all = Vec::new();
            for batch in reader.map(Result::unwrap) {
                for row in 0..batch.num_rows() {
                    let rank = |column: usize| batch.column(column).as_primitive::<UInt32Type>().value(row);
                    let score = batch.column(3).as_primitive::<Float64Type>().value(row);
                    all.push((
                        word(rank(0)),
                        word(rank(1)),
                        score,
                        batch.column(4).as_primitive::<Float32Type>().value(row),
                    ));
                }
            }
            all
        }
    }

    #[test]
    fn presence_is_scored_as_by_hand_and_the_highest_score_is_1() {
        let (_dir, read) = counts(Counting::Presence);
        let scored = scored(&read, &plain());
        // Of 6 texts: heart 3, blood 2, together 2; rare 1, pair 1, together 1.
        let pairs = scored.pairs();
        let of = |a: &str, b: &str| {
            let both = |x: &str, y: &str| x == a && y == b || x == b && y == a;
            pairs.iter().find(|(x, y, ..)| both(x, y)).unwrap()
        };
        assert!((of("heart", "blood").2 - 2f64.ln()).abs() < 1e-12);
        assert!((of("rare", "pair").2 - 6f64.ln()).abs() < 1e-12);
        assert!((scored.index.scale - 6f64.ln()).abs() < 1e-12);
        assert_eq!(scored.relevance("rare", "pair"), 1.0);
        assert_eq!(scored.relevance("blood", "heart"), (2f64.ln() / 6f64.ln()) as f32);
        assert_eq!(scored.relevance("heart", "cough"), 0.0, "rarer together than by chance");
        assert!(of("heart", "cough").2 < 0.0 && of("heart", "cough").3 == 0.0);
        assert_eq!((scored.relevance("heart", "heart"), scored.relevance("heart", "rare")), (1.0, 0.0));
        assert_eq!(scored.index.words.dropped["no letter"], 1);
        assert_eq!(scored.index.pairs.dropped["word left out"], 2);
        assert!(
            scored.matrix.id(",").is_none()
                && scored.matrix.id("").is_none()
                && scored.matrix.word(99).is_none()
        );
        assert_eq!(scored.matrix.row(99), Row { columns: &[], relevances: &[] });
        assert_eq!(scored.matrix.len(), read.words.len() - 1);
    }

    #[test]
    fn npmi_stays_within_its_bounds_and_rows_hold_both_orders() {
        for counting in [
            Counting::Presence,
            Counting::Window(2),
            Counting::Distance(Distance { window: 2, weight: Weight::Inverse, order: Order::Symmetric }),
            Counting::Distance(Distance { window: 3, weight: Weight::Equal, order: Order::Directed }),
        ] {
            let (_dir, read) = counts(counting);
            let scored =
                scored(&read, &Config { measure: Measure::Npmi, relevance: Relevance::Npmi, ..plain() });
            for (a, b, score, relevance) in scored.pairs() {
                assert!(
                    (-1.0..=1.0).contains(&score) && relevance == score.max(0.0) as f32,
                    "{a} {b} {score}"
                );
                assert_eq!(scored.relevance(&a, &b), relevance);
                if read.index.config.order() == Order::Symmetric {
                    assert_eq!(scored.relevance(&b, &a), relevance);
                }
            }
            assert!(scored.relevance("rare", "pair") > 0.9999);
        }
    }

    #[test]
    fn smoothing_lowers_rare_contexts_and_turns_scores() {
        let (_dir, read) = counts(Counting::Presence);
        let (sharp, smooth) =
            (scored(&read, &plain()), scored(&read, &Config { smoothing: 0.75, ..plain() }));
        let turned = |scored: &Scored| {
            let file = File::open(scored.dir.path().join(Table::Pairs.file())).unwrap();
            let batch = ParquetRecordBatchReaderBuilder::try_new(file)
                .unwrap()
                .build()
                .unwrap()
                .next()
                .unwrap()
                .unwrap();
            batch.column(5).as_primitive::<Float64Type>().iter().collect::<Vec<_>>()
        };
        assert!(turned(&sharp).iter().all(Option::is_none));
        // p(y) = f(y)^0.75 / sum: units of heart 3, cough 3, fever 2, blood 2, pumps 1, rare 1, pair 1.
        let sum = 2.0 * 3f64.powf(0.75) + 2.0 * 2f64.powf(0.75) + 3.0;
        let expected = |f: f64, g: f64| (2.0 / (f * g.powf(0.75) / sum)).ln();
        let at = smooth
            .pairs()
            .iter()
            .position(|(a, b, ..)| a == "heart" && b == "blood" || a == "blood" && b == "heart");
        let (a, _, score, _) = smooth.pairs()[at.unwrap()].clone();
        let (word, context) = if a == "heart" { (3.0, 2.0) } else { (2.0, 3.0) };
        assert!((score - expected(word, context)).abs() < 1e-12);
        assert!((turned(&smooth)[at.unwrap()].unwrap() - expected(context, word)).abs() < 1e-12);
        assert!(
            smooth.relevance("heart", "blood") < smooth.relevance("blood", "heart"),
            "the rarer context scores lower"
        );
    }

    #[test]
    fn filters_scales_and_the_best_of_each_word_do_what_they_say() {
        let (_dir, read) = counts(Counting::Presence);
        let shifted = scored(&read, &Config { shift: 2.0, measure: Measure::Ppmi, ..plain() });
        assert!(shifted.pairs().iter().all(|(.., score, _)| *score > 0.0));
        assert!((shifted.index.scale - 3f64.ln()).abs() < 1e-12);
        let often = scored(&read, &Config { min_pair_count: 2, ..plain() });
        assert_eq!(often.index.pairs.kept, 2);
        assert_eq!(often.relevance("rare", "pair"), 0.0);
        let median = scored(&read, &Config { relevance: Relevance::Quantile(0.5), ..plain() });
        assert!(median.index.scale < 6f64.ln() && median.relevance("rare", "pair") == 1.0);
        let best = scored(&read, &Config { top_k: Some(1), ..plain() });
        for word in ["heart", "blood", "pumps", "cough", "fever", "rare", "pair"] {
            let row = best.matrix.row(best.matrix.id(word).unwrap());
            assert!(!row.columns.is_empty() && row.columns.is_sorted(), "{word}");
        }
        assert!(best.index.pairs.kept < scored(&read, &plain()).index.pairs.kept);
        let few = scored(&read, &Config { max_words: Some(3), min_count: 2, ..plain() });
        assert_eq!(
            (few.matrix.len(), few.index.words.kept, few.index.words.dropped["beyond max_words"]),
            (3, 3, 1)
        );
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        let refused = |config: Config, says: &str| {
            let error = config.check().unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        };
        refused(Config { smoothing: 0.0, ..plain() }, "smoothing is 0");
        refused(Config { smoothing: 0.75, measure: Measure::Npmi, ..plain() }, "1 with npmi");
        refused(Config { shift: 5.0, measure: Measure::Npmi, ..plain() }, "1 with npmi");
        refused(Config { shift: 0.5, ..plain() }, "at least 1");
        refused(Config { relevance: Relevance::Quantile(1.5), ..plain() }, "quantile is 1.5");
        refused(Config { top_k: Some(0), ..plain() }, "top_k");
    }

    #[test]
    fn equal_counts_give_equal_bytes_and_a_damaged_matrix_is_refused() {
        let (_dir, read) = counts(Counting::Presence);
        let (one, two) = (scored(&read, &plain()), scored(&read, &plain()));
        for file in ["index.json", "words.parquet", "pairs.parquet", MATRIX] {
            assert!(
                fs::read(one.dir.path().join(file)).unwrap() == fs::read(two.dir.path().join(file)).unwrap()
            );
        }
        assert_eq!(Index::read(one.dir.path()).unwrap(), one.index);
        let index = two.dir.path().join("index.json");
        let other = fs::read_to_string(&index).unwrap().replace("\"entries\": ", "\"entries\": 1");
        base::whole::write_whole(&index, other.as_bytes()).unwrap();
        let error = Index::read(two.dir.path()).unwrap_err().to_string();
        assert!(error.contains("damaged") && error.contains("score the counts again"), "{error}");
        let path = one.dir.path().join("copy");
        let sound = fs::read(one.dir.path().join(MATRIX)).unwrap();
        let refused = |bytes: &[u8]| {
            base::whole::write_whole(Path::new(&path), bytes).unwrap();
            Matrix::open(&path).unwrap_err().to_string()
        };
        for at in 0..sound.len() {
            let mut bytes = sound.clone();
            bytes[at] ^= 4;
            assert!(refused(&bytes).contains("score the counts again"), "byte {at}");
        }
        for length in [0, 7, 40, 48, sound.len() - 1] {
            assert!(refused(&sound[..length]).contains("score the counts again"), "{length} bytes");
        }
        assert!(
            Matrix::open(&one.dir.path().join("none")).unwrap_err().to_string().contains("cannot be opened")
        );
    }
}
