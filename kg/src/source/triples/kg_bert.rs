//! KG-BERT's folders (github.com/yao8839836/kg-bert, `data/umls`) with their official split.
//!
//! `train.tsv`, `dev.tsv` and `test.tsv` have three tab-separated ids a line and no header, or (as `dev.tsv` and `test.tsv` of WN11 and FB13 have)
//! a label after them: 1 is a fact, -1 a negative of that part, which is kept beside the facts; `entities.txt` and `relations.txt` list
//! all ids; `entity2text.txt`, `entity2textlong.txt` (definitions) and `relation2text.txt` have `id<TAB>text`. A triple's part is the
//! vocabulary of its origin: `train`, `dev` or `test`.

use std::io::BufRead;
use std::path::Path;

use super::{Error, Options, Stated, Statements, Things};
use crate::table::Builder;

/// The parts of the split, as in the origins and, with `.tsv`, on disk.
pub const PARTS: [&str; 3] = ["train", "dev", "test"];

/// The files of a folder, each with the name it has in messages.
#[derive(Debug)]
pub struct Files<'f, R> {
    /// The folder's name in messages.
    pub folder: &'f Path,
    /// `train.tsv`, `dev.tsv`, `test.tsv`.
    pub parts: [(R, &'f Path); 3],
    /// `entities.txt`.
    pub entities: (R, &'f Path),
    /// `relations.txt`.
    pub relations: (R, &'f Path),
    /// `entity2text.txt`.
    pub entity_texts: (R, &'f Path),
    /// `entity2textlong.txt`.
    pub definitions: Option<(R, &'f Path)>,
    /// `relation2text.txt`.
    pub relation_texts: (R, &'f Path),
}

/// Reads the files into `builder`. The tables of what is returned are those of [`PARTS`].
///
/// # Errors
/// When a file is damaged, or a triple has an id that is not listed; `builder` then holds a part of it.
pub fn read<R: BufRead>(
    files: Files<'_, R>,
    options: &Options,
    builder: &mut Builder,
) -> Result<Stated, Error> {
    let mut statements = Statements::new(options, builder)?;
    statements.list(Things::Entities, files.entities)?;
    statements.list(Things::Relations, files.relations)?;
    statements.texts(Things::Entities, files.entity_texts, None)?;
    statements.texts(Things::Relations, files.relation_texts, None)?;
    files.definitions.map(|file| statements.definitions(file, None)).transpose()?;
    for (file, part) in files.parts.into_iter().zip(PARTS) {
        statements.part(file, part, builder)?;
    }
    Ok(statements.finish(files.folder))
}
