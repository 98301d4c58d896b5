//! The names of a graph's entities.

use std::collections::HashMap;

/// How many entities are found.
pub(super) const BEST: usize = 5;

/// Names of entities, each pair once; those of one text stand together, since they have one vector.
#[derive(Debug, Default)]
pub(super) struct Names {
    texts: Vec<String>,
    /// Of each text, those that it names, rising.
    entities: Vec<Vec<u32>>,
    places: HashMap<String, usize>,
}

impl Names {
    /// Adds a name of an entity; case makes no difference.
    pub(super) fn push(&mut self, text: &str, entity: u32) {
        let folded = fold(text);
        let next = self.texts.len();
        let place = *self.places.entry(folded).or_insert(next);
        if place == next {
            self.texts.push(text.to_owned());
            self.entities.push(vec![entity]);
        } else if let Err(at) = self.entities[place].binary_search(&entity) {
            self.entities[place].insert(at, entity);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Different texts.
    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }

    /// The texts in blocks of this many, with the entities that each of them names.
    pub(super) fn blocks(&self, size: usize) -> impl Iterator<Item = (Vec<&str>, &[Vec<u32>])> {
        let blocks = self.texts.chunks(size).zip(self.entities.chunks(size));
        blocks.map(|(texts, entities)| (texts.iter().map(String::as_str).collect(), entities))
    }

    /// The entities that have the very name, in the order of their keys.
    pub(super) fn exactly(&self, text: &str) -> Vec<(u32, f32)> {
        let entities = self.places.get(&fold(text)).and_then(|&place| self.entities.get(place));
        entities.into_iter().flatten().take(BEST).map(|&entity| (entity, 1.0)).collect()
    }
}

fn fold(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_very_name_names_all_its_entities() {
        let mut names = Names::default();
        for (text, entity) in [("Heart  Attack", 4), ("heart attack", 2), ("Fever", 1)] {
            names.push(text, entity);
        }
        assert_eq!(names.exactly(" HEART attack"), [(2, 1.0), (4, 1.0)]);
        assert_eq!(names.exactly("attack"), []);
    }
}
