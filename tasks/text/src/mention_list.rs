//! Mentions with their concepts, a line each, without the texts that they stand in: sets for entity linking as they are given out.
//!
//! A document is a mention, all of it one entity. Concepts stand between `|` or `+`, and of several each is right; `CUI-less`, `-1` and nothing mean none.

use std::io::BufRead;
use std::path::Path;

use base::funnel::Tally;
use base::line::{Line, Lines, Place};
use base::read::ReadError;
use serde::{Deserialize, Serialize};

use super::fault;
use super::mention;
use super::reader::{Bytes, DocumentReader, Flattened, Opened, TextFormat};
use super::{Counts, Document, Entity, Labels, unmarked};

/// How a line is laid out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Layout {
    /// `DOCUMENT||BEGIN|END||KIND||MENTION||CONCEPTS`, as BioSyn prepares sets.
    Biosyn,
    /// `CONCEPTS||MENTION`, perhaps with a context behind it, as SapBERT's own sets; the kind is `mention`.
    Pairs,
    /// A table whose first line names its columns, tabs between them and quotes ordinary characters, as COMETA; the kind is `mention`.
    Table {
        /// The column of mentions (`Term` in COMETA).
        mention: String,
        /// The column of concepts (`General SNOMED ID` or `Specific SNOMED ID` in COMETA).
        concepts: String,
    },
}

/// The kind of mentions of which none is said.
const KIND: &str = "mention";
const BLANK: &str = "blank line";
/// Characters between fields.
const BETWEEN: &str = "||";

/// Reads mention after mention.
#[derive(Debug)]
struct Reader<'f, R> {
    lines: Lines<'f, R>,
    layout: &'f Layout,
    /// Of a table, the places of mention and concepts, and how many columns there are.
    columns: [usize; 3],
    counts: Counts,
}

/// A line's parts.
struct Row<'a> {
    document: Option<&'a str>,
    kind: &'a str,
    mention: &'a str,
    concepts: &'a str,
}

impl TextFormat for Layout {
    fn reader<'f>(&'f self, bytes: Bytes<'f>, file: &'f Path) -> Opened<'f> {
        Ok(Box::new(Flattened::new(Reader::new(bytes, file, self)?)))
    }
}

impl<'f, R: BufRead> Reader<'f, R> {
    /// Mentions of `reader`; `file` names it in messages. The last line may lack its end.
    fn new(reader: R, file: &'f Path, layout: &'f Layout) -> Result<Self, ReadError> {
        let mut lines = Lines::new(reader, file);
        let mut columns = [0; 3];
        if let Layout::Table { mention, concepts } = layout {
            let first = Place { file: file.to_owned(), line: 1, column: None };
            let expected =
                format!("a first line that names the columns {mention:?} and {concepts:?}, with tabs");
            let Some(line) = lines.next_line()? else {
                return Err(ReadError::text(first, "", expected, "give the whole table"));
            };
            let names: Vec<&str> = unmarked(line.text).split('\t').map(str::trim).collect();
            let place = |name: &String| names.iter().position(|of| of == name);
            let (Some(mention), Some(concepts)) = (place(mention), place(concepts)) else {
                let remedy = "name the columns as they are called there";
                return Err(ReadError::text(first, line.text, expected, remedy));
            };
            columns = [mention, concepts, names.len()];
        }
        let counts = Counts { documents: Tally::new(file, &[BLANK]), spans: mention::tally(&[]) };
        Ok(Self { lines, layout, columns, counts })
    }
}

/// The parts of a line.
fn parts<'a>(line: Line<'a>, layout: &Layout, columns: [usize; 3]) -> Result<Row<'a>, ReadError> {
    let text = unmarked(line.text);
    let wrong = |expected: &str| fault::line(line, text, expected);
    let row = match layout {
        Layout::Biosyn => match text.split(BETWEEN).collect::<Vec<_>>()[..] {
            [document, _, kind, mention, concepts] => {
                Row { document: Some(document), kind, mention, concepts }
            }
            _ => return Err(wrong("DOCUMENT||BEGIN|END||KIND||MENTION||CONCEPTS")),
        },
        Layout::Pairs => match text.split(BETWEEN).collect::<Vec<_>>()[..] {
            [concepts, mention] | [concepts, mention, _] => {
                Row { document: None, kind: KIND, mention, concepts }
            }
            _ => return Err(wrong("CONCEPTS||MENTION, or CONCEPTS||MENTION||CONTEXT")),
        },
        Layout::Table { .. } => {
            let fields: Vec<&str> = text.split('\t').collect();
            let [mention, concepts, count] = columns;
            if fields.len() != count {
                return Err(wrong(&format!(
                    "{count} columns, as the first line has, and not {}",
                    fields.len()
                )));
            }
            Row { document: None, kind: KIND, mention: fields[mention], concepts: fields[concepts] }
        }
    };
    if row.mention.trim().is_empty() || row.kind.trim().is_empty() {
        return Err(wrong("a mention and its kind"));
    }
    Ok(row)
}

