//! Reports and their disorders as ShARe/CLEF 2013 and SemEval 2014 have them: a text and a file of lines between `||`.
//!
//! `NAME.txt||Disease_Disorder||C0221755||1141||1148||1192||1198`: the report, the kind, the concept (`CUI-less` where there is none) and, for each
//! piece, its first character and the one behind its last. The words themselves are not printed.

use std::io::BufRead;
use std::ops::Range;
use std::path::{Path, PathBuf};

use base::funnel::Tally;
use base::line::Lines;
use base::read::ReadError;
use serde::{Deserialize, Serialize};

use super::characters::Characters;
use super::fault;
use super::mention::{self, Misfits, Printed, Text};
use super::reader::{Bytes, Flattened, Only, Opened, TextFormat};
use super::{Counts, Document, Entity, Labels, unmarked};

/// How a folder is to be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The folder of the disorders, relative to that of the reports (`../Gold`), where files may also share their reports' names. Without
    /// it, the same folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipes: Option<String>,
    /// What to do with a disorder whose offsets are invalid, or whose words do not match the text there.
    ///
    /// Source: ours: because one wrong offset often means that all are, in another text or another unit.
    #[serde(default)]
    pub misfits: Misfits,
}

/// How files of disorders end.
const ENDINGS: [&str; 2] = [".pipe.txt", ".pipe"];

const BLANK: &str = "blank line";
const NO_REPORT: &str = "disorders of a report, no report";
const OTHER_REPORT: &str = "disorder of another report";
const NO_CONCEPT: &str = "CUI-less";
const ROW: &str =
    "a disorder: its report, kind, concept, and a start and an end for each piece, with || between them";

/// Fills `document` with the report in `file`, whose disorders are looked for beside it or in the config's folder. Of a file that holds the
/// disorders of another one nothing is kept.
///
/// # Errors
/// When a file is damaged, missing, or none of the format.
fn open<R: BufRead>(
    reader: R,
    file: &Path,
    config: &Config,
    document: &mut Document,
    labels: &mut Labels,
) -> Result<Counts, ReadError> {
    if is_of_disorders(file, config) {
        let mut counts = Counts { documents: Tally::new(file, &[NO_REPORT]), spans: mention::tally(&[]) };
        counts.documents.drop(NO_REPORT);
        return Ok(counts);
    }
    let disorders = disorders(file, config)?;
    let opened = fault::open(&disorders, "a report's disorders")?;
    read(reader, file, opened, &disorders, config.misfits, document, labels)
}

/// Fills `document` with a report and the disorders that `disorders` says are in it, and names their labels; the text's stem is its id.
///
/// # Errors
/// When a file is damaged, missing, or none of the format.
fn read<R: BufRead, D: BufRead>(
    reader: R,
    file: &Path,
    disorders: D,
    beside: &Path,
    misfits: Misfits,
    document: &mut Document,
    labels: &mut Labels,
) -> Result<Counts, ReadError> {
    document.clear();
    document.text = fault::whole_text(reader, file, "a report")?;
    let id = file.file_stem().unwrap_or_default().to_string_lossy();
    document.id.push_str(&id);
    let mut counts =
        Counts { documents: Tally::new(beside, &[BLANK]), spans: mention::tally(&[OTHER_REPORT]) };
    let characters = Characters::new(&document.text);
    let mut lines = Lines::new(disorders, beside);
    while let Some(line) = lines.next_line()? {
        let row = unmarked(line.text).trim();
        if row.is_empty() {
            counts.documents.drop(BLANK);
            continue;
        }
        let Row { report, kind, concept, pieces } = parse(row).ok_or_else(|| fault::line(line, row, ROW))?;
        if report != id {
            if misfits == Misfits::Refuse {
                return Err(fault::line(line, row, "disorders of the report that the file is named after"));
            }
            counts.spans.drop(OTHER_REPORT);
            continue;
        }
        let text = Text { text: &document.text, characters: &characters };
        let printed = Printed { pieces: &pieces, words: None };
        let (tally, place) = (&mut counts.spans, || line.place(None));
        let Some(pieces) = mention::admit(text, printed, misfits, tally, place)? else { continue };
        let label = labels.intern(kind).ok_or_else(|| fault::line(line, row, ROW))?;
        let concepts = concept.map(str::to_owned).into_iter().collect();
        document.entities.push(Entity { pieces, label, concepts });
    }
    mention::sort(document);
    counts.documents.keep();
    Ok(counts.with_size(lines.bytes(), lines.lines()))
}

