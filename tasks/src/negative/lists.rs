//! Many short lists in two arrays, by number.

/// A list per key, one after the other.
#[derive(Debug)]
pub(super) struct Lists<T> {
    /// Where the list of each key begins, and the end of the last.
    starts: Vec<usize>,
    items: Vec<T>,
}

impl<T> Lists<T> {
    /// The lists of pairs (key, item) that come sorted by key.
    pub(super) fn new(sorted: impl IntoIterator<Item = (u32, T)>) -> Self {
        let (mut starts, mut items) = (Vec::new(), Vec::new());
        for (key, item) in sorted {
            while starts.len() <= key as usize {
                starts.push(items.len());
            }
            items.push(item);
        }
        starts.push(items.len());
        Self { starts, items }
    }

    /// The list of `key`, empty where it has none.
    pub(super) fn get(&self, key: u32) -> &[T] {
        match self.starts.get(key as usize..) {
            Some(&[start, end, ..]) => &self.items[start..end],
            _ => &[],
        }
    }

    /// Whether every list is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_with_and_without_items_have_their_lists() {
        let lists = Lists::new([(1, 'a'), (1, 'b'), (4, 'c')]);
        let all: Vec<String> = (0..7).map(|key| lists.get(key).iter().collect()).collect();
        assert_eq!(all, ["", "ab", "", "", "c", "", ""]);
        assert!(!lists.is_empty() && Lists::<u32>::new([]).is_empty());
        assert_eq!(Lists::<u32>::new([]).get(0), [0; 0]);
    }
}
