//! A few labels that stand in many rows: vocabularies, relations.

use std::collections::HashMap;

/// Labels in the order in which they were met, each with what is to be known of it.
#[derive(Debug)]
pub(super) struct Labels<V> {
    entries: Vec<(Box<str>, V)>,
    numbers: HashMap<Box<str>, u32, ahash::RandomState>,
    last: u32,
}

impl<V> Labels<V> {
    pub(super) fn new() -> Self {
        Self { entries: Vec::new(), numbers: HashMap::default(), last: 0 }
    }

    /// The number of a label; `know` is asked once for each.
    pub(super) fn number(&mut self, label: &str, know: impl FnOnce() -> V) -> u32 {
        // Rows of one kind stand together in published files.
        if let Some((last, _)) = self.entries.get(self.last as usize)
            && **last == *label
        {
            return self.last;
        }
        self.last = self.numbers.get(label).copied().unwrap_or_else(|| {
            let number = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
            self.entries.push((label.into(), know()));
            self.numbers.insert(label.into(), number);
            number
        });
        self.last
    }

    /// What is known of a label.
    pub(super) fn value(&self, number: u32) -> &V {
        &self.entries[number as usize].1
    }

    pub(super) fn value_mut(&mut self, number: u32) -> &mut V {
        &mut self.entries[number as usize].1
    }

    pub(super) fn label(&self, number: u32) -> &str {
        &self.entries[number as usize].0
    }

    /// All labels and what is known of them, in the order of their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &V)> {
        self.entries.iter().map(|(label, value)| (&**label, value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_has_one_number_and_is_asked_for_once() {
        let (mut labels, mut asked) = (Labels::new(), 0);
        let numbers: Vec<u32> = ["a", "b", "b", "a", "", "b"]
            .map(|label| {
                labels.number(label, || {
                    asked += 1;
                    label.len()
                })
            })
            .into();
        assert_eq!((numbers, asked), (vec![0, 1, 1, 0, 2, 1], 3));
        assert_eq!((labels.label(2), *labels.value(1)), ("", 1));
    }
}
