//! Tables of text as published, and damaged.

use std::path::Path;

use base::funnel::{BLANK_LINES, Tally};

use super::*;

fn shape(separator: Separator, first_line: FirstLine) -> Shape {
    Shape { separator, quotes: None, first_line }
}

fn rows(text: impl AsRef<[u8]>, separator: Separator, first: FirstLine) -> Result<Vec<String>, String> {
    shaped(text.as_ref(), shape(separator, first)).map(|(rows, _)| rows)
}

fn shaped(text: &[u8], shape: Shape) -> Result<(Vec<String>, Tally), String> {
    let read = || -> Result<(Vec<String>, Tally), ReadError> {
        let mut records = Records::new(text, Path::new("t.txt"), shape)?;
        let mut rows = Vec::new();
        while let Some(record) = records.next_record()? {
            let fields: Vec<&str> = (0..record.width()).map(|column| record.field(column)).collect();
            rows.push(format!("{}: {}", record.place(None).line, fields.join("/")));
        }
        let mut tally = Tally::new(Path::new("t.txt"), &[]);
        records.account(&mut tally);
        assert_eq!(tally.bytes, text.len() as u64);
        Ok((rows, tally))
    };
    read().map_err(|e| e.to_string())
}

#[test]
fn tabs_quote_nothing_and_commas_do() {
    let tabs = "\u{feff}a\t\"b\r\n\tc,d\n";
    assert_eq!(rows(tabs, Separator::Tab, FirstLine::Row).unwrap(), ["1: a/\"b", "2: /c,d"]);
    let commas = "\u{feff}\"a,b\",\"c \"\"d\"\"\"\r\n\"e\nf\",g\n\nh,";
    let expected = ["1: a,b/c \"d\"", "2: e\nf/g", "5: h/"];
    assert_eq!(rows(commas, Separator::Comma, FirstLine::Row).unwrap(), expected);
    assert_eq!(rows(commas, Separator::Comma, FirstLine::Names).unwrap(), expected[1..]);
    // As a file is read: its first two bytes come by themselves.
    let pieces = std::io::BufReader::with_capacity(2, commas.as_bytes());
    let mut records =
        Records::new(pieces, Path::new("t.txt"), shape(Separator::Comma, FirstLine::Row)).unwrap();
    assert_eq!(records.next_record().unwrap().unwrap().field(0), "a,b");
}

#[test]
fn columns_are_found_by_name_or_number() {
    let open = |first| {
        let text = &b"id\tname\tid\nx\ty\tz\n"[..];
        Records::new(text, Path::new("t.txt"), shape(Separator::Tab, first))
    };
    let name = |name: &str| Column::Name(name.to_owned());
    let mut named = open(FirstLine::Names).unwrap();
    assert_eq!(named.column(&name("name"), "text").unwrap(), 1);
    assert_eq!(named.column(&Column::Position(3), "text").unwrap(), 2);
    assert_eq!(named.optional(&["label", "name"]), Some(1));
    let cases = [
        (
            name("nam"),
            "t.txt: line 1: found \"id name id\", expected a column named \"nam\"; say in the config which column has the text",
        ),
        (name("id"), "as column \"id\", expected its number, since the name stands there twice"),
        (Column::Position(0), "as column 0, expected a number from 1"),
        (Column::Position(4), "as column 4, expected no more than"),
    ];
    for (column, expected) in cases {
        let message = named.column(&column, "text").unwrap_err().to_string();
        assert!(message.contains(expected), "{message}\nlacks {expected}");
    }
    let mut plain = open(FirstLine::Row).unwrap();
    let message = plain.column(&name("id"), "text").unwrap_err().to_string();
    assert!(message.contains("expected its number, since the first line has no names"), "{message}");
    plain.column(&Column::Position(4), "text").unwrap();
    let message = ReadError::from(plain.next_record().unwrap_err()).to_string();
    assert!(message.contains("line 1: 3 columns, expected 4"), "{message}");
}

#[test]
fn damaged_tables_are_refused() {
    let cases: [(&[u8], Separator, &str); 5] = [
        (b"a\tb\nc\n", Separator::Tab, "t.txt: line 2: 1 columns, expected 2"),
        (b"a\tb\n\xff\td\n", Separator::Tab, "line 2: byte 1 of the line is not valid UTF-8"),
        (b"a,b\nc,d,e\n", Separator::Comma, "line 2: 3 columns, expected 2"),
        (b"a,b\nc,\"d\n", Separator::Comma, "line 2: the file ends in the middle"),
        (b"a,b\nc,d\xff\n", Separator::Comma, "line 2: byte 2 of the line is not valid UTF-8"),
    ];
    for (text, separator, expected) in cases {
        let message = rows(text, separator, FirstLine::Row).unwrap_err();
        assert!(message.contains(expected), "{message}\nlacks {expected}");
    }
}

