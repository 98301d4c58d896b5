//! Rows of columns between tabs or commas.

use std::collections::HashMap;
use std::io::BufRead;
use std::path::Path;

use base::line::Lines;
use serde::{Deserialize, Serialize};
use tasks::Error;

use super::fields::{Fields, Value};
use super::{Item, PublishedSet, Row, open};
use crate::example::{Kind, Measure};
use crate::funnel::Step;

/// What stands between columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Between {
    /// One tab; quotes are ordinary characters, and a row is a line.
    Tabs,
    /// One tab; a field in double quotes may contain tabs, line breaks and doubled quotes, as Python's csv and pandas write such tables.
    QuotedTabs,
    /// One comma; a field in double quotes may contain commas, line breaks and doubled quotes (RFC 4180).
    Commas,
}

/// How a file is laid out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// What separates columns.
    pub between: Between,
    /// Names of the columns, where the first row does not have them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<Vec<String>>,
    /// Which columns hold the texts and the gold label.
    pub fields: Fields,
    /// Whether rows may have columns behind those that are named.
    #[serde(skip)]
    pub more: bool,
    /// Whether rows may lack columns: they are left out and counted.
    #[serde(skip)]
    pub short: bool,
}

/// Why a row is left out: it repeats the header, as files put behind one another do.
const REPEATED_HEADER: &str = "repeated header";

/// Why a row is left out of a published file that is known to be damaged.
const SHORT: &str = "too few columns";

/// Why a line is left out.
const BLANK: &str = "blank line";

/// Lines that one row in quotes may span.
const MOST_LINES: usize = 10_000;

/// Columns of these names between tabs; without names the file has a header.
pub(super) fn tabs(columns: &[&str], fields: Fields) -> Config {
    let columns: Vec<String> = columns.iter().map(|&name| name.to_owned()).collect();
    let columns = Some(columns).filter(|names| !names.is_empty());
    Config { between: Between::Tabs, columns, fields, more: false, short: false }
}

/// Columns between commas, in a file that has a header.
pub(super) fn between_commas(fields: Fields) -> Config {
    Config { between: Between::Commas, columns: None, fields, more: false, short: false }
}

/// Rows of one kind after the other.
struct Rows<'f, R> {
    lines: Lines<'f, R>,
    file: &'f Path,
    between: Between,
    number: u64,
    blank: u64,
}

impl<R: BufRead> Rows<'_, R> {
    fn row(&self, line: u64) -> Row<'_> {
        Row { file: self.file, line }
    }

    /// The next row and the line on which it begins; lines of nothing but white space are counted.
    fn next(&mut self) -> Result<Option<(u64, Vec<String>)>, Error> {
        let mut record = String::new();
        let (mut begin, mut quotes) = (0, 0);
        loop {
            let Some(line) = self.lines.next_line()? else {
                if record.is_empty() {
                    return Ok(None);
                }
                let row = self.row(begin);
                return Err(row.wrong("a double quote without its end", "a second one behind the field"));
            };
            self.number += 1;
            let text = if self.number == 1 { text::unmarked(line.text) } else { line.text };
            if record.is_empty() && text.trim().is_empty() {
                self.blank += 1;
                continue;
            }
            let separator = match self.between {
                Between::Tabs => {
                    return Ok(Some((self.number, text.split('\t').map(str::to_owned).collect())));
                }
                Between::QuotedTabs => b'\t',
                Between::Commas => b',',
            };
            if record.is_empty() {
                begin = self.number;
            } else {
                record.push('\n');
            }
            record.push_str(text);
            quotes += text.matches('"').count();
            if quotes.is_multiple_of(2) {
                return quoted(&record, separator).map(|fields| Some((begin, fields))).ok_or_else(|| {
                    self.row(begin).wrong(
                        "a double quote inside a field without quotes, or something between a field's own and the next column",
                        "a field in quotes as a whole, its own doubled: \"5\"\" tube\"",
                    )
                });
            }
            if self.number - begin > MOST_LINES as u64 {
                let found = format!("a field of more than {MOST_LINES} lines");
                return Err(self.row(begin).wrong(found, "its closing quote"));
            }
        }
    }
}

