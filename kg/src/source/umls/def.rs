//! MRDEF: definitions of the concepts that triples use.

use base::funnel::Tally;
use base::read::ReadError;

use super::count::{Counts, Reason};
use super::cui::Cui;
use super::drafts::Drafts;
use super::file::File;
use super::label::Labels;
use super::name::Named;
use super::options::Suppressed;
use super::term::Origins;
use super::vocabulary::{Verdict, Vocabularies};
use crate::source::rrf::Rows;
use crate::table::Builder;
use crate::table::row::TermKind;

const CUI: usize = 0;
const SAB: usize = 4;
const DEF: usize = 5;
const SUPPRESS: usize = 6;
const COLUMNS: usize = 8;

/// Reasons to leave out a definition.
const REASONS: [Reason; 6] = [
    Reason::OtherLanguage,
    Reason::Suppressed,
    Reason::VocabularyNotAskedFor,
    Reason::NoLevel,
    Reason::AboveMaxSrl,
    Reason::InNoTriple,
];

/// What a piece of the file holds.
struct Piece {
    counts: Counts,
    definitions: Vec<(Named, u32, String)>,
    vocabularies: Labels<Verdict>,
}

/// Gives each used entity its definitions.
pub(super) fn read(
    source: &File<'_>,
    vocabularies: &Vocabularies<'_>,
    drafts: Drafts<'_>,
    builder: &mut Builder,
) -> Result<Tally, ReadError> {
    let (mut counts, mut origins) = (Counts::default(), Origins::new());
    let totals = source.scan(
        |rows| parse(rows, vocabularies, drafts),
        |piece: Piece| {
            counts.add(&piece.counts);
            for (named, vocabulary, text) in piece.definitions {
                let Some(entity) = drafts.used.get(named) else { continue };
                let name = piece.vocabularies.label(vocabulary);
                let level = piece.vocabularies.value(vocabulary).ok().flatten();
                let origin = origins.draft(name, level, None, builder);
                builder.term(entity, TermKind::Definition, &text, origin);
            }
            Ok(())
        },
    )?;
    Ok(counts.tally(&source.label, &REASONS, totals))
}

fn parse(
    rows: &mut Rows<'_, COLUMNS>,
    vocabularies: &Vocabularies<'_>,
    drafts: Drafts<'_>,
) -> Result<Piece, ReadError> {
    let mut piece = Piece { counts: Counts::default(), definitions: Vec::new(), vocabularies: Labels::new() };
    while let Some(row) = rows.next_record()? {
        let cui = Cui::parse(&row, CUI, "CUI")?;
        let name = row.field(SAB);
        let vocabulary = piece.vocabularies.number(name, || match vocabularies.is_foreign(name) {
            true => Err(Reason::OtherLanguage),
            false => vocabularies.judge(name),
        });
        let named = drafts.find(cui).map(|(named, _)| named);
        let is_suppressed =
            vocabularies.options().suppressed == Suppressed::Drop && row.field(SUPPRESS) != "N";
        let reason = match (*piece.vocabularies.value(vocabulary), named) {
            (Err(Reason::OtherLanguage), _) => Reason::OtherLanguage,
            _ if is_suppressed => Reason::Suppressed,
            (Err(reason), _) => reason,
            (Ok(_), None) => Reason::InNoTriple,
            (Ok(_), Some(named)) => {
                if row.field(DEF).trim().is_empty() {
                    return Err(row.wrong(DEF, "DEF", "a definition"));
                }
                piece.counts.keep();
                piece.definitions.push((named, vocabulary, row.field(DEF).to_owned()));
                continue;
            }
        };
        piece.counts.drop(reason);
    }
    Ok(piece)
}
