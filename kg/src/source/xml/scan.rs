//! A pull scanner over XML in memory: elements in order, nesting checked, nothing copied that is not asked for.
//!
//! Why not an event reader: most of a MeSH file is white space and elements that nobody asks for. Here an element that is passed
//! over costs one search for `<` and one comparison of names, three to four times less than an event. What is read is checked in
//! full (references, attributes); what is skipped must nest, no more. Entities other than XML's five are refused, never
//! expanded, so that a small file cannot grow.

use memchr::{memchr, memchr3, memmem};

/// Elements inside one another, at most: published files have ten.
const DEPTH: usize = 64;

/// What is wrong, and at which byte of the text: its length if the text ends too early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) at: usize,
    pub(crate) found: String,
    pub(crate) expected: String,
}

impl Fault {
    pub(crate) fn new(at: usize, found: impl Into<String>, expected: impl Into<String>) -> Box<Self> {
        Box::new(Self { at, found: found.into(), expected: expected.into() })
    }
}

/// An element's name and its attributes as they stand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tag<'a> {
    pub(crate) name: &'a str,
    pub(crate) at: usize,
    attributes: &'a str,
}

#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    open: Vec<&'a str>,
    /// The innermost element was `<name/>` and is yet to be closed.
    empty: bool,
}

enum Step<'a> {
    Open(Tag<'a>),
    Close,
    End,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0, open: Vec::with_capacity(16), empty: false }
    }

    /// As if `name` had been opened and closed again a part of its contents ago.
    pub(crate) fn inside(name: &'a str, text: &'a str) -> Self {
        let mut scanner = Self::new(text);
        scanner.open.push(name);
        scanner
    }

    /// Goes on at byte `at`, the beginning of a character.
    pub(crate) fn go(&mut self, at: usize) {
        self.at = at;
    }

    /// The byte up to which the text has been scanned.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// The next element inside the innermost open one, which it opens; none when that one ends, which it closes, or, outside of
    /// all, when the text does. Text between elements is skipped.
    pub(crate) fn child(&mut self) -> Result<Option<Tag<'a>>, Box<Fault>> {
        match self.step()? {
            Step::Open(tag) => Ok(Some(tag)),
            Step::Close | Step::End => Ok(None),
        }
    }

    /// Skips the rest of the innermost open element and closes it.
    pub(crate) fn skip(&mut self) -> Result<(), Box<Fault>> {
        let outside = self.open.len().saturating_sub(1);
        while self.open.len() > outside {
            self.step()?;
        }
        Ok(())
    }

    /// Appends the text of the innermost open element, without white space at its ends, to `out`, and closes the element.
    pub(crate) fn text(&mut self, out: &mut String) -> Result<(), Box<Fault>> {
        let start = out.len();
        if std::mem::take(&mut self.empty) {
            self.open.pop();
            return Ok(());
        }
        loop {
            let end = self.next_markup().ok_or_else(|| self.cut())?;
            self.decode(self.at..end, out)?;
            match self.text.as_bytes().get(end + 1) {
                Some(b'/') => {
                    self.close(end)?;
                    break;
                }
                Some(b'!' | b'?') => {
                    if let Some(data) = self.pass(end)? {
                        out.push_str(data);
                    }
                }
                _ => return Err(self.fault(end, format!("no element inside <{}>, only text", self.name()))),
            }
        }
        out.truncate(start + out[start..].trim_end().len());
        let blank = out[start..].len() - out[start..].trim_start().len();
        if blank > 0 {
            out.replace_range(start..start + blank, "");
        }
        Ok(())
    }

    /// The value of an attribute as it stands, references included.
    pub(crate) fn attribute(&self, tag: &Tag<'a>, wanted: &str) -> Result<Option<&'a str>, Box<Fault>> {
        let mut rest = tag.attributes.trim_start();
        while !rest.is_empty() {
            let shape = || Fault::new(tag.at, excerpt(&self.text[tag.at..]), "attributes as name=\"value\"");
            let (name, after) = rest.split_once('=').ok_or_else(shape)?;
            let after = after.trim_start();
            let quote = after.chars().next().filter(|&c| c == '"' || c == '\'').ok_or_else(shape)?;
            let (value, after) = after[1..].split_once(quote).ok_or_else(shape)?;
            if name.trim_end() == wanted {
                return Ok(Some(value));
            }
            rest = after.trim_start();
        }
        Ok(None)
    }

    /// The fault that something else stands at byte `at` than `expected`.
    pub(crate) fn fault(&self, at: usize, expected: impl Into<String>) -> Box<Fault> {
        Fault::new(at, excerpt(self.text.get(at..).unwrap_or_default()), expected)
    }

    fn name(&self) -> &'a str {
        self.open.last().copied().unwrap_or_default()
    }

    fn cut(&self) -> Box<Fault> {
        Fault::new(self.text.len(), "the end", format!("</{}>", self.name()))
    }

    fn next_markup(&self) -> Option<usize> {
        memchr(b'<', self.text.as_bytes().get(self.at..)?).map(|found| self.at + found)
    }

    fn step(&mut self) -> Result<Step<'a>, Box<Fault>> {
        if std::mem::take(&mut self.empty) {
            self.open.pop();
            return Ok(Step::Close);
        }
        loop {
            let Some(at) = self.next_markup() else {
                return if self.open.is_empty() { Ok(Step::End) } else { Err(self.cut()) };
            };
            match self.text.as_bytes().get(at + 1) {
                Some(b'/') => {
                    self.close(at)?;
                    return Ok(Step::Close);
                }
                Some(b'!' | b'?') => drop(self.pass(at)?),
                _ => return self.begin(at).map(Step::Open),
            }
        }
    }

    /// Opens the element whose `<` stands at `at`.
    #[inline]
    fn begin(&mut self, at: usize) -> Result<Tag<'a>, Box<Fault>> {
        let bytes = self.text.as_bytes();
        let after = bytes.get(at + 1..).unwrap_or_default();
        let length = after.iter().position(|&byte| !is_name(byte)).ok_or_else(|| self.cut_tag(at))?;
        let end = at + 1 + length;
        if length == 0 || matches!(after.first(), Some(b'0'..=b'9' | b'-' | b'.')) {
            return Err(self.fault(at, "a tag (a < in text is written &lt;)"));
        }
        let close = if bytes.get(end) == Some(&b'>') { end } else { self.tag_end(at, end)? };
        self.empty = close > end && bytes.get(close - 1) == Some(&b'/');
        if bytes.get(end) == Some(&b'/') && close > end + 1 {
            return Err(self.fault(at, "a tag that ends with > or />"));
        }
        if self.open.len() == DEPTH {
            return Err(self.fault(at, format!("at most {DEPTH} elements inside one another")));
        }
        let name = &self.text[at + 1..end];
        self.open.push(name);
        self.at = close + 1;
        Ok(Tag { name, at, attributes: &self.text[end..close - usize::from(self.empty)] })
    }

    /// Where the `>` of the tag at `at` stands, whose name ends at `end`; a `>` inside quotes is a part of a value.
    fn tag_end(&self, at: usize, end: usize) -> Result<usize, Box<Fault>> {
        let bytes = self.text.as_bytes();
        if !matches!(bytes.get(end), Some(b' ' | b'\t' | b'\r' | b'\n' | b'/')) {
            return Err(self.fault(at, "a tag (a < in text is written &lt;)"));
        }
        let mut from = end;
        loop {
            let rest = bytes.get(from..).unwrap_or_default();
            let found = from + memchr3(b'>', b'"', b'\'', rest).ok_or_else(|| self.cut_tag(at))?;
            let mark = bytes[found];
            if mark == b'>' {
                return match memchr(b'<', &bytes[end..found]) {
                    Some(_) => Err(self.fault(at, "a tag that ends with >")),
                    None => Ok(found),
                };
            }
            let value = bytes.get(found + 1..).unwrap_or_default();
            from = found + 2 + memchr(mark, value).ok_or_else(|| self.cut_tag(at))?;
        }
    }

    /// A tag without end: the text is cut, or a quote is missing.
    fn cut_tag(&self, at: usize) -> Box<Fault> {
        let expected = "a tag that ends with >";
        match memchr(b'>', self.text.as_bytes().get(at..).unwrap_or_default()) {
            Some(_) => self.fault(at, expected),
            None => Fault::new(self.text.len(), "the end", expected),
        }
    }

    /// Closes the innermost element with the tag whose `<` stands at `at`.
    #[inline]
    fn close(&mut self, at: usize) -> Result<(), Box<Fault>> {
        let name = self.name();
        let rest = self.text.as_bytes().get(at + 2..).unwrap_or_default();
        let after = rest.strip_prefix(name.as_bytes()).unwrap_or_default();
        let blank = after.iter().position(|byte| !byte.is_ascii_whitespace());
        match blank {
            Some(blank) if after[blank] == b'>' && self.open.pop().is_some() => {
                self.at = at + 2 + name.len() + blank + 1;
                Ok(())
            }
            _ if self.open.is_empty() => Err(self.fault(at, "no closing tag: nothing is open")),
            _ => Err(self.fault(at, format!("</{name}>"))),
        }
    }

    /// Skips a comment, a processing instruction or a CDATA section, whose text it gives.
    fn pass(&mut self, at: usize) -> Result<Option<&'a str>, Box<Fault>> {
        let rest = &self.text[at..];
        let kinds = [
            ("<!--", "-->", "a comment"),
            ("<![CDATA[", "]]>", "a CDATA section"),
            ("<?", "?>", "an instruction"),
        ];
        let Some((start, end, what)) = kinds.into_iter().find(|(start, ..)| rest.starts_with(start)) else {
            return Err(self.fault(at, "an element, a comment or text"));
        };
        let inside = &rest[start.len()..];
        let length = memmem::find(inside.as_bytes(), end.as_bytes())
            .ok_or_else(|| self.fault(at, format!("{what} that ends with {end}")))?;
        self.at = at + start.len() + length + end.len();
        Ok((start == "<![CDATA[").then(|| &inside[..length]))
    }

    /// Appends a stretch of text with its references resolved.
    fn decode(&self, range: std::ops::Range<usize>, out: &mut String) -> Result<(), Box<Fault>> {
        let (mut from, end) = (range.start, range.end);
        while let Some(found) = memchr(b'&', &self.text.as_bytes()[from..end]) {
            let at = from + found;
            out.push_str(&self.text[from..at]);
            let known = self.text[at..end].find(';').and_then(|length| {
                let decoded = quick_xml::escape::unescape(&self.text[at..=at + length]).ok()?;
                Some((decoded, at + length + 1))
            });
            let Some((decoded, after)) = known else {
                return Err(self.fault(
                    at,
                    "&amp;, &lt;, &gt;, &quot;, &apos; or a character by number (other entities are not expanded)",
                ));
            };
            out.push_str(&decoded);
            from = after;
        }
        out.push_str(&self.text[from..end]);
        Ok(())
    }
}

