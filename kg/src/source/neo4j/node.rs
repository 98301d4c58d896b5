//! A node of a graph in Neo4j's CSV: its id, its key and its texts.

use std::collections::BTreeSet;

use base::read::ReadError;

use super::{Columns, End, Options, REMEDY};
use crate::source::curie::{self, Curie};
use crate::source::ontology::{Scope, Synonym, Term};
use crate::source::separated::{NoRow, Record, Separator};
use crate::table::SemanticType;

impl End {
    /// An id within its space.
    pub(super) fn within(&self, record: &Record<'_>) -> Result<String, NoRow> {
        let id = record.field(self.column).trim();
        if id.is_empty() {
            let place = record.place(Some((self.column, "id")));
            return Err(NoRow::Unfit(ReadError::text(place, id, "an id", REMEDY)));
        }
        Ok(if self.space.is_empty() { id.to_owned() } else { format!("{}:{id}", self.space) })
    }
}

impl Columns {
    /// The id by which others may know a node: what the property `key` says, or its own.
    pub(super) fn known<'r>(&self, options: &Options, record: &Record<'r>) -> &'r str {
        let said = options.key.as_ref().and_then(|key| self.property(record, key));
        let own = self.id.as_ref().map(|id| record.field(id.column).trim());
        said.or(own).unwrap_or_default()
    }

    /// The node in a row of the source `name`, whose own id is `own`.
    pub(super) fn term(&self, name: &str, options: &Options, record: &Record<'_>, own: &str) -> Term {
        let id = self.known(options, record);
        let is_own = options.key.as_ref().is_none_or(|key| self.property(record, key).is_none());
        let key = match curie::split(id) {
            Some(Curie { prefix, id }) if options.namespaces.contains_key(prefix) => {
                Curie { prefix: &options.namespaces[prefix], id }.key()
            }
            // A database counts its nodes anew in each export; what the property says stays.
            _ => format!("{name}:{}", if is_own { own } else { id }),
        };
        let labels = self.labels.map(|column| record.field(column)).unwrap_or_default();
        let labels: BTreeSet<&str> = labels
            .split([options.array_delimiter.character(), ':'])
            .map(str::trim)
            .filter(|label| !label.is_empty())
            .collect();
        let text = self.property(record, &options.name);
        let synonyms = options.synonyms.iter().filter_map(|property| self.property(record, property));
        let synonyms = synonyms
            .flat_map(|value| listed(value, options.array_delimiter))
            .filter(|synonym| Some(synonym.as_str()) != text);
        let definition = options.definition.as_ref().and_then(|property| self.property(record, property));
        Term {
            key,
            name: text.map(str::to_owned),
            definition: definition.map(str::to_owned),
            types: labels
                .into_iter()
                .map(|name| SemanticType { code: None, name: name.to_owned() })
                .collect(),
            synonyms: synonyms.map(|text| Synonym { text, scope: Scope::Exact }).collect(),
            ..Term::default()
        }
    }
}

/// The values of a property: a list is cut at `delimiter`, or is JSON in exports.
fn listed(value: &str, delimiter: Separator) -> Vec<String> {
    match serde_json::from_str::<Vec<String>>(value) {
        Ok(list) => list,
        Err(_) => {
            let values = value.split(delimiter.character()).map(|text| text.trim().to_owned());
            values.filter(|text| !text.is_empty()).collect()
        }
    }
}
