//! Entities by semantic type.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::table::{Entity, SemanticType};

/// How many entities are of which type.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// Entities by type; one of several types counts in each.
    pub entities: BTreeMap<String, u64>,
    /// Entities without a type.
    pub untyped: u64,
    /// Entities of more than one type.
    pub several: u64,
}

/// The types of `entities`.
#[must_use]
pub fn report(entities: &[Entity]) -> Report {
    let mut types: BTreeMap<&SemanticType, u64> = BTreeMap::new();
    let (mut untyped, mut several) = (0, 0);
    for entity in entities {
        untyped += u64::from(entity.types.is_empty());
        several += u64::from(entity.types.len() > 1);
        for semantic_type in &entity.types {
            *types.entry(semantic_type).or_insert(0) += 1;
        }
    }
    let mut named = BTreeMap::new();
    for (semantic_type, count) in types {
        *named.entry(label(semantic_type)).or_insert(0) += count;
    }
    Report { entities: named, untyped, several }
}

/// A type for people: `Sign or Symptom (T184)`, or the name alone.
#[must_use]
pub fn label(semantic_type: &SemanticType) -> String {
    match &semantic_type.code {
        Some(code) => format!("{} ({code})", semantic_type.name),
        None => semantic_type.name.clone(),
    }
}

/// The types of an entity for people, joined by commas.
#[must_use]
pub fn labels(entity: &Entity) -> String {
    let labels: Vec<String> = entity.types.iter().map(label).collect();
    labels.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::summary::testing::entities;

    #[test]
    fn an_entity_counts_in_each_of_its_types() {
        let of = |code: Option<&str>, name: &str| SemanticType {
            code: code.map(str::to_owned),
            name: name.to_owned(),
        };
        let mut all = entities(4);
        all[0].types = vec![of(None, "disease"), of(Some("T047"), "Disease or Syndrome")];
        all[1].types = vec![of(Some("T047"), "Disease or Syndrome")];
        let found = report(&all);
        assert_eq!((found.untyped, found.several), (2, 1));
        let counts: Vec<_> = found.entities.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        assert_eq!(counts, [("Disease or Syndrome (T047)", 2), ("disease", 1)]);
        assert_eq!(labels(&all[0]), "disease, Disease or Syndrome (T047)");
    }
}