impl<R: BufRead> DocumentReader for Reader<'_, R> {
    fn read(&mut self, document: &mut Document, labels: &mut Labels) -> Result<bool, ReadError> {
        document.clear();
        while let Some(line) = self.lines.next_line()? {
            if unmarked(line.text).trim().is_empty() {
                self.counts.documents.drop(BLANK);
                continue;
            }
            let Row { document: id, kind, mention, concepts } = parts(line, self.layout, self.columns)?;
            match id.map(str::trim).filter(|id| !id.is_empty()) {
                Some(id) => document.id.push_str(id),
                None => document.id.push_str(&line.place(None).line.to_string()),
            }
            document.text.push_str(mention.trim());
            let label = labels
                .intern(kind.trim())
                .ok_or_else(|| fault::line(line, kind, "fewer kinds of mentions in all texts together"))?;
            let stated = |id: &&str| !matches!(*id, "" | "-1" | "-") && !id.eq_ignore_ascii_case("cui-less");
            let concepts =
                concepts.split(['|', '+']).map(str::trim).filter(stated).map(str::to_owned).collect();
            let whole = 0..document.text.len();
            document.entities.push(Entity { pieces: Vec::from([whole]), label, concepts });
            self.counts.spans.keep();
            self.counts.documents.keep();
            return Ok(true);
        }
        Ok(false)
    }

    fn counts(&self) -> Counts {
        self.counts.with_size(self.lines.bytes(), self.lines.lines())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::damage::assert_sound_or_refuses;
    use crate::drain;

    const BIOSYN: &str = "\u{feff}10192393||58|71||SpecificDisease||colorectal cancer||D015179\r\n\n1||0|2||Composite||Née|s||D1+OMIM:2|D3\n||0|2||X||b||CUI-less";
    const PAIRS: &str = "D1||fever\nD2|D3||pain||there is pain\n";
    const TABLE: &str =
        "ID\tTerm\tGeneral SNOMED ID\tExample\n7\tupset \"tummy\"\t271681002\t\"so what\n8\tblah\t-1\t\n";

    fn table() -> Layout {
        Layout::Table { mention: "Term".to_owned(), concepts: "General SNOMED ID".to_owned() }
    }

    fn get(bytes: &[u8], layout: &Layout) -> Result<(Vec<Document>, Counts), String> {
        let mut reader =
            layout.reader(Box::new(bytes), Path::new("some.txt")).map_err(|error| error.to_string())?;
        let mut labels = Labels::default();
        let all = drain::documents(|document| reader.read(document, &mut labels));
        Ok((all.map_err(|error| error.to_string())?, reader.counts()))
    }

    fn said(documents: &[Document]) -> Vec<String> {
        let one = |of: &Document| format!("{}: {} {}", of.id, of.text, of.entities[0].concepts.join(","));
        documents.iter().map(one).collect()
    }

    #[test]
    fn each_layout_gives_mentions_with_their_concepts() {
        let (documents, counts) = get(BIOSYN.as_bytes(), &Layout::Biosyn).unwrap();
        assert_eq!(
            said(&documents),
            ["10192393: colorectal cancer D015179", "1: Née|s D1,OMIM:2,D3", "4: b "]
        );
        assert_eq!(
            (counts.documents.kept, counts.documents.dropped[BLANK], counts.documents.lines),
            (3, 1, 4)
        );
        assert_eq!(documents[1].entities[0].pieces.first(), Some(&(0..6)));
        assert_eq!(said(&get(PAIRS.as_bytes(), &Layout::Pairs).unwrap().0), ["1: fever D1", "2: pain D2,D3"]);
        let (documents, counts) = get(TABLE.as_bytes(), &table()).unwrap();
        assert_eq!(said(&documents), ["2: upset \"tummy\" 271681002", "3: blah "]);
        assert_eq!(counts.spans.kept, 2);
    }

    #[test]
    fn what_is_no_such_line_is_refused_with_its_place() {
        for (layout, text, expected) in [
            (
                Layout::Biosyn,
                "1||0|2||X||b\n",
                "some.txt: line 1: found \"1||0|2||X||b\", expected DOCUMENT||BEGIN|END||KIND",
            ),
            (
                Layout::Biosyn,
                "1||0|2||X|| ||D1\n",
                "line 1: found \"1||0|2||X|| ||D1\", expected a mention and its kind",
            ),
            (Layout::Pairs, "D1||a\nfever\n", "line 2: found \"fever\", expected CONCEPTS||MENTION"),
            (
                table(),
                "",
                "line 1: found \"\", expected a first line that names the columns \"Term\" and \"General SNOMED ID\"",
            ),
            (table(), "Term\tID\n", "found \"Term\\tID\", expected a first line that names the columns"),
            (
                table(),
                "Term\tGeneral SNOMED ID\na\n",
                "line 2: found \"a\", expected 2 columns, as the first line has, and not 1",
            ),
        ] {
            let message = get(text.as_bytes(), &layout).unwrap_err();
            assert!(message.contains(expected), "{message}\nlacks {expected}");
        }
    }

    #[test]
    fn damaged_files_are_read_or_refused() {
        for (layout, text) in [(Layout::Biosyn, BIOSYN), (Layout::Pairs, PAIRS), (table(), TABLE)] {
            assert_sound_or_refuses(text.as_bytes(), |bytes| {
                get(bytes, &layout).map(|(documents, _)| documents)
            });
        }
    }
}
