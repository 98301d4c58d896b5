//! Many short texts in one buffer.

/// Texts by number, from 0. A `String` each would cost more for its place than for its letters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Texts {
    bytes: String,
    ends: Vec<usize>,
}

impl Texts {
    pub(crate) fn push(&mut self, text: &str) {
        self.bytes.push_str(text);
        self.ends.push(self.bytes.len());
    }

    pub(crate) fn get(&self, number: u32) -> &str {
        let number = number as usize;
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        &self.bytes[start..self.ends[number]]
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_come_back_by_number() {
        let mut texts = Texts::default();
        ["", "fièvre", "", "flu"].iter().for_each(|text| texts.push(text));
        let all: Vec<&str> = (0..4).map(|number| texts.get(number)).collect();
        assert_eq!((all, texts.len()), (vec!["", "fièvre", "", "flu"], 4));
    }
}
