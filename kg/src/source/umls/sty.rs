//! MRSTY: semantic types of concepts.

use std::collections::BTreeSet;
use std::path::Path;

use base::funnel::Tally;
use base::read::ReadError;

use super::asked::{self, Known};
use super::count::{Counts, Reason};
use super::cui::Cui;
use super::drafts::Drafts;
use super::file::File;
use super::label::Labels;
use super::name::{Found, Names};
use crate::source::rrf::scan::Totals;
use crate::table::{Builder, SemanticType};

const CUI: usize = 0;
const TUI: usize = 1;
const STY: usize = 3;

/// All rows of MRSTY, eight bytes each.
#[derive(Debug)]
pub(super) struct Types {
    kinds: Vec<SemanticType>,
    cuis: Vec<Cui>,
    /// Place in `kinds` of each row's type.
    kind_of: Vec<u32>,
    totals: Totals,
}

/// Reads MRSTY.
pub(super) fn read(source: &File<'_>) -> Result<Types, ReadError> {
    let mut labels: Labels<SemanticType> = Labels::new();
    let (mut cuis, mut kind_of) = (Vec::new(), Vec::new());
    let totals = source.scan::<6, _>(
        |rows| {
            let (mut labels, mut found) = (Labels::new(), Vec::new());
            while let Some(row) = rows.next_record()? {
                let (code, name) = (row.field(TUI), row.field(STY));
                // A TUI has one name; should it have two, both are types.
                let mut kind = labels
                    .number(code, || SemanticType { code: Some(code.to_owned()), name: name.to_owned() });
                if labels.value(kind).name != name {
                    let both = format!("{code}|{name}");
                    kind = labels.number(&both, || SemanticType {
                        code: Some(code.to_owned()),
                        name: name.to_owned(),
                    });
                }
                found.push((Cui::parse(&row, CUI, "CUI")?, kind));
            }
            Ok((labels, found))
        },
        |(local, found)| {
            let numbers: Vec<u32> = local
                .iter()
                .map(|(_, kind)| {
                    let label = format!("{}|{}", kind.code.as_deref().unwrap_or_default(), kind.name);
                    labels.number(&label, || kind.clone())
                })
                .collect();
            for (cui, kind) in found {
                cuis.push(cui);
                kind_of.push(numbers[kind as usize]);
            }
            Ok(())
        },
    )?;
    let kinds = labels.iter().map(|(_, kind)| kind.clone()).collect();
    Ok(Types { kinds, cuis, kind_of, totals })
}

impl Types {
    /// For each named concept, whether it has one of the types in `wanted` (TUI or name).
    pub(super) fn having(&self, wanted: &BTreeSet<String>, names: &Names) -> Result<Vec<bool>, ReadError> {
        let known: BTreeSet<&str> = self
            .kinds
            .iter()
            .flat_map(|kind| kind.code.as_deref().into_iter().chain([kind.name.as_str()]))
            .collect();
        asked::check(
            "semantic_types",
            wanted.iter().map(String::as_str),
            &Known { names: known, place: "MRSTY" },
        )?;
        let is_wanted = |kind: &SemanticType| {
            wanted.contains(&kind.name) || kind.code.as_ref().is_some_and(|code| wanted.contains(code))
        };
        let kinds: Vec<bool> = self.kinds.iter().map(is_wanted).collect();
        let mut having = vec![false; names.len()];
        for (&cui, &kind) in self.cuis.iter().zip(&self.kind_of) {
            if let (true, Found::Named(named)) = (kinds[kind as usize], names.find(cui)) {
                having[named.index()] = true;
            }
        }
        Ok(having)
    }

    /// Gives each used entity its types.
    pub(super) fn give(&self, label: &Path, drafts: Drafts<'_>, builder: &mut Builder) -> Tally {
        let mut counts = Counts::default();
        for (&cui, &kind) in self.cuis.iter().zip(&self.kind_of) {
            match drafts.find(cui) {
                Some((_, entity)) => {
                    counts.keep();
                    builder.add_type(entity, self.kinds[kind as usize].clone());
                }
                None => counts.drop(Reason::InNoTriple),
            }
        }
        counts.tally(label, &[Reason::InNoTriple], self.totals)
    }
}
