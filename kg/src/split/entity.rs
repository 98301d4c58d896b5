//! Which entities are held out.

use super::Part;
use crate::Refused;
use crate::table::Triple;

/// The part of each of `entities` entities: the first of those of the triples that mention it, so it is held out only if all of them are.
/// An entity that no triple mentions, or only such as are set aside, is [`Part::Aside`].
///
/// # Errors
/// When a triple has no part, or names an entity beyond those.
pub fn entities(entities: usize, triples: &[Triple], part: &[Part]) -> Result<Vec<Part>, Refused> {
    if triples.len() != part.len() {
        return Err(Refused::new(format!("{} parts for {} triples", part.len(), triples.len())));
    }
    let mut of = vec![Part::Aside; entities];
    for (triple, &part) in triples.iter().zip(part) {
        for entity in [triple.subject, triple.object] {
            let of = of.get_mut(entity.index()).ok_or_else(|| {
                Refused::new(format!("{triple:?} names an entity that is not among the {entities} entities"))
            })?;
            *of = part.min(*of);
        }
    }
    Ok(of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::{EntityId, RelationId};

    #[test]
    fn an_entity_is_held_out_if_all_its_triples_are() {
        let triple = |subject, object| Triple {
            subject: EntityId(subject),
            relation: RelationId(0),
            object: EntityId(object),
        };
        let triples = [triple(0, 1), triple(1, 2), triple(2, 3), triple(4, 4)];
        let part = [Part::Train, Part::Test, Part::Valid, Part::Aside];
        let found = entities(6, &triples, &part).unwrap();
        let expected = [Part::Train, Part::Train, Part::Valid, Part::Valid, Part::Aside, Part::Aside];
        assert_eq!(found, expected);
        assert!(entities(4, &triples, &part).unwrap_err().to_string().contains("EntityId(4)"));
        assert!(entities(6, &triples, &part[1..]).unwrap_err().to_string().contains("3 parts for 4 triples"));
    }
}
