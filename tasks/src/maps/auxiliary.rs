//! Auxiliary terms: words that are not in a text, but highly related to those that are. Knows ids of words and no token.

use text::pmi::Matrix;

/// How relevant words are for each other: above 0 and at most 1 for the pairs that have any, without the diagonal.
pub trait Relevance: Sync {
    /// Number of a word, by its spelling.
    fn id(&self, word: &str) -> Option<u32>;

    /// Spelling of a word, by its number.
    fn word(&self, id: u32) -> Option<&str>;

    /// The words related to a word, ascending, and how relevant each is; none for a number without a word.
    fn related(&self, id: u32) -> (&[u32], &[f32]);

    /// Number of words; ids are below it.
    fn words(&self) -> usize;
}

impl Relevance for Matrix {
    fn id(&self, word: &str) -> Option<u32> {
        Matrix::id(self, word)
    }

    fn word(&self, id: u32) -> Option<&str> {
        Matrix::word(self, id)
    }

    fn related(&self, id: u32) -> (&[u32], &[f32]) {
        let row = self.row(id);
        (row.columns, row.relevances)
    }

    fn words(&self) -> usize {
        self.len()
    }
}

/// A word that is not in the text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Term {
    /// Its number.
    pub id: u32,
    /// Average of its relevance for the text's different words; 0 counts for those that are not related to it, or have no number.
    pub relevance: f64,
}

/// Finds terms, text after text.
#[derive(Debug, Clone, Default)]
pub struct Finder {
    /// Sum of relevance for each word; 0 between calls.
    sums: Vec<f64>,
    /// Words with a sum.
    touched: Vec<u32>,
}

impl Finder {
    /// The `most` words with the highest average relevance (above 0) for a text of `different` different words, those among them
    /// that have a number being `text` (none twice); ties in the order of spelling.
    pub fn find(&mut self, matrix: &dyn Relevance, text: &[u32], different: usize, most: usize) -> Vec<Term> {
        if most == 0 {
            return Vec::new();
        }
        self.sums.resize(matrix.words(), 0.0);
        let mut text = text.to_vec();
        // Sums do not depend on the order of the words in the text.
        text.sort_unstable();
        for &word in &text {
            let (related, relevance) = matrix.related(word);
            for (&id, &relevance) in related.iter().zip(relevance) {
                let sum = &mut self.sums[id as usize];
                if *sum == 0.0 {
                    self.touched.push(id);
                }
                *sum += f64::from(relevance);
            }
        }
        for &word in &text {
            if let Some(sum) = self.sums.get_mut(word as usize) {
                *sum = 0.0;
            }
        }
        let mut best = Best { matrix, most, least: 0.0, terms: Vec::with_capacity(most + 1) };
        for id in self.touched.drain(..) {
            best.offer(id, std::mem::take(&mut self.sums[id as usize]));
        }
        let mut best = best.terms;
        best.iter_mut().for_each(|term| term.relevance /= different.max(1) as f64);
        best
    }
}

/// The best terms so far, best first.
struct Best<'a> {
    matrix: &'a dyn Relevance,
    most: usize,
    /// What a term must have to be among them.
    least: f64,
    terms: Vec<Term>,
}

