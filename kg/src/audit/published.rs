//! What sources publish as false beside what the graph states. A negative that a shown triple states tells a model two things at once.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::other_parts;
use super::statement::Statements;
use crate::Refused;
use crate::split::{Part, View};
use crate::table::id::dense;
use crate::table::{EntityId, Negative, RelationId, Triple};

/// Published negatives in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Published {
    /// All of them, by the part in which they are published; `none` if in none.
    pub negatives: BTreeMap<String, u64>,
    /// Those that name something that is in no triple.
    pub beside_the_graph: u64,
    /// Those that a triple of this part says as well, in the same words, an inverse's or a symmetric relation's; by the part that shows most.
    pub also_stated: BTreeMap<&'static str, u64>,
}

/// Looks whether a triple says what a negative says.
///
/// # Errors
/// When there are not as many parts as triples.
pub fn published(view: &View, part: &[Part], negatives: &[Negative]) -> Result<Published, Refused> {
    let mut published = Published::default();
    if negatives.is_empty() {
        return Ok(published);
    }
    if part.len() != view.triples().len() {
        return Err(other_parts(view, part.len()));
    }
    let statements = Statements::new(view, &[])?;
    let rows = statements.rows(view, |row| part.get(row).copied());
    let entities: HashMap<&str, u32> =
        view.entities().iter().enumerate().map(|(at, entity)| (entity.key, dense(at))).collect();
    let relations: HashMap<&str, u32> =
        view.relations().iter().enumerate().map(|(at, relation)| (relation.key, dense(at))).collect();
    for negative in negatives {
        let name = negative.part.clone().unwrap_or_else(|| "none".to_owned());
        *published.negatives.entry(name).or_default() += 1;
        let [subject, relation, object] = negative.keys.each_ref();
        let [subject, object] = [subject, object].map(|key| entities.get(key.as_str()).copied());
        let (Some(subject), Some(&relation), Some(object)) =
            (subject, relations.get(relation.as_str()), object)
        else {
            published.beside_the_graph += 1;
            continue;
        };
        let [subject, object] = [subject, object].map(EntityId);
        let said = statements.said(&Triple { subject, relation: RelationId(relation), object });
        let start = rows.partition_point(|row| row.statement() < said);
        let same = rows[start..].iter().take_while(|row| row.statement() == said);
        if let Some(shown) = same.map(|row| row.part).min() {
            *published.also_stated.entry(shown.name()).or_default() += 1;
        }
    }
    Ok(published)
}
