//! Rows of columns between tabs or commas, and the published sets that have them.

use std::collections::HashMap;
use std::io::BufRead;

use base::line::Lines;
use serde::{Deserialize, Serialize};

use super::fields::{Asked, Fields, Row, Value};
use super::{Error, Item, Source};
use crate::downstream::funnel::Step;

/// What stands between columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Between {
    /// One tab; quotes are characters like any others, and a row is a line.
    Tabs,
    /// One comma; a field in double quotes may hold commas, line ends and doubled quotes (RFC 4180).
    Commas,
}

/// How a file is laid out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What stands between columns.
    pub between: Between,
    /// The columns' names, for a file without a header; else the first row has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<String>>,
    /// What the columns mean.
    pub fields: Fields,
    /// Whether rows may have columns behind those that are named.
    #[serde(skip)]
    pub more: bool,
}

/// Why a row is left out: it repeats the header, as files put behind one another do.
const REPEATED_HEADER: &str = "repeated header";

/// Why a line is left out.
const BLANK: &str = "blank line";

/// Lines that one row in quotes may span.
const MOST_LINES: usize = 10_000;

fn preset(columns: Option<&[&str]>, (text, pair): (&str, Option<&str>), answer: Asked) -> Config {
    let owned = |name: &str| name.to_owned();
    let columns = columns.map(|names| names.iter().copied().map(owned).collect());
    let fields = Fields {
        text: owned(text),
        pair: pair.map(owned),
        answer,
        id: None,
        group: None,
        names: std::collections::BTreeMap::new(),
    };
    Config { between: Between::Tabs, columns, fields, more: false }
}

/// CoLA: `source label mark sentence`, without a header.
pub(super) fn cola() -> Config {
    let columns = ["source", "label", "mark", "sentence"];
    let mut config = preset(Some(&columns), ("sentence", None), Asked::Class("label".to_owned()));
    config.fields.names = [("0", "unacceptable"), ("1", "acceptable")]
        .map(|(mark, name)| (mark.to_owned(), name.to_owned()))
        .into();
    config
}

/// RTE, WNLI and their like: a header with `sentence1`, `sentence2`, `label`.
pub(super) fn glue_pairs() -> Config {
    preset(None, ("sentence1", Some("sentence2")), Asked::Class("label".to_owned()))
}

/// SST-2: the header `sentence label`.
pub(super) fn sst2() -> Config {
    let mut config = preset(None, ("sentence", None), Asked::Class("label".to_owned()));
    config.fields.names =
        [("0", "negative"), ("1", "positive")].map(|(mark, name)| (mark.to_owned(), name.to_owned())).into();
    config
}

/// STS-B: `genre file year id score sentence1 sentence2`, without a header, at times with sources behind them.
pub(super) fn sts_b() -> Config {
    let columns = ["genre", "file", "year", "id", "score", "sentence1", "sentence2"];
    let score = Asked::Score(vec!["score".to_owned()]);
    Config { more: true, ..preset(Some(&columns), ("sentence1", Some("sentence2")), score) }
}

/// BIOSSES: a header with `sentence_1`, `sentence_2` and five judges.
pub(super) fn biosses() -> Config {
    let judges = ["a", "b", "c", "d", "e"].map(|judge| format!("annotator_{judge}"));
    let mut config = preset(None, ("sentence_1", Some("sentence_2")), Asked::Score(judges.into()));
    config.fields.id = Some("sentence_id".to_owned());
    config
}

/// ClinicalSTS: `snippet1 snippet2 score`, without a header.
pub(super) fn clinical_sts() -> Config {
    let columns = ["snippet1", "snippet2", "score"];
    preset(Some(&columns), ("snippet1", Some("snippet2")), Asked::Score(vec!["score".to_owned()]))
}

/// Rows of one kind after the other.
struct Rows<'f, R> {
    lines: Lines<'f, R>,
    between: Between,
    number: u64,
    blank: u64,
}

impl<R: BufRead> Rows<'_, R> {
    /// The next row and the line on which it begins; lines of nothing but white space are counted.
    fn next(&mut self, file: &std::path::Path) -> Result<Option<(u64, Vec<String>)>, Error> {
        let mut record = String::new();
        let (mut begin, mut quotes) = (0, 0);
        loop {
            let Some(line) = self.lines.next_line()? else {
                if record.is_empty() {
                    return Ok(None);
                }
                let row = Row { file, line: begin };
                return Err(row.wrong("a double quote without its end", "a second one behind the field"));
            };
            self.number += 1;
            let text = if self.number == 1 { text::unmarked(line.text) } else { line.text };
            match self.between {
                _ if record.is_empty() && text.trim().is_empty() => {
                    self.blank += 1;
                    continue;
                }
                Between::Tabs => {
                    return Ok(Some((self.number, text.split('\t').map(str::to_owned).collect())));
                }
                Between::Commas => {}
            }
            if record.is_empty() {
                begin = self.number;
            } else {
                record.push('\n');
            }
            record.push_str(text);
            quotes += text.matches('"').count();
            if quotes.is_multiple_of(2) {
                let row = Row { file, line: begin };
                return commas(&record).map(|fields| Some((begin, fields))).ok_or_else(|| {
                    row.wrong(
                        "a double quote inside a field without quotes",
                        "such a field in quotes, its own doubled: \"5\"\" tube\"",
                    )
                });
            }
            if self.number - begin > MOST_LINES as u64 {
                let row = Row { file, line: begin };
                return Err(
                    row.wrong(format!("a field of more than {MOST_LINES} lines"), "its closing quote")
                );
            }
        }
    }
}