impl Best<'_> {
    #[inline]
    fn offer(&mut self, id: u32, relevance: f64) {
        if relevance < self.least || relevance == 0.0 {
            return;
        }
        let spelling = self.matrix.word(id);
        let place = self.terms.partition_point(|other| {
            other.relevance > relevance
                || other.relevance == relevance && self.matrix.word(other.id) < spelling
        });
        self.terms.insert(place, Term { id, relevance });
        self.terms.truncate(self.most);
        if self.terms.len() == self.most {
            self.least = self.terms.last().map_or(0.0, |term| term.relevance);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A square by hand.
    pub(crate) struct Square {
        words: Vec<String>,
        /// Related words of each, and how much.
        pub(crate) rows: Vec<(Vec<u32>, Vec<f32>)>,
    }

    impl Square {
        /// Of `words` and pairs of their numbers.
        pub(crate) fn new(words: &[&str], pairs: &[(usize, usize, f32)]) -> Self {
            let mut rows = vec![(Vec::new(), Vec::new()); words.len()];
            let mut both: Vec<(usize, usize, f32)> =
                pairs.iter().flat_map(|&(a, b, r)| [(a, b, r), (b, a, r)]).collect();
            both.sort_by_key(|&(a, b, _)| (a, b));
            for (a, b, relevance) in both {
                rows[a].0.push(u32::try_from(b).unwrap());
                rows[a].1.push(relevance);
            }
            Self { words: words.iter().map(|&word| word.to_owned()).collect(), rows }
        }
    }

    impl Relevance for Square {
        fn id(&self, word: &str) -> Option<u32> {
            self.words.iter().position(|found| found == word).map(|id| u32::try_from(id).unwrap())
        }

        fn word(&self, id: u32) -> Option<&str> {
            self.words.get(id as usize).map(String::as_str)
        }

        fn related(&self, id: u32) -> (&[u32], &[f32]) {
            self.rows.get(id as usize).map_or((&[], &[]), |(ids, relevance)| (ids, relevance))
        }

        fn words(&self) -> usize {
            self.words.len()
        }
    }

    /// Words in the order of how often they are, which is not that of spelling.
    pub(crate) fn square() -> Square {
        Square::new(
            &["the", "fever", "cough", "virus", "flu", "best", "buy"],
            &[
                (1, 2, 1.0),
                (1, 3, 0.75),
                (2, 3, 0.5),
                (2, 4, 0.75),
                (3, 4, 1.0),
                (1, 5, 0.5),
                (0, 5, 0.25),
                (0, 6, 0.25),
                (5, 6, 1.0),
            ],
        )
    }

    fn found(finder: &mut Finder, text: &[&str], most: usize) -> Vec<(String, f64)> {
        let square = square();
        let ids: Vec<u32> = text.iter().filter_map(|word| square.id(word)).collect();
        let terms = finder.find(&square, &ids, text.len(), most);
        terms.iter().map(|term| (square.word(term.id).unwrap().to_owned(), term.relevance)).collect()
    }

    #[test]
    fn terms_are_the_best_on_average_and_not_in_the_text() {
        let mut finder = Finder::default();
        // virus 1.25 / 2; flu 0.75 / 2; best 0.5 / 2.
        let expected = [("virus", 0.625), ("flu", 0.375), ("best", 0.25)].map(|(w, r)| (w.to_owned(), r));
        assert_eq!(found(&mut finder, &["fever", "cough"], 2), expected[..2]);
        assert_eq!(found(&mut finder, &["cough", "fever"], 9), expected);
        // A word that nobody knows counts as one that is not related.
        let halved = expected.map(|(word, relevance)| (word, relevance / 2.0));
        assert_eq!(found(&mut finder, &["cough", "x", "fever", "y"], 3), halved);
    }

    #[test]
    fn ties_are_in_the_order_of_spelling_and_nothing_stays_from_the_text_before() {
        let mut finder = Finder::default();
        found(&mut finder, &["fever", "virus", "the"], 5);
        let both = [("best", 0.25), ("buy", 0.25)].map(|(word, relevance)| (word.to_owned(), relevance));
        assert_eq!(found(&mut finder, &["the"], 2), both);
        assert_eq!(found(&mut finder, &["the"], 1), both[..1]);
        assert_eq!(found(&mut finder, &["the"], 0), []);
        assert_eq!(found(&mut finder, &["x"], 2), []);
        assert_eq!(found(&mut finder, &[], 2), []);
        // cough 0.75, virus 1.0: every other word is in the text or unrelated.
        let flu = [("virus", 1.0), ("cough", 0.75)].map(|(word, relevance)| (word.to_owned(), relevance));
        assert_eq!(found(&mut finder, &["flu"], 3), flu);
    }
    #[test]
    fn however_much_is_related_the_terms_are_those_of_the_definition() {
        use base::rng::RngKey;
        let words: Vec<String> = (0..40).map(|word| format!("w{}", (word * 17) % 40)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut finder = Finder::default();
        for density in [2_u64, 8, 30] {
            let draw = |a: usize, b: usize| RngKey::new(density).at(a as u64).at(b as u64);
            let all = (0..40).flat_map(|a| (a + 1..40).map(move |b| (a, b)));
            let related = all.filter(|&(a, b)| draw(a, b).below(density) == 0);
            // Eighths, so that there are ties.
            let share = |(a, b)| (a, b, [0.125, 0.25, 0.5, 1.0][(a + b) % 4]);
            let square = Square::new(&words, &related.map(share).collect::<Vec<_>>());
            for first in 0..35_u32 {
                let text = [first, first + 2, first + 5];
                let sum = |id: u32| {
                    let of = |&word: &u32| {
                        let (ids, relevance) = square.related(word);
                        ids.iter().position(|&other| other == id).map_or(0.0, |at| f64::from(relevance[at]))
                    };
                    text.iter().map(of).sum::<f64>()
                };
                let mut expected: Vec<(u32, f64)> =
                    (0..40).filter(|id| !text.contains(id)).map(|id| (id, sum(id))).collect();
                expected.retain(|&(_, sum)| sum > 0.0);
                expected.sort_by(|a, b| b.1.total_cmp(&a.1).then(square.word(a.0).cmp(&square.word(b.0))));
                expected.truncate(6);
                let found = finder.find(&square, &text, 4, 6);
                let found: Vec<(u32, f64)> =
                    found.iter().map(|term| (term.id, term.relevance * 4.0)).collect();
                assert_eq!(found, expected);
            }
        }
    }
}
