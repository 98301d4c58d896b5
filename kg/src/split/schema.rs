//! The columns of a split on disk.
//!
//! | file | column | type | meaning |
//! |---|---|---|---|
//! | `split.parquet` | `triple` | uint32 | row number in `triples.parquet`, from 0; every row once, in order |
//! | | `part` | utf8 | `train`, `valid`, `test`, or `aside` for a triple that is in none |
//! | | `group` | uint32 | triples of one group say the same and are in one part; numbered from 0 by first row |
//!
//! The footer has `engraft.format` = [`FORMAT`], `engraft.version` = [`VERSION`], `engraft.triples`, the number of triples,
//! `engraft.digest`, 32 hexadecimal digits: XXH3-128 over the XXH3-128 of every relation's key, then of the subject's, relation's and
//! object's key of every triple; and `engraft.inverses`, pairs of rows in `relations.parquet` that were found to be inverse: `0=1 4=4`.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::view::View;
use crate::table::RelationId;

/// Name of the format in the footer.
pub const FORMAT: &str = "engraft-split";

/// Version of the columns. It rises when a reader of the old version would misread the new one.
pub const VERSION: u32 = 1;

/// Name of the file in its folder.
pub const FILE: &str = "split.parquet";

/// The columns.
#[must_use]
pub fn columns() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("triple", DataType::UInt32, false),
        Field::new("part", DataType::Utf8, false),
        Field::new("group", DataType::UInt32, false),
    ]))
}

/// What the footer says of the graph that was split.
#[must_use]
pub fn footer(view: &View) -> [(&'static str, String); 4] {
    [
        ("engraft.format", FORMAT.to_owned()),
        ("engraft.version", VERSION.to_string()),
        ("engraft.triples", view.triples().len().to_string()),
        ("engraft.digest", format!("{:032x}", view.digest())),
    ]
}

/// Key of the footer's list of relations that were found to be inverse.
pub(super) const INVERSES: &str = "engraft.inverses";

/// The list as the footer has it.
pub(super) fn inverses(pairs: &[(RelationId, RelationId)]) -> String {
    pairs.iter().map(|(one, other)| format!("{}={}", one.0, other.0)).collect::<Vec<_>>().join(" ")
}

/// The list that the footer has, if it is one of relations below `there`.
pub(super) fn parse_inverses(list: &str, there: usize) -> Option<Vec<(RelationId, RelationId)>> {
    let relation = |number: &str| number.parse().ok().map(RelationId).filter(|id| id.index() < there);
    let pair =
        |pair: &str| pair.split_once('=').and_then(|(one, other)| Some((relation(one)?, relation(other)?)));
    list.split_whitespace().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverses_are_read_back_and_nonsense_is_not() {
        let pairs = [(RelationId(0), RelationId(1)), (RelationId(4), RelationId(4))];
        assert_eq!(parse_inverses(&inverses(&pairs), 5), Some(pairs.to_vec()));
        assert_eq!(parse_inverses("", 0), Some(Vec::new()));
        for nonsense in ["0=5", "0", "0=1,2=3", "-1=0", "none"] {
            assert_eq!(parse_inverses(nonsense, 5), None, "{nonsense}");
        }
    }
}