#[test]
fn silent_26_blank_lines_are_skipped_and_counted_quoted_or_not() {
    for (separator, text) in [
        (Separator::Tab, "\u{feff}\n\na\tb\n\n \t \nc\td\n\t\n\r\n"),
        (Separator::Comma, "\u{feff}\n\na,b\n\n , \nc,\"d\"\n,\n\r\n"),
    ] {
        for first in [FirstLine::Row, FirstLine::Names] {
            let (rows, tally) = shaped(text.as_bytes(), shape(separator, first)).unwrap();
            let expected = ["3: a/b", "6: c/d"];
            assert_eq!(rows, expected[usize::from(first == FirstLine::Names)..]);
            assert_eq!((tally.dropped[BLANK_LINES], tally.read, tally.lines), (6, 6, 8), "{separator:?}");
        }
    }
    let (rows, tally) = shaped(b"a,\"b\n\n\nc\"\n", shape(Separator::Comma, FirstLine::Row)).unwrap();
    assert_eq!((rows, tally.dropped[BLANK_LINES]), (vec!["1: a/b\n\n\nc".to_owned()], 0));
}

#[test]
fn silent_26_semicolons_and_pipes_separate_and_are_found_where_another_is_said() {
    for (separator, text) in [(Separator::Semicolon, "a;\"b;\n\"\"c\";d\n"), (Separator::Pipe, "a|b;\"c|d\n")]
    {
        let found = rows(text, separator, FirstLine::Row).unwrap();
        assert_eq!(found, [if separator == Separator::Pipe { "1: a/b;\"c/d" } else { "1: a/b;\n\"c/d" }]);
    }
    for (text, hint) in [
        (&b"x;y;z\na;b;c\n"[..], "(if it is ';': separator = \"semicolon\")"),
        (b"x|y|z\n", "(if it is '|': separator = \"pipe\")"),
        (b"x,y,z\n", "(if it is ',': separator = \"comma\")"),
    ] {
        let mut records =
            Records::new(text, Path::new("t.txt"), shape(Separator::Tab, FirstLine::Row)).unwrap();
        records.column(&Column::Position(3), "object").unwrap();
        let message = ReadError::from(records.next_record().unwrap_err()).to_string();
        assert!(message.contains("1 columns, expected 3") && message.ends_with(hint), "{message}");
        let mut records = Records::new(text, Path::new("t.txt"), Shape::TABS).unwrap();
        let message = records.column(&Column::Name("x".to_owned()), "subject").unwrap_err().to_string();
        assert!(message.ends_with(hint), "{message}");
    }
}

#[test]
fn silent_26_quoted_line_breaks_are_read_between_tabs_if_the_layout_says_so() {
    let shape = Shape { quotes: Some(Quotes::Double), ..shape(Separator::Tab, FirstLine::Row) };
    let (found, _) = shaped(b"\"a\"\t\"b\tb\n\"\"c\"\"\"\nd\te", shape).unwrap();
    assert_eq!(found, ["1: a/b\tb\n\"c\"", "3: d/e"]);
    let bare = Shape { quotes: Some(Quotes::None), separator: Separator::Comma, ..shape };
    assert_eq!(shaped(b"\"a,b\"\n", bare).unwrap().0, ["1: \"a/b\""]);
}

#[test]
fn silent_16_a_repeated_header_is_no_row_and_counted() {
    let text = "a\tb\n1\t2\na\t b\nb\ta\na\tb\n";
    let (found, tally) = shaped(text.as_bytes(), Shape::TABS).unwrap();
    assert_eq!(found, ["2: 1/2", "4: b/a"]);
    assert_eq!((tally.dropped[REPEATED_HEADER], tally.read), (2, 2));
}

#[test]
fn silent_16_quotes_that_wrap_a_field_are_seen() {
    let text = "\"a\"\t \"say \"\"b\"\"\" \t\"c\" or \"d\"\t\"\te\n";
    let mut records =
        Records::new(text.as_bytes(), Path::new("t.txt"), shape(Separator::Tab, FirstLine::Row)).unwrap();
    let row = records.next_record().unwrap().unwrap();
    assert_eq!([0, 1, 2, 3, 4].map(|column| row.is_wrapped(column)), [true, true, false, false, false]);
}