/// The fields of a row between commas; none if quotes stand within fields, so that rows run into each other.
fn commas(record: &str) -> Option<Vec<String>> {
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(record.as_bytes());
    let rows = reader.records().collect::<Result<Vec<_>, _>>().ok()?;
    let [row] = rows.as_slice() else { return None };
    // A quote that opens no field is a character of it to the parser, but not to who wrote the file.
    let quotes: usize = row.iter().map(|field| field.matches('"').count()).sum();
    let paired = record.matches('"').count() >= 2 * quotes;
    paired.then(|| row.iter().map(str::to_owned).collect())
}

/// Hands each row of a file to `take`.
pub(super) fn read(
    (reader, file): Source<'_>,
    config: &Config,
    take: &mut dyn FnMut(Item),
) -> Result<Step, Error> {
    let lines = Lines::new(reader, file);
    let mut rows = Rows { lines, between: config.between, number: 0, blank: 0 };
    let header = match &config.columns {
        Some(columns) => columns.clone(),
        None => rows.next(file)?.map(|(_, names)| names).unwrap_or_default(),
    };
    let mut columns: HashMap<&str, usize> = HashMap::new();
    for (place, name) in header.iter().enumerate() {
        if columns.insert(name.trim(), place).is_some() {
            let row = Row { file, line: 1 };
            return Err(row.wrong(format!("two columns {name:?}"), "every name once"));
        }
    }
    let wanted = config.fields.all();
    if let Some(missing) = wanted.iter().find(|name| !columns.contains_key(**name)) {
        let row = Row { file, line: 1 };
        return Err(row.wrong(format!("the columns {}", header.join(", ")), format!("a column {missing:?}")));
    }
    let least = wanted.iter().filter_map(|name| columns.get(name)).max().map_or(0, |last| last + 1);
    let mut step = Step::new("rows");
    while let Some((line, values)) = rows.next(file)? {
        let row = Row { file, line };
        if values.len() < least {
            let expected = format!("at least {least}, of which number {least} is {:?}", header[least - 1]);
            return Err(row.wrong(format!("{} columns", values.len()), expected));
        }
        if is_header(&values, &header) {
            if config.columns.is_some() {
                return Err(
                    row.wrong("the names of the columns", "a row: leave out `columns`, the file names them")
                );
            }
            step.drop(REPEATED_HEADER, 1);
            continue;
        }
        if !config.more && values.iter().skip(header.len()).any(|value| !value.trim().is_empty()) {
            let expected =
                format!("{}, as many as are named: quote or remove what stands between two", header.len());
            return Err(row.wrong(format!("{} columns", values.len()), expected));
        }
        let field = |name: &str| columns.get(name).and_then(|&at| values.get(at)).cloned().map(Value::Text);
        match config.fields.item(row, field)? {
            Ok(item) => {
                step.keep(1);
                take(item);
            }
            Err(reason) => step.drop(reason, 1),
        }
    }
    if rows.blank > 0 {
        step.drop(BLANK, rows.blank);
    }
    Ok(step)
}

/// Whether a row says what the columns are called, in whatever case.
fn is_header(values: &[String], header: &[String]) -> bool {
    let same = |(value, name): (&String, &String)| value.trim().eq_ignore_ascii_case(name.trim());
    values.len() == header.len() && values.iter().zip(header).all(same)
}

#[cfg(test)]
mod tests {
    use super::super::Label;
    use super::super::tests::items;
    use super::*;

    fn of(config: &Config, content: &str) -> Result<(Vec<Item>, Step), String> {
        items(|source, take| read(source, config, take), content)
    }

    #[test]
    fn columns_have_names_from_the_header_or_from_the_layout() {
        let (rows, step) =
            of(&cola(), "gj04\t1\t\tHe \"won\".\r\ngj04\t0\t*\tWon he.\n\ngj04\t1\t\t \n").unwrap();
        assert_eq!((rows.len(), step.dropped["no text"]), (2, 1));
        assert_eq!((rows[0].id.as_str(), rows[0].text.as_str()), ("some/1", "He \"won\"."));
        assert_eq!(rows[1].label, Label::Class("unacceptable".to_owned()));

        let rte = "\u{feff}index\tsentence1\tsentence2\tlabel\n7\tA.\tB.\tentailment\n";
        let (rows, _) = of(&glue_pairs(), rte).unwrap();
        assert_eq!((rows[0].pair.as_deref(), rows[0].group.as_str()), (Some("B."), "A."));

        let (rows, _) = of(&sts_b(), "g\tf\t2012\t1\t3.800\tA.\tB.\tsource\tother\n").unwrap();
        assert_eq!(rows[0].label, Label::Score(3.8));
    }

