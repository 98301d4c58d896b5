//! Stanzas become terms and relations.

use std::collections::BTreeSet;

use base::read::{Location as At, ReadError};

use super::{Header, Kind, Link, OTHER_STANZA, Ontology, Stanza, Term, Wording};
use crate::source::{curie, ontology};
use crate::table::SemanticType;

impl Stanza {
    /// The line that it begins with.
    pub(super) fn line(&self) -> u64 {
        if let At::Line(place) = &self.place { place.line } else { 0 }
    }

    /// Hands it to `ontology`; `at` is where it stands.
    pub(super) fn give(
        self,
        at: u64,
        header: &Header,
        ontology: &mut Ontology<'_, '_>,
    ) -> Result<(), ReadError> {
        let Some(id) = self.id else {
            if self.kind == Kind::Other {
                ontology.leave_out(OTHER_STANZA);
                return Ok(());
            }
            let found = "the stanza has no id";
            return Err(ReadError::new(self.place, found, "a line `id: ID` in each", "fix the stanza"));
        };
        match self.kind {
            Kind::Term => {}
            Kind::Typedef => {
                let mut inverses: BTreeSet<String> = self.inverses.into_iter().collect();
                inverses.extend(self.is_symmetric.then(|| id.clone()));
                ontology.keep_stanza();
                ontology.word(&id, Wording { text: self.name, inverses });
                return Ok(());
            }
            Kind::Other => {
                ontology.leave_out(OTHER_STANZA);
                return Ok(());
            }
        }
        let place = self.place;
        let keys = |ids: &[String]| ids.iter().map(|id| ontology::key(id, &place)).collect::<Result<_, _>>();
        let types = self.namespace.as_ref().or(header.namespace.as_ref()).into_iter();
        let key = ontology::key(&id, &place)?;
        let objects = self.links.into_iter().map(|Link { relation, object }| {
            let object = curie::split(&object).map_or(object.clone(), curie::Curie::key);
            Link { relation, object }
        });
        let links = objects.collect();
        let term = Term {
            key: key.clone(),
            name: self.name,
            definition: self.definition,
            types: types.map(|name| SemanticType { code: None, name: name.clone() }).collect(),
            synonyms: self.synonyms,
            xrefs: self.xrefs,
            means: Vec::new(),
            alternatives: keys(&self.alt_ids)?,
            replaced_by: keys(&self.replaced_by)?,
            is_obsolete: self.is_obsolete,
        };
        ontology.term(term, at).map_err(|before| {
            let found = format!("{key} stands in {} {before}, too", header.unit());
            ReadError::new(place, found, "a term once", "remove one of the two")
        })?;
        ontology.leave_out_xrefs(self.related);
        ontology.links(&key, links);
        Ok(())
    }
}
