//! The licence level of a triple table, from its files' statistics.

use std::fs::File;
use std::path::Path;

use base::read::ReadError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;

use super::guard::guarded;
use super::read::damaged;
use super::schema::Table;

/// The highest licence level of the names, texts and statements in `folder`; none where none has a level.
///
/// # Errors
/// When a file is missing or damaged.
pub fn highest_level(folder: &Path) -> Result<Option<u8>, ReadError> {
    let mut highest = None;
    for table in [Table::Entities, Table::Triples, Table::Terms] {
        let path = folder.join(table.file());
        let file = File::open(&path).map_err(|error| damaged(&path, 0, &error.to_string()))?;
        let reader = guarded(|| SerializedFileReader::new(file));
        let reader = reader.map_err(|error| damaged(&path, 0, &error.to_string()))?;
        for column in reader.metadata().row_groups().iter().flat_map(|group| group.columns()) {
            if column.column_path().parts().last().is_none_or(|name| name != "level") {
                continue;
            }
            match column.statistics() {
                Some(Statistics::Int32(of)) => {
                    highest = highest.max(of.max_opt().and_then(|level| u8::try_from(*level).ok()));
                }
                _ => return Err(damaged(&path, 0, "its levels have no statistics")),
            }
        }
    }
    Ok(highest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canon::{Policy, merge};
    use crate::table::{Builder, Origin, TermKind, TermOrigin};

    fn written(levels: [Option<u8>; 3]) -> tempfile::TempDir {
        let [of_name, of_term, of_row] = levels;
        let mut builder = Builder::new();
        let ends = ["a", "b"].map(|name| {
            let entity = builder.entity("x", &format!("x:{name}"), name);
            of_name.into_iter().for_each(|level| builder.set_level(entity, level));
            entity
        });
        let source = "x".to_owned();
        let term = TermOrigin { source: source.clone(), vocabulary: None, language: None, level: of_term };
        let term = builder.term_origin(term);
        builder.term(ends[0], TermKind::Synonym, "other", term);
        let relation = builder.relation("x", "r", "r");
        let origin = Origin { source, vocabulary: None, weight: None, count: None, level: of_row };
        let origin = builder.origin(origin);
        builder.triple(ends[0], relation, ends[1], origin).unwrap();
        let folder = tempfile::tempdir().unwrap();
        merge(builder, &Policy::standard()).unwrap().write(folder.path()).unwrap();
        folder
    }

    #[test]
    fn the_highest_level_is_that_of_any_name_term_or_statement() {
        for (levels, highest) in [
            ([None, None, None], None),
            ([Some(0), None, None], Some(0)),
            ([Some(0), Some(3), Some(1)], Some(3)),
            ([Some(4), Some(3), Some(1)], Some(4)),
            ([None, None, Some(9)], Some(9)),
        ] {
            assert_eq!(highest_level(written(levels).path()).unwrap(), highest, "{levels:?}");
        }
        let folder = written([None; 3]);
        std::fs::remove_file(folder.path().join(Table::Terms.file())).unwrap();
        assert!(highest_level(folder.path()).unwrap_err().to_string().contains(Table::Terms.file()));
    }
}