/// The fields of a row, some of which stand in quotes; none if quotes stand within fields, so that rows run into each other.
fn quoted(record: &str, separator: u8) -> Option<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(separator)
        .has_headers(false)
        .flexible(true)
        .from_reader(record.as_bytes());
    let rows = reader.records().collect::<Result<Vec<_>, _>>().ok()?;
    let [row] = rows.as_slice() else { return None };
    // A quote that opens no field is a character of it to the parser, but not to who wrote the file.
    let quotes: usize = row.iter().map(|field| field.matches('"').count()).sum();
    let paired =
        record.matches('"').count() >= 2 * quotes && ends_with_its_quote(record, char::from(separator));
    paired.then(|| row.iter().map(str::to_owned).collect())
}

/// Whether nothing stands between the quote that ends a field and the separator behind it, which the parser reads on.
fn ends_with_its_quote(record: &str, separator: char) -> bool {
    let (mut begins, mut quoted, mut rest) = (true, false, record.chars().peekable());
    while let Some(c) = rest.next() {
        match (quoted, c) {
            (true, '"') if rest.next_if_eq(&'"').is_none() => {
                quoted = false;
                if rest.peek().is_some_and(|next| ![separator, '\r'].contains(next)) {
                    return false;
                }
            }
            (false, '"') if begins => quoted = true,
            _ => {}
        }
        begins = !quoted && c == separator;
    }
    true
}

impl Config {
    /// Refuses a row with something behind the columns that have names.
    fn no_more(&self, row: Row<'_>, values: &[String], named: usize) -> Result<(), Error> {
        if self.more || values.iter().skip(named).all(|value| value.trim().is_empty()) {
            return Ok(());
        }
        let expected = format!(
            "{named}, as many as are named: quote or remove what stands between two{}",
            self.hint(values)
        );
        Err(row.wrong(format!("{} columns", values.len()), expected))
    }

    /// What may mend a row of another number of columns than are named.
    fn hint(&self, values: &[String]) -> &'static str {
        let is_quoted = self.between == Between::Tabs && values.iter().any(|value| value.starts_with('"'));
        if is_quoted {
            "; where double quotes delimit fields, read it by `format.separated` with `between = \"quoted_tabs\"`"
        } else {
            ""
        }
    }
}

impl PublishedSet for Config {
    fn extensions(&self) -> &'static [&'static str] {
        &[".tsv", ".csv", ".txt", ".tsv.gz", ".csv.gz", ".txt.gz"]
    }

    fn check(&self) -> Result<(), Error> {
        self.fields.check()
    }

    fn kind(&self) -> Kind {
        self.fields.kind()
    }

    fn measure(&self) -> Measure {
        self.fields.measure()
    }

    fn read(&self, file: &Path, take: &mut dyn FnMut(Item)) -> Result<Vec<Step>, Error> {
        let lines = Lines::new(open(file)?, file);
        let mut rows = Rows { lines, file, between: self.between, number: 0, blank: 0 };
        let header = match &self.columns {
            Some(columns) => columns.clone(),
            None => match rows.next()? {
                Some((_, names)) => names,
                None => {
                    let row = Row { file, line: 1 };
                    return Err(
                        row.wrong("an empty file", "a line with the names of columns, and rows behind it")
                    );
                }
            },
        };
        let wanted = self.fields.all();
        let columns = columns(&header, &wanted, Row { file, line: 1 })?;
        let least = wanted.iter().filter_map(|name| columns.get(name)).max().map_or(0, |last| last + 1);
        let mut step = Step::new("rows");
        while let Some((line, values)) = rows.next()? {
            let row = Row { file, line };
            if values.len() < least && self.short {
                step.drop(SHORT, 1);
                continue;
            }
            if values.len() < least {
                let (last, hint) = (&header[least - 1], self.hint(&values));
                let expected = format!("at least {least}, of which number {least} is {last:?}{hint}");
                return Err(row.wrong(format!("{} columns", values.len()), expected));
            }
            if is_header(&values, &header) {
                if self.columns.is_some() {
                    return Err(row.wrong(
                        "the names of the columns",
                        "a row: leave out `columns`, the file names them",
                    ));
                }
                step.drop(REPEATED_HEADER, 1);
                continue;
            }
            self.no_more(row, &values, header.len())?;
            let field =
                |name: &str| columns.get(name).and_then(|&at| values.get(at)).cloned().map(Value::Text);
            match self.fields.item(row, field)? {
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
        Ok(vec![step])
    }
}

/// The places of columns by name; every one that is wanted is there.
fn columns<'h>(
    header: &'h [String],
    wanted: &[&str],
    row: Row<'_>,
) -> Result<HashMap<&'h str, usize>, Error> {
    let mut columns = HashMap::new();
    for (place, name) in header.iter().enumerate() {
        if columns.insert(name.trim(), place).is_some() {
            return Err(row.wrong(format!("two columns {name:?}"), "every name once"));
        }
    }
    match wanted.iter().find(|name| !columns.contains_key(**name)) {
        Some(missing) => {
            Err(row.wrong(format!("the columns {}", header.join(", ")), format!("a column {missing:?}")))
        }
        None => Ok(columns),
    }
}