#[inline]
fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'-' | b'.') || byte >= 0x80
}

/// The beginning of a text, for messages.
pub(crate) fn excerpt(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use quick_xml::events::Event;

    use super::*;

    /// The whole text as `<name` for an opened element, `text` for what a leaf holds, `>` for a closed one.
    fn walk(text: &str) -> Result<Vec<String>, Box<Fault>> {
        fn inside(scanner: &mut Scanner<'_>, out: &mut Vec<String>) -> Result<(), Box<Fault>> {
            while let Some(tag) = scanner.child()? {
                out.push(format!("<{}", tag.name));
                if tag.name.starts_with("leaf") {
                    let mut text = String::new();
                    scanner.text(&mut text)?;
                    out.push(text);
                } else {
                    inside(scanner, out)?;
                }
                out.push(">".to_owned());
            }
            Ok(())
        }
        let (mut scanner, mut out) = (Scanner::new(text), Vec::new());
        inside(&mut scanner, &mut out)?;
        Ok(out)
    }

    #[test]
    fn elements_come_in_order_and_leaves_have_their_text() {
        let text = "\n<a x = 'q>\"'><!-- <b> --><leaf1>  one &amp; &#x74;wo\n</leaf1 ><?p <b?>\
            <b/><leaf2/><c  y=\"1\" /><leaf3>x<![CDATA[<&>]]><!-- - -->y</leaf3></a>\n<é:a.-1></é:a.-1>";
        let expected = [
            "<a",
            "<leaf1",
            "one & two",
            ">",
            "<b",
            ">",
            "<leaf2",
            "",
            ">",
            "<c",
            ">",
            "<leaf3",
            "x<&>y",
            ">",
            ">",
            "<é:a.-1",
            ">",
        ];
        assert_eq!(walk(text).unwrap(), expected);
    }

    #[test]
    fn what_is_passed_over_must_nest() {
        let after_skip = |text| {
            let mut scanner = Scanner::new(text);
            scanner.child()?;
            scanner.skip()?;
            Ok::<_, Box<Fault>>(scanner.child()?.map(|tag| tag.name.to_owned()))
        };
        assert_eq!(after_skip("<a><b><a/></b>&x;</a><z/>").unwrap().unwrap(), "z");
        assert_eq!(after_skip("<a/><z/>").unwrap().unwrap(), "z");
        assert_eq!(after_skip("<a><b></a></b>").unwrap_err().expected, "</b>");
        let cut = after_skip("<a><b></b>").unwrap_err();
        assert_eq!((cut.at, cut.expected.as_str()), (10, "</a>"));
    }

    #[test]
    fn attributes_are_found_whatever_their_quotes() {
        let mut scanner = Scanner::new("<t  one = \"1\"\n two='2\"' three=\"\"/><u bad></u>");
        let tag = scanner.child().unwrap().unwrap();
        let value = |name| scanner.attribute(&tag, name).unwrap();
        assert_eq!(
            [value("one"), value("two"), value("three"), value("four")],
            [Some("1"), Some("2\""), Some(""), None]
        );
        assert!(scanner.child().unwrap().is_none());
        let tag = scanner.child().unwrap().unwrap();
        assert_eq!(scanner.attribute(&tag, "x").unwrap_err().expected, "attributes as name=\"value\"");
    }

    #[test]
    fn what_is_no_xml_is_refused_with_its_place() {
        let deep = "<d>".repeat(DEPTH + 1);
        let cases = [
            ("<a></b>", 3, "</a>"),
            ("</a>", 0, "no closing tag"),
            ("<a>x < y</a>", 5, "&lt;"),
            ("<leaf>x < y</leaf>", 8, "only text"),
            ("<leaf>x<b/></leaf>", 7, "no element inside <leaf>"),
            ("<leaf>AT&T</leaf>", 8, "&amp;"),
            ("<leaf>&lol9;</leaf>", 6, "other entities are not expanded"),
            ("<leaf>&#0;</leaf>", 6, "a character by number"),
            ("<a><!-- x</a>", 3, "a comment that ends with -->"),
            ("<a><!DOCTYPE x></a>", 3, "an element, a comment or text"),
            ("<1></1>", 0, "a tag"),
            ("<a x=\"1></a>", 0, "a tag that ends with >"),
            ("<a <b></b></a>", 0, "a tag that ends with >"),
            ("<leaf", 5, "a tag that ends with >"),
            ("<leaf>x", 7, "</leaf>"),
            (&deep, 3 * DEPTH, "at most 64 elements inside one another"),
        ];
        for (text, at, expected) in cases {
            let fault = walk(text).unwrap_err();
            assert!(fault.at == at && fault.expected.contains(expected), "{text}: {fault:?}");
        }
    }

    /// The same as [`walk`] without texts, by quick-xml; none if it finds fault.
    fn reference(text: &str) -> Option<Vec<String>> {
        let mut reader = quick_xml::Reader::from_str(text);
        let (mut out, mut depth) = (Vec::new(), 0);
        loop {
            match reader.read_event().ok()? {
                Event::Start(tag) => {
                    out.push(format!("<{}", String::from_utf8_lossy(tag.name().as_ref().as_bytes())));
                    depth += 1;
                }
                Event::Empty(tag) => {
                    out.push(format!("<{}", String::from_utf8_lossy(tag.name().as_ref().as_bytes())));
                    out.push(">".to_owned());
                }
                Event::End(_) => {
                    depth -= 1;
                    out.push(">".to_owned());
                }
                Event::Eof => return (depth == 0).then_some(out),
                _ => {}
            }
        }
    }

    #[test]
    fn mutated_texts_neither_panic_nor_differ_from_another_parser() {
        let seed = "<a x=\"1\"><b>t &amp; u</b><!-- c --><c/><b y='>'><![CDATA[<]]></b><?p q?></a>\n";
        let pieces =
            ["<", ">", "/", "\"", "'", "&", ";", "<!--", "-->", "]]>", "<b>", "</b>", "</a>", "é", " ", "?>"];
        let mut state = 1u64;
        let mut draw = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % below
        };
        let mut both = 0;
        for _ in 0..20_000 {
            let mut text = seed.to_owned();
            for _ in 0..=draw(3) {
                let from = draw(text.len());
                if text.is_char_boundary(from) {
                    let to = (from..=text.len())
                        .skip(draw(3))
                        .find(|&to| text.is_char_boundary(to))
                        .unwrap_or(text.len());
                    text.replace_range(from..to, pieces[draw(pieces.len())]);
                }
            }
            // Where both read on to the end they see the same elements; each is stricter than the other somewhere.
            if let (Ok(ours), Some(theirs)) = (walk(&text), reference(&text)) {
                assert_eq!(ours, theirs, "{text}");
                both += 1;
            }
        }
        assert!(both > 1000, "{both}");
    }
}