    #[test]
    fn silent_16_a_repeated_header_is_no_row_and_no_class() {
        let part = "sentence1\tsentence2\tlabel\nA.\tB.\tyes\n\n";
        let (rows, step) = of(&glue_pairs(), &[part, part].concat()).unwrap();
        assert!(rows.iter().all(|row| row.label == Label::Class("yes".to_owned())));
        assert_eq!((rows.len(), step.read, step.dropped[REPEATED_HEADER], step.dropped[BLANK]), (2, 5, 1, 2));
        assert!(step.adds_up());
        let mut named = glue_pairs();
        named.columns = Some(["sentence1", "sentence2", "label"].map(str::to_owned).into());
        let wrong = of(&named, part).unwrap_err();
        assert!(
            wrong.contains("line 1: found the names of the columns") && wrong.contains("leave out `columns`"),
            "{wrong}"
        );
    }

    #[test]
    fn a_score_is_the_mean_of_its_judges() {
        let header = "sentence_id\tsentence_1\tsentence_2\tannotator_a\tannotator_b\tannotator_c\tannotator_d\tannotator_e\n";
        let (rows, _) = of(&biosses(), &format!("{header}9\tA.\tB. \t4\t3\t4\t4\t3\n")).unwrap();
        assert_eq!((rows[0].id.as_str(), rows[0].pair.as_deref()), ("some/9", Some("B.")));
        assert_eq!(rows[0].label, Label::Score(3.6));
        let wrong = of(&biosses(), &format!("{header}9\tA.\tB.\t4\tx\t4\t4\t3\n")).unwrap_err();
        assert!(wrong.contains("line 2: found \"x\" as \"annotator_b\", expected a number"), "{wrong}");
    }

    fn quoted() -> Config {
        let classes = Asked::Classes { field: "kinds".to_owned(), between: ";".to_owned() };
        let mut config = preset(None, ("note", None), classes);
        config.between = Between::Commas;
        config.fields.group = Some("page".to_owned());
        config
    }

    #[test]
    fn fields_in_quotes_span_lines() {
        let file = "page,note,kinds\n1,\"one, \"\"two\"\"\nthree\",a; b\n2,four,\n";
        let (rows, _) = of(&quoted(), file).unwrap();
        assert_eq!(rows[0].text, "one, \"two\"\nthree");
        assert_eq!(rows[0].label, Label::Classes(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!((rows[1].id.as_str(), rows[1].group.as_str()), ("some/4", "2"));
        assert_eq!(rows[1].label, Label::Classes(vec![]));
        let within = of(&quoted(), "page,note,kinds\n1,5\" tube,b\n2,plain,b\n3,7\" tube,c\n").unwrap_err();
        assert!(within.contains("line 2: found a double quote inside a field without quotes"), "{within}");
        let open = of(&quoted(), "page,note,kinds\n1,\"one\n2,four,a\n").unwrap_err();
        assert!(open.contains("line 2: found a double quote without its end"), "{open}");
    }

    #[test]
    fn what_is_not_as_said_is_named_with_its_line() {
        let told = |content: &str| of(&cola(), content).unwrap_err();
        let short = told("gj04\t1\t\n");
        assert!(
            short.contains("line 1: found 3 columns, expected at least 4, of which number 4 is \"sentence\""),
            "{short}"
        );
        assert!(told("g\t2\t\tA.\n").contains("found \"2\" as \"label\", expected \"0\" or \"1\""));
        let header = of(&glue_pairs(), "sentence1\tlabel\n").unwrap_err();
        assert!(
            header.contains("found the columns sentence1, label, expected a column \"sentence2\""),
            "{header}"
        );
        let more = of(&glue_pairs(), "sentence1\tsentence2\tlabel\nA.\tB.\tyes\tmore\n").unwrap_err();
        assert!(more.contains("line 2: found 4 columns, expected 3, as many as are named"), "{more}");
        let quoted = of(&glue_pairs(), "sentence1\tsentence2\tlabel\nA.\tB.\t\"yes\"\n").unwrap_err();
        assert!(
            quoted.contains("line 2: found \"yes\" as \"label\", expected a class without quotes"),
            "{quoted}"
        );
        let twice = of(&glue_pairs(), "label\tlabel\n").unwrap_err();
        assert!(twice.contains("two columns \"label\""), "{twice}");
    }
}
