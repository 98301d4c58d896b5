//! Tree numbers and the descriptors that bear them: who stands above whom.

/// Which numbers the descriptors `T` bear, held until all are known. A number's parent is the number without its last `.NNN`.
#[derive(Debug)]
pub(super) struct Tree<T> {
    text: String,
    /// Where each number ends in `text`, and who bears it; it begins where the one before ends.
    numbers: Vec<(usize, T)>,
}

/// What stands above a number.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Above<'a, T> {
    /// Nothing: the number is the top of its tree (`D03`).
    Root,
    /// The bearers of the parent number; one, as published, none if the file lacks it.
    Parents(&'a [(&'a str, T)]),
}

impl<T: Copy + Ord> Tree<T> {
    pub(super) fn new() -> Self {
        Self { text: String::new(), numbers: Vec::new() }
    }

    pub(super) fn add(&mut self, number: &str, bearer: T) {
        self.text.push_str(number);
        self.numbers.push((self.text.len(), bearer));
    }

    /// Tells `tell` of every number's bearer and what is above it, in an order that does not depend on the order of `add`.
    pub(super) fn each<E>(&self, mut tell: impl FnMut(T, &Above<'_, T>) -> Result<(), E>) -> Result<(), E> {
        let mut start = 0;
        let mut sorted: Vec<(&str, T)> = Vec::with_capacity(self.numbers.len());
        for &(end, bearer) in &self.numbers {
            sorted.push((&self.text[start..end], bearer));
            start = end;
        }
        sorted.sort_unstable();
        for &(number, bearer) in &sorted {
            let above = match number.rsplit_once('.') {
                None => Above::Root,
                Some((parent, _)) => {
                    let from = sorted.partition_point(|&(other, _)| other < parent);
                    let bearers = sorted[from..].iter().take_while(|&&(other, _)| other == parent).count();
                    Above::Parents(&sorted[from..from + bearers])
                }
            };
            tell(bearer, &above)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edges(numbers: &[(&str, u32)]) -> Vec<(u32, Option<Vec<u32>>)> {
        let mut tree = Tree::new();
        numbers.iter().for_each(|&(number, bearer)| tree.add(number, bearer));
        let mut edges = Vec::new();
        tree.each::<()>(|bearer, above| {
            edges.push(match above {
                Above::Root => (bearer, None),
                Above::Parents(parents) => {
                    (bearer, Some(parents.iter().map(|&(_, parent)| parent).collect()))
                }
            });
            Ok(())
        })
        .unwrap();
        edges
    }

    #[test]
    fn the_parent_is_the_number_without_its_last_part() {
        let found = edges(&[("D03.438.221", 3), ("D03", 1), ("D03.438", 2), ("C23.1", 4), ("D03.43", 5)]);
        let expected =
            [(4, Some(vec![])), (1, None), (5, Some(vec![1])), (2, Some(vec![1])), (3, Some(vec![2]))];
        assert_eq!(found, expected);
    }

    #[test]
    fn the_order_of_numbers_does_not_matter_and_all_bearers_of_one_count() {
        let one = edges(&[("A", 2), ("A", 1), ("A.1", 3)]);
        assert_eq!(one, edges(&[("A.1", 3), ("A", 1), ("A", 2)]));
        assert_eq!(one[2], (3, Some(vec![1, 2])));
    }
}