/// Whether a row says what the columns are called, in whatever case.
fn is_header(values: &[String], header: &[String]) -> bool {
    let same = |(value, name): (&String, &String)| value.trim().eq_ignore_ascii_case(name.trim());
    values.len() == header.len() && values.iter().zip(header).all(same)
}

#[cfg(test)]
mod tests {
    use super::super::fields::Asked;
    use super::super::tests::items as of;
    use super::super::{Label, cola, glue_pairs, sts_b};
    use super::*;

    #[test]
    fn columns_have_names_from_the_header_or_from_the_layout() {
        let (rows, step) =
            of(&cola::SET, "gj04\t1\t\tHe \"won\".\r\ngj04\t0\t*\tWon he.\n\ngj04\t1\t\t \n").unwrap();
        assert_eq!((rows.len(), step.dropped["no text"]), (2, 1));
        assert_eq!((rows[0].id.as_str(), rows[0].text.as_str()), ("some/1", "He \"won\"."));
        assert_eq!(rows[1].label, Label::Class("unacceptable".to_owned()));

        let rte = "\u{feff}index\tsentence1\tsentence2\tlabel\n7\tA.\tB.\tentailment\n";
        let (rows, _) = of(&glue_pairs::SET, rte).unwrap();
        assert_eq!((rows[0].pair.as_deref(), rows[0].group.as_str()), (Some("B."), "A."));

        let (rows, _) = of(&sts_b::SET, "g\tf\t2012\t1\t3.800\tA.\tB.\tsource\tother\n").unwrap();
        assert_eq!(rows[0].label, Label::Score(3.8));
    }

    #[test]
    fn silent_16_a_repeated_header_is_no_row_and_no_class() {
        let part = "sentence1\tsentence2\tlabel\nA.\tB.\tyes\n\n";
        let (rows, step) = of(&glue_pairs::SET, [part, part].concat()).unwrap();
        assert!(rows.iter().all(|row| row.label == Label::Class("yes".to_owned())));
        assert_eq!((rows.len(), step.read, step.dropped[REPEATED_HEADER], step.dropped[BLANK]), (2, 5, 1, 2));
        assert!(step.adds_up());
        let label = Asked::Class("label".to_owned());
        let named =
            tabs(&["sentence1", "sentence2", "label"], Fields::new("sentence1", Some("sentence2"), label));
        let wrong = of(&named, part).unwrap_err();
        assert!(
            wrong.contains("line 1: found the names of the columns") && wrong.contains("leave out `columns`"),
            "{wrong}"
        );
    }

    fn notes() -> Config {
        let classes = Asked::Classes { field: "kinds".to_owned(), between: ";".to_owned() };
        let group = Some("page".to_owned());
        let fields = Fields { group, ..Fields::new("note", None, classes) };
        Config { between: Between::Commas, ..tabs(&[], fields) }
    }

