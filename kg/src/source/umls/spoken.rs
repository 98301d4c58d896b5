//! Concepts that other sources speak of: by their key, by a code that another vocabulary has, by a name.

use std::collections::BTreeSet;

use super::conso::Spoken;
use super::cui::Cui;
use super::file::SOURCE;
use super::name::{Found, Named, Names};
use super::rel::Used;
use crate::canon::fold::tidy;
use crate::table::Builder;
use crate::table::builder::{DraftEntity, OfferKind};

/// Beginning of the keys of concepts.
const PREFIX: &str = "umls:";

/// Drafts every concept that another source speaks of, so that its name, level, types and terms are known even if no row of MRREL that
/// is kept mentions it; says what retired ones became; offers the names that are wanted.
pub(super) fn draft(spoken: &Spoken, names: &Names, used: &mut Used, builder: &mut Builder) {
    let keys = builder.keys(PREFIX).chain(builder.alias_targets(PREFIX));
    let keys: BTreeSet<String> = keys.map(str::to_owned).collect();
    for key in keys {
        let Some(cui) = Cui::of(&key[PREFIX.len()..]) else { continue };
        match names.find(cui) {
            Found::Named(named) => drop(entity(named, names, used, builder)),
            Found::Mapped(named) => {
                entity(named, names, used, builder);
                builder.alias(&key, &format!("{PREFIX}{}", names.cui(named)));
            }
            Found::Deleted | Found::Ambiguous | Found::Nameless => {}
        }
    }
    for &cui in &spoken.codes {
        if let Found::Named(named) = names.find(cui) {
            entity(named, names, used, builder);
        }
    }
    for (cui, name) in &spoken.wanted {
        if let Found::Named(named) = names.find(*cui) {
            entity(named, names, used, builder);
            let best = names.text(named);
            let kind = if tidy(name) == tidy(best) { OfferKind::Preferred } else { OfferKind::Synonym };
            builder.offer(name, &format!("{PREFIX}{cui}"), best, kind);
        }
    }
}

/// Says which retired concepts became one that is used.
pub(super) fn retire(names: &Names, used: &Used, builder: &mut Builder) {
    for (cui, named) in names.mapped().filter(|&(_, named)| used.get(named).is_some()) {
        builder.retire(&format!("{PREFIX}{cui}"), &format!("{PREFIX}{}", names.cui(named)));
    }
}

/// The entity of a named concept, worded as UMLS does.
pub(super) fn entity(named: Named, names: &Names, used: &mut Used, builder: &mut Builder) -> DraftEntity {
    if let Some(entity) = used.get(named) {
        return entity;
    }
    let (key, text) = (format!("{PREFIX}{}", names.cui(named)), tidy(names.text(named)));
    let entity = builder.entity(SOURCE, &key, &text);
    if let Some(level) = names.level(named) {
        builder.set_level(entity, level);
    }
    // After the level, so that it has something to keep only for what another source named first.
    builder.own(entity, &text, names.level(named));
    used.put(named, entity);
    entity
}
