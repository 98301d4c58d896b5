//! MRSTY: semantic types of the concepts that triples use. Knows no name and no relation.

use std::io::BufRead;
use std::path::Path;

use super::Used;
use super::cui::Cui;
use crate::source::funnel::Tally;
use crate::source::rrf::{Error, Reader};
use crate::table::{Builder, SemanticType};

const CUI: usize = 0;
const TUI: usize = 1;
const STY: usize = 3;

/// Gives each entity in `used` its types.
pub(super) fn read<R: BufRead>(
    (reader, label): (R, &Path),
    used: &Used,
    builder: &mut Builder,
) -> Result<Tally, Error> {
    let mut rows = Reader::<_, 6>::new(reader, label);
    let mut tally = Tally::new(label, &["in_no_triple"]);
    while let Some(row) = rows.next_record()? {
        let Some(&entity) = used.get(Cui::parse(&row, CUI, "CUI")?) else {
            tally.drop("in_no_triple");
            continue;
        };
        tally.keep();
        let (code, name) = (Some(row.field(TUI).to_owned()), row.field(STY).to_owned());
        builder.add_type(entity, SemanticType { code, name });
    }
    (tally.lines, tally.bytes) = (rows.lines(), rows.bytes());
    Ok(tally)
}