    #[test]
    fn fields_in_quotes_span_lines() {
        let file = "page,note,kinds\n1,\"one, \"\"two\"\"\nthree\",a; b\n2,four,\n";
        let (rows, _) = of(&notes(), file).unwrap();
        assert_eq!(rows[0].text, "one, \"two\"\nthree");
        assert_eq!(rows[0].label, Label::Classes(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!((rows[1].id.as_str(), rows[1].group.as_str()), ("some/4", "2"));
        assert_eq!(rows[1].label, Label::Classes(vec![]));
        let within = of(&notes(), "page,note,kinds\n1,5\" tube,b\n2,plain,b\n3,7\" tube,c\n").unwrap_err();
        assert!(within.contains("line 2: found a double quote inside a field without quotes"), "{within}");
        for behind in ["\"b0\" z", "\"5\"\" tube\" long", "\"b0\" "] {
            let row = format!("page,note,kinds\n1,{behind},b\n");
            let refused = of(&notes(), &row).unwrap_err();
            assert!(refused.contains("line 2: found a double quote inside a field"), "{behind}: {refused}");
        }
        let well = of(&notes(), "page,note,kinds\r\n1,\"5\"\" tube, \"\"long\"\"\",\"b\"\r\n").unwrap().0;
        assert_eq!(well[0].text, "5\" tube, \"long\"");
        let open = of(&notes(), "page,note,kinds\n1,\"one\n2,four,a\n").unwrap_err();
        assert!(open.contains("line 2: found a double quote without its end"), "{open}");
    }

    #[test]
    fn between_tabs_quotes_are_characters_or_delimit_a_field_as_the_config_says() {
        let label = Asked::Class("label".to_owned());
        let plain = tabs(&[], Fields::new("sentence", None, label));
        let delimiting = Config { between: Between::QuotedTabs, ..plain.clone() };
        // What Python's `csv.writer(file, delimiter="\t")` makes of: a "5-HT" agonist, and @GENE$ (a tab) here.
        let file = "index\tsentence\tlabel\n1\t\"a \"\"5-HT\"\" agonist\"\tCPR:5\n2\t\"@GENE$\there\"\tfalse\n3\t\"a\nb\"\tfalse\n";
        let (rows, step) = of(&delimiting, file).unwrap();
        assert_eq!((rows[0].text.as_str(), rows[1].text.as_str()), ("a \"5-HT\" agonist", "@GENE$\there"));
        assert_eq!((rows[1].id.as_str(), rows[2].text.as_str(), step.read), ("some/3", "a\nb", 3));
        let one = file.lines().take(2).collect::<Vec<_>>().join("\n");
        assert_eq!(of(&plain, &one).unwrap().0[0].text, "\"a \"\"5-HT\"\" agonist\"");
        let told = of(&plain, file).unwrap_err();
        assert!(
            told.contains("line 3: found 4 columns, expected 3") && told.contains("quoted_tabs"),
            "{told}"
        );
        let cut = of(&plain, "index\tsentence\tlabel\n1\t\"a line\nand another\"\tfalse\n").unwrap_err();
        assert!(cut.contains("line 2: found 2 columns") && cut.contains("quoted_tabs"), "{cut}");
        let within = of(&delimiting, "index\tsentence\tlabel\n1\t5\" tube\tno\n").unwrap_err();
        assert!(within.contains("line 2: found a double quote"), "{within}");
    }

    #[test]
    fn what_is_not_as_said_is_named_with_its_line() {
        let told = |content: &str| of(&cola::SET, content).unwrap_err();
        let short = told("gj04\t1\t\n");
        assert!(
            short.contains("line 1: found 3 columns, expected at least 4, of which number 4 is \"sentence\""),
            "{short}"
        );
        assert!(told("g\t2\t\tA.\n").contains("found \"2\" as \"label\", expected \"0\" or \"1\""));
        let header = of(&glue_pairs::SET, "sentence1\tlabel\n").unwrap_err();
        assert!(
            header.contains("found the columns sentence1, label, expected a column \"sentence2\""),
            "{header}"
        );
        let more = of(&glue_pairs::SET, "sentence1\tsentence2\tlabel\nA.\tB.\tyes\tmore\n").unwrap_err();
        assert!(more.contains("line 2: found 4 columns, expected 3, as many as are named"), "{more}");
        let quoted = of(&glue_pairs::SET, "sentence1\tsentence2\tlabel\nA.\tB.\t\"yes\"\n").unwrap_err();
        assert!(
            quoted.contains("line 2: found \"yes\" as \"label\", expected a class without quotes"),
            "{quoted}"
        );
        let twice = of(&glue_pairs::SET, "label\tlabel\n").unwrap_err();
        assert!(twice.contains("two columns \"label\""), "{twice}");
    }
}
