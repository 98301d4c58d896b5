//! A set of small numbers.

/// One bit for each number.
#[derive(Debug, Clone)]
pub(crate) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    /// An empty set of numbers below `size`.
    pub(crate) fn new(size: usize) -> Self {
        Self { words: vec![0; size.div_ceil(64)] }
    }

    pub(crate) fn set(&mut self, number: u32) {
        self.words[number as usize / 64] |= 1 << (number % 64);
    }

    pub(crate) fn get(&self, number: u32) -> bool {
        self.words[number as usize / 64] >> (number % 64) & 1 == 1
    }

    pub(crate) fn count(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Adds what `other`, of the same size, has.
    pub(crate) fn join(&mut self, other: &Self) {
        self.words.iter_mut().zip(&other.words).for_each(|(word, more)| *word |= more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_in_once_they_are_set() {
        let (mut one, mut two) = (Bits::new(130), Bits::new(130));
        [0, 64, 129, 129].iter().for_each(|&number| one.set(number));
        two.set(5);
        assert_eq!((one.count(), one.get(129), one.get(5)), (3, true, false));
        one.join(&two);
        assert_eq!((one.count(), one.get(5)), (4, true));
    }
}
