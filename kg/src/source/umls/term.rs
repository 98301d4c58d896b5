//! MRCONSO, second reading: names of the entities that triples and other sources speak of.

use std::collections::HashMap;

use base::read::ReadError;

use super::conso::{COLUMNS, Choice};
use super::drafts::Drafts;
use super::file::{File, SOURCE};
use super::label::Labels;
use super::name::Named;
use super::vocabulary::Verdict;
use crate::source::rrf::Rows;
use crate::table::Builder;
use crate::table::builder::DraftTermOrigin;
use crate::table::row::{TermKind, TermOrigin};

/// Drafts of the origins of terms, by vocabulary and language.
#[derive(Debug)]
pub(super) struct Origins {
    drafts: HashMap<(String, Option<String>), DraftTermOrigin, ahash::RandomState>,
}

impl Origins {
    pub(super) fn new() -> Self {
        Self { drafts: HashMap::default() }
    }

    pub(super) fn draft(
        &mut self,
        vocabulary: &str,
        level: Option<u8>,
        language: Option<&str>,
        builder: &mut Builder,
    ) -> DraftTermOrigin {
        let (vocabulary, language) = (vocabulary.to_owned(), language.map(str::to_owned));
        *self.drafts.entry((vocabulary, language)).or_insert_with_key(|(vocabulary, language)| {
            let (vocabulary, language) = (Some(vocabulary.clone()), language.clone());
            builder.term_origin(TermOrigin { source: SOURCE.to_owned(), vocabulary, language, level })
        })
    }
}

/// What a piece of the file holds. The texts follow one another in `texts`.
struct Piece {
    names: Vec<Name>,
    texts: String,
    vocabularies: Labels<Verdict>,
    languages: Labels<()>,
}

/// A name that is a term.
struct Name {
    named: Named,
    length: usize,
    vocabulary: u32,
    language: u32,
}

/// Gives the names of used entities to `builder` as terms.
pub(super) fn read(
    source: &File<'_>,
    choice: Choice<'_>,
    drafts: Drafts<'_>,
    builder: &mut Builder,
) -> Result<(), ReadError> {
    let mut origins = Origins::new();
    source.scan(
        |rows| parse(rows, choice, drafts),
        |piece: Piece| {
            let mut rest = piece.texts.as_str();
            for name in &piece.names {
                let (text, after) = rest.split_at(name.length);
                rest = after;
                let Some(entity) = drafts.used.get(name.named) else { continue };
                let level = piece.vocabularies.value(name.vocabulary).ok().flatten();
                let vocabulary = piece.vocabularies.label(name.vocabulary);
                let language = Some(piece.languages.label(name.language));
                let origin = origins.draft(vocabulary, level, language, builder);
                let is_best = text == drafts.names.text(name.named);
                let kind = if is_best { TermKind::Preferred } else { TermKind::Synonym };
                builder.term(entity, kind, text, origin);
            }
            Ok(())
        },
    )?;
    Ok(())
}

fn parse(rows: &mut Rows<'_, COLUMNS>, choice: Choice<'_>, drafts: Drafts<'_>) -> Result<Piece, ReadError> {
    let mut piece = Piece {
        names: Vec::new(),
        texts: String::new(),
        vocabularies: Labels::new(),
        languages: Labels::new(),
    };
    while let Some(row) = rows.next_record()? {
        let Ok(atom) = choice.atom(&row, &mut piece.vocabularies)? else { continue };
        if let Some((named, _)) = drafts.find(atom.cui) {
            let language = piece.languages.number(atom.language, || ());
            piece.texts.push_str(atom.text);
            let (length, vocabulary) = (atom.text.len(), atom.vocabulary);
            piece.names.push(Name { named, length, vocabulary, language });
        }
    }
    Ok(piece)
}