/// A disorder as its line has it.
struct Row<'a> {
    /// The report's name without its ending.
    report: &'a str,
    kind: &'a str,
    concept: Option<&'a str>,
    pieces: Vec<Range<usize>>,
}

fn parse(row: &str) -> Option<Row<'_>> {
    let mut fields = row.split("||").map(str::trim);
    let (report, kind, concept) = (fields.next()?, fields.next()?, fields.next()?);
    let numbers: Vec<usize> = fields.map(|field| field.parse().ok()).collect::<Option<_>>()?;
    let (pairs, rest) = numbers.as_chunks::<2>();
    if kind.is_empty() || pairs.is_empty() || !rest.is_empty() {
        return None;
    }
    Some(Row {
        report: report.rsplit_once('.').map_or(report, |(stem, _)| stem),
        kind,
        concept: Some(concept).filter(|concept| !concept.is_empty() && *concept != NO_CONCEPT),
        pieces: pairs.iter().map(|[start, end]| *start..*end).collect(),
    })
}

/// Whether a file holds the disorders of another one.
fn is_of_disorders(file: &Path, config: &Config) -> bool {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    // From the folder of disorders, the way that leads there from the reports leads to itself.
    let place = |folder: &Path| folder.canonicalize().ok();
    let inside = config.pipes.as_deref().zip(file.parent()).is_some_and(|(pipes, parent)| {
        place(&parent.join(pipes)).is_some_and(|to| Some(to) == place(parent))
    });
    inside || ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// The file of a report's disorders: its name with another ending or, in a folder of their own, with the same.
fn disorders(file: &Path, config: &Config) -> Result<PathBuf, ReadError> {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let mut names: Vec<String> = ENDINGS.map(|ending| format!("{stem}{ending}")).into();
    let mut folder = file.parent().unwrap_or(Path::new("")).to_owned();
    if let Some(pipes) = &config.pipes {
        folder.push(pipes);
        names.push(format!("{stem}.txt"));
    }
    let mut all = names.iter().map(|name| folder.join(name));
    all.find(|path| path.is_file()).ok_or_else(|| {
        let found = format!("none of {} is there", folder.join(names.join(", ")).display());
        let expected = "the report's disorders, empty if there are none";
        ReadError::new(file, found, expected, "add the file, or name its folder in `pipes`")
    })
}

impl TextFormat for Config {
    fn reader<'f>(&'f self, bytes: Bytes<'f>, file: &'f Path) -> Opened<'f> {
        let fill =
            move |document: &mut Document, labels: &mut Labels| open(bytes, file, self, document, labels);
        Ok(Box::new(Flattened::new(Only::new(file, fill))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::damage::assert_sound_or_refuses;
    use crate::mention::OUTSIDE;

    const TEXT: &str = "Née [**3-4**]\nleft atrium is\nmildly dilated, fever.\n";
    const ROWS: &str = "some.txt||Disease_Disorder||C0344720||14||25||36||43\n\nsome.txt||Disease_Disorder||CUI-less||45||50\r\n";

    fn get(rows: &[u8], misfits: Misfits) -> Result<(Document, Counts), ReadError> {
        let (mut document, mut labels) = (Document::default(), Labels::default());
        let (file, beside) = (Path::new("some.txt"), Path::new("some.pipe.txt"));
        let counts = read(TEXT.as_bytes(), file, rows, beside, misfits, &mut document, &mut labels)?;
        Ok((document, counts))
    }

    fn said(document: &Document) -> Vec<String> {
        let entity = |e: &Entity| {
            let words: Vec<&str> = e.pieces.iter().map(|piece| &document.text[piece.clone()]).collect();
            format!("{}:{}", words.join("+"), e.concepts.join("+"))
        };
        document.entities.iter().map(entity).collect()
    }

    #[test]
    fn disorders_have_their_pieces_and_concepts() {
        let (document, counts) = get(ROWS.as_bytes(), Misfits::Refuse).unwrap();
        assert_eq!((document.id.as_str(), document.text.as_str()), ("some", TEXT));
        assert_eq!(said(&document), ["left atrium+dilated:C0344720", "fever:"]);
        assert_eq!((counts.spans.kept, counts.documents.dropped[BLANK], counts.documents.kept), (2, 1, 1));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_line() {
        for (from, to, expected) in [
            ("45||50", "45||500", "line 3: the mention does not fit: 45..500 reaches beyond the text"),
            (
                "45||50",
                "45",
                "line 3: found \"some.txt||Disease_Disorder||CUI-less||45\", expected a disorder",
            ),
            ("||45||50", "", "line 3: found \"some.txt||Disease_Disorder||CUI-less\", expected a disorder"),
            ("Disorder||CUI", "Disorder|CUI", "line 3: found"),
            (
                "\nsome.txt",
                "\nother.txt",
                "line 3: found \"other.txt||Disease_Disorder||CUI-less||45||50\", expected disorders of",
            ),
        ] {
            assert!(ROWS.contains(from), "{from}");
            let message =
                get(ROWS.replacen(from, to, 1).as_bytes(), Misfits::Refuse).unwrap_err().to_string();
            assert!(
                message.starts_with("some.pipe.txt: line ") && message.contains(expected),
                "{to}: {message}"
            );
        }
        let wrong = ROWS.replace("45||50", "45||500") + "other.txt||Disease_Disorder||C0000001||0||3\n";
        let (document, counts) = get(wrong.as_bytes(), Misfits::Drop).unwrap();
        assert_eq!(said(&document), ["left atrium+dilated:C0344720"]);
        let spans = counts.spans;
        assert_eq!((spans.read, spans.dropped[OUTSIDE], spans.dropped[OTHER_REPORT]), (3, 1, 1));
    }

    #[test]
    fn disorders_lie_beside_a_report_or_in_a_folder_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let put = |name: &str, content: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            base::whole::write_whole(&path, content.as_bytes()).unwrap();
        };
        let open = |name: &str, pipes: Option<&str>| {
            let (path, config) = (
                folder.path().join(name),
                Config { pipes: pipes.map(str::to_owned), misfits: Misfits::Refuse },
            );
            let (mut document, mut labels) = (Document::default(), Labels::default());
            let reader = fault::open(&path, "a report").unwrap();
            let counts = open(reader, &path, &config, &mut document, &mut labels);
            counts.map(|counts| (document.entities.len(), counts)).map_err(|error| error.to_string())
        };
        put("all/some.txt", TEXT);
        let message = open("all/some.txt", None).unwrap_err();
        assert!(
            message.contains("some.txt: none of ") && message.contains("some.pipe.txt, some.pipe is"),
            "{message}"
        );
        put("gold/some.txt", ROWS);
        assert_eq!(open("all/some.txt", Some("../gold")).unwrap().0, 2);
        let (entities, counts) = open("gold/some.txt", Some("../gold")).unwrap();
        assert_eq!((entities, counts.documents.kept, counts.documents.dropped[NO_REPORT]), (0, 0, 1));
        // Folders of one name beside each other's parents.
        put("reports/train/some.txt", TEXT);
        put("annotations/train/some.txt", ROWS);
        let way = Some("../../annotations/train");
        assert_eq!(open("reports/train/some.txt", way).unwrap().0, 2);
        assert_eq!(open("annotations/train/some.txt", way).unwrap().1.documents.dropped[NO_REPORT], 1);
        put("all/some.pipe", "");
        assert_eq!(open("all/some.txt", None).unwrap().0, 0);
        put("all/some.pipe.txt", ROWS);
        assert_eq!(open("all/some.txt", None).unwrap().0, 2);
        assert_eq!(open("all/some.pipe.txt", None).unwrap().1.documents.dropped[NO_REPORT], 1);
    }

    #[test]
    fn damaged_files_are_read_or_refused() {
        for misfits in [Misfits::Refuse, Misfits::Drop] {
            assert_sound_or_refuses(ROWS.as_bytes(), |bytes| {
                let read = get(bytes, misfits);
                read.map(|(document, _)| vec![document]).map_err(|error| error.to_string())
            });
        }
    }
}
