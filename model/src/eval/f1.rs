//! Accuracy, precision, recall and F1 of classes, and Matthews' correlation, from the table of what was meant and what was said.

use super::{Error, at_least, classes_below, same_length};

/// How often something was found, invented and missed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Said and true.
    pub hits: u64,
    /// Said and not true.
    pub invented: u64,
    /// True and not said.
    pub missed: u64,
}

impl Counts {
    /// Adds others: micro averages are those of sums.
    pub fn add(&mut self, other: &Counts) {
        let Counts { hits, invented, missed } = *other;
        self.hits += hits;
        self.invented += invented;
        self.missed += missed;
    }

    /// Share of what was said that is true, 0 to 1; 0 where nothing was said.
    #[must_use]
    pub fn precision(&self) -> f64 {
        share(self.hits, self.hits + self.invented)
    }

    /// Share of what is true that was said, 0 to 1; 0 where nothing is true.
    #[must_use]
    pub fn recall(&self) -> f64 {
        share(self.hits, self.hits + self.missed)
    }

    /// Harmonic mean of precision and recall, 0 to 1; 0 where nothing was said and nothing is true.
    #[must_use]
    pub fn f1(&self) -> f64 {
        share(2 * self.hits, 2 * self.hits + self.invented + self.missed)
    }
}

/// The sum of several.
impl<'a> std::iter::Sum<&'a Counts> for Counts {
    fn sum<I: Iterator<Item = &'a Counts>>(all: I) -> Self {
        all.fold(Counts::default(), |mut sum, counts| {
            sum.add(counts);
            sum
        })
    }
}

/// Mean F1 of classes; a class that is neither said nor true counts as 0. `None` without classes.
#[must_use]
pub fn macro_f1(classes: &[Counts]) -> Option<f64> {
    (!classes.is_empty()).then(|| classes.iter().map(Counts::f1).sum::<f64>() / classes.len() as f64)
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// How many samples of each true class were said to be of each class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confusion {
    classes: usize,
    samples: u64,
    /// `[true class x said class]`.
    cells: Vec<u64>,
}

impl Confusion {
    /// Counts samples of `classes` classes.
    ///
    /// # Errors
    /// When there are no samples, lengths differ, or a class is none of them.
    pub fn new(truth: &[usize], said: &[usize], classes: usize) -> Result<Self, Error> {
        same_length("truth", truth, "predicted", said)?;
        at_least("samples", truth.len(), 1)?;
        classes_below("truth", truth, classes)?;
        classes_below("predicted", said, classes)?;
        let mut cells = vec![0; classes * classes];
        truth.iter().zip(said).for_each(|(&truth, &said)| cells[truth * classes + said] += 1);
        Ok(Self { classes, samples: truth.len() as u64, cells })
    }

    fn cell(&self, truth: usize, said: usize) -> u64 {
        self.cells[truth * self.classes + said]
    }

    /// Share of samples whose class was said.
    #[must_use]
    pub fn accuracy(&self) -> f64 {
        share((0..self.classes).map(|class| self.cell(class, class)).sum(), self.samples)
    }

    /// Counts of each class, by number. Of classes that are absent from the samples, too: numbers never shift.
    #[must_use]
    pub fn per_class(&self) -> Vec<Counts> {
        let counts = |class| {
            let hits = self.cell(class, class);
            let said: u64 = (0..self.classes).map(|truth| self.cell(truth, class)).sum();
            let there: u64 = (0..self.classes).map(|said| self.cell(class, said)).sum();
            Counts { hits, invented: said - hits, missed: there - hits }
        };
        (0..self.classes).map(counts).collect()
    }

    /// Counts of all classes but one that says that there is nothing (`false` of relation extraction): something said where nothing is, is
    /// invented; nothing said where something is, is missed; one thing said for another is both.
    #[must_use]
    pub fn without(&self, nothing: usize) -> Vec<Counts> {
        let all = self.per_class().into_iter().enumerate();
        all.filter(|(class, _)| *class != nothing).map(|(_, counts)| counts).collect()
    }

