//! KG-BERT's folders (github.com/yao8839836/kg-bert, `data/umls`) with their official split.
//!
//! `train.tsv`, `dev.tsv` and `test.tsv` have three tab-separated ids a line and no header, or (as `dev.tsv` and `test.tsv` of WN11 and FB13 have)
//! a label after them: 1 is a fact, -1 a negative of that part, which is kept beside the facts; `entities.txt` and `relations.txt` list
//! all ids; `entity2text.txt`, `entity2textlong.txt` (definitions) and `relation2text.txt` have `id<TAB>text`. A triple's part is the
//! vocabulary of its origin: `train`, `dev` or `test`.

use std::io::BufRead;

use base::read::ReadError;

use super::{Names, Options, Stated, Statements, Things};
use crate::source::files::{self, Form, Input, Member};
use crate::table::Builder;

/// The parts of the split, as in the origins and, with `.tsv`, on disk.
pub const PARTS: [&str; 3] = ["train", "dev", "test"];

/// The files of a folder.
pub(super) const MEMBERS: [Member; 8] = [
    needed("train.tsv"),
    needed("dev.tsv"),
    needed("test.tsv"),
    needed("entities.txt"),
    needed("relations.txt"),
    needed("entity2text.txt"),
    needed("relation2text.txt"),
    Member::optional("entity2textlong.txt", Form::Plain),
];

const fn needed(name: &'static str) -> Member {
    Member::needed(name, Form::Plain)
}

/// The files of a folder.
#[derive(Debug)]
pub struct Files<R> {
    /// `train.tsv`, `dev.tsv`, `test.tsv`.
    pub parts: [Input<R>; 3],
    /// `entities.txt`.
    pub entities: Input<R>,
    /// `relations.txt`.
    pub relations: Input<R>,
    /// `entity2text.txt`.
    pub entity_texts: Input<R>,
    /// `entity2textlong.txt`.
    pub definitions: Option<Input<R>>,
    /// `relation2text.txt`.
    pub relation_texts: Input<R>,
}

impl<'f> Files<Box<dyn BufRead + Send + 'f>> {
    pub(super) fn open(files: &files::Files<'f>) -> Result<Self, ReadError> {
        let open = |name: &str| files.open(&format!("kg_bert/{name}"));
        Ok(Self {
            parts: [open("train.tsv")?, open("dev.tsv")?, open("test.tsv")?],
            entities: open("entities.txt")?,
            relations: open("relations.txt")?,
            entity_texts: open("entity2text.txt")?,
            relation_texts: open("relation2text.txt")?,
            definitions: files.maybe("kg_bert/entity2textlong.txt").transpose()?,
        })
    }
}

/// Reads the files into `builder`, as the source `name`. The tables of what is returned are those of [`PARTS`].
///
/// # Errors
/// When a file is damaged, or a triple has an id that is not listed; `builder` then holds a part of it.
pub fn read<R: BufRead>(
    files: Files<R>,
    name: &str,
    options: &Options,
    builder: &mut Builder,
) -> Result<Stated, ReadError> {
    let mut statements = Statements::new(name, options, builder);
    statements.names(Names::List(Things::Entities), files.entities, None)?;
    statements.names(Names::List(Things::Relations), files.relations, None)?;
    statements.names(Names::Texts(Things::Entities), files.entity_texts, None)?;
    statements.names(Names::Texts(Things::Relations), files.relation_texts, None)?;
    files.definitions.map(|file| statements.names(Names::Definitions, file, None)).transpose()?;
    for (file, part) in files.parts.into_iter().zip(PARTS) {
        statements.part(file, part, builder)?;
    }
    // Where the folder lies must not reach the funnel.
    Ok(statements.finish(name))
}