    /// As [`Confusion::without`], the way the code of MT-BERT counts (golden i): classes that neither occur nor are said are gone from its table, the
    /// others move up, and of those that are left it takes as many as there are classes but one. Of one class gone that is all of them, also what
    /// says that there is nothing; of two its count ends in an error, which it reports as 0: no class here.
    #[must_use]
    pub fn shifted(&self, nothing: usize) -> Vec<Counts> {
        let (mut found, wanted) = (self.without(nothing), self.classes.saturating_sub(1));
        found.extend(self.per_class().get(nothing));
        found.retain(|counts| *counts != Counts::default());
        if found.len() < wanted {
            return vec![];
        }
        found.truncate(wanted);
        found
    }

    /// Matthews' correlation of truth and answer (Gorodkin 2004 for more than two classes), -1 to 1: CoLA's metric. `None` where one of
    /// them has one class alone; benchmarks count that as 0.
    #[must_use]
    pub fn matthews(&self) -> Option<f64> {
        let classes = self.per_class();
        let samples = self.samples as f64;
        let hits: u64 = classes.iter().map(|class| class.hits).sum();
        let (mut product, mut said_squares, mut true_squares) = (0.0, 0.0, 0.0);
        for class in &classes {
            let (said, there) = ((class.hits + class.invented) as f64, (class.hits + class.missed) as f64);
            product += said * there;
            said_squares += said * said;
            true_squares += there * there;
        }
        let spread = (samples * samples - said_squares) * (samples * samples - true_squares);
        (spread > 0.0).then(|| (hits as f64 * samples - product) / spread.sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_by_hand() {
        // Classes 0, 1 and 2 = nothing.
        let truth = [0, 0, 0, 1, 1, 2, 2, 2];
        let said = [0, 0, 1, 1, 2, 2, 0, 2];
        let table = Confusion::new(&truth, &said, 3).unwrap();
        assert_eq!(table.accuracy(), 5.0 / 8.0);
        let positive = table.without(2);
        assert_eq!(positive[0], Counts { hits: 2, invented: 1, missed: 1 });
        assert_eq!(positive[1], Counts { hits: 1, invented: 1, missed: 1 });
        let micro: Counts = positive.iter().sum();
        assert_eq!((micro.precision(), micro.recall(), micro.f1()), (0.6, 0.6, 0.6));
        assert_eq!(macro_f1(&positive), Some((2.0 / 3.0 + 0.5) / 2.0));
        assert_eq!(macro_f1(&[]), None);
    }

    #[test]
    fn an_absent_class_keeps_its_number_and_counts_as_nothing_found() {
        let table = Confusion::new(&[0, 2], &[0, 2], 3).unwrap();
        let classes = table.per_class();
        assert_eq!((classes[1], classes[2].hits), (Counts::default(), 1));
        assert_eq!(macro_f1(&classes), Some(2.0 / 3.0));
    }

    #[test]
    fn matthews_by_his_formula_and_undefined_for_one_class() {
        // tp 6, tn 3, fp 1, fn 2: (18 - 2) / sqrt(7 x 8 x 4 x 5).
        let truth = [[1; 8].as_slice(), &[0; 4]].concat();
        let said = [[1; 6].as_slice(), &[0; 2], &[1; 1], &[0; 3]].concat();
        let table = Confusion::new(&truth, &said, 2).unwrap();
        let expected = 16.0 / (7.0_f64 * 8.0 * 4.0 * 5.0).sqrt();
        assert!((table.matthews().unwrap() - expected).abs() < 1e-12);
        assert_eq!(Confusion::new(&[0, 1], &[1, 1], 2).unwrap().matthews(), None);
        assert_eq!(Confusion::new(&[0, 1, 2], &[0, 1, 2], 3).unwrap().matthews(), Some(1.0));
    }

    #[test]
    fn what_cannot_be_counted_is_refused() {
        assert!(matches!(Confusion::new(&[], &[], 2), Err(Error::Few { .. })));
        assert!(matches!(Confusion::new(&[0], &[0, 1], 2), Err(Error::Lengths { .. })));
        assert!(matches!(
            Confusion::new(&[0, 2], &[0, 1], 2),
            Err(Error::Class { what: "truth", index: 1, .. })
        ));
        assert!(matches!(Confusion::new(&[0], &[7], 2), Err(Error::Class { what: "predicted", .. })));
    }
}
