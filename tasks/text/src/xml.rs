//! The elements of an XML file one after the other, in the memory of one record.
//!
//! Entities are the five of XML and numbers; what a document type declares is never expanded.

use std::io::BufRead;
use std::path::Path;

use base::funnel::Tally;
use base::line::Place;
use base::read::ReadError;
use quick_xml::encoding::EncodingError;
use quick_xml::escape::resolve_xml_entity;
use quick_xml::events::{BytesDecl, BytesRef, BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

use super::metered::{At, Metered};

/// Elements may lie in each other so deep.
const DEEPEST: usize = 256;

/// What comes next in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// An element begins: [`Elements::name`] is its name, [`Elements::depth`] tells how deep it lies, 1 for the outermost.
    Open,
    /// An element ends; the depth is that of the element around it.
    Close,
    /// The file ends.
    End,
}

/// What was met last.
enum Met {
    Open,
    Close,
    Text,
    Nothing,
    End,
}

/// The names of what a file holds.
#[derive(Debug, Clone, Copy)]
pub struct Names {
    /// The outermost element, as the layouts of the format call it; one at least.
    pub roots: &'static [&'static str],
    /// The one of which a document is made.
    pub records: &'static [&'static str],
}

/// Reads element after element.
#[derive(Debug)]
pub struct Elements<'f, R> {
    xml: Reader<Metered<'f, R>>,
    names: Names,
    buffer: Vec<u8>,
    /// The last opening tag, without its brackets, and the length of the name in front.
    tag: (String, usize),
    /// The text met last.
    text: String,
    /// Where the last tag or text begins.
    at: At,
    depth: usize,
    /// The depth of the record that is read, 0 in none.
    record: usize,
    /// The outermost element, once it has begun.
    root: String,
}

impl<'f, R: BufRead> Elements<'f, R> {
    /// Elements of `reader`; `file` names it in messages.
    pub fn new(reader: R, file: &'f Path, names: Names) -> Self {
        let metered = Metered::new(reader, file);
        let at = metered.here();
        let mut xml = Reader::from_reader(metered);
        xml.config_mut().expand_empty_elements = true;
        let (buffer, tag, text) = (Vec::new(), (String::new(), 0), String::new());
        Self { xml, names, buffer, tag, text, at, depth: 0, record: 0, root: String::new() }
    }

    /// The next beginning or end of an element; text between is skipped.
    pub fn step(&mut self) -> Result<Step, ReadError> {
        self.step_over(|_| ())
    }

    /// As [`Elements::step`]; text between is appended.
    pub fn step_with(&mut self, to: &mut String) -> Result<Step, ReadError> {
        self.step_over(|text| to.push_str(text))
    }

    fn step_over(&mut self, mut between: impl FnMut(&str)) -> Result<Step, ReadError> {
        loop {
            match self.meet()? {
                Met::Open => return Ok(Step::Open),
                Met::Close => return Ok(Step::Close),
                Met::End => return Ok(Step::End),
                Met::Text => between(&self.text),
                Met::Nothing => {}
            }
        }
    }

    /// Name of the element that began last.
    pub fn name(&self) -> &str {
        &self.tag.0[..self.tag.1]
    }

    /// How many elements are open.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// An attribute of the element that began last; not one of nothing but blanks.
    pub fn attribute(&self, name: &str) -> Result<Option<String>, ReadError> {
        let tag = BytesStart::from_content(self.tag.0.as_str(), self.tag.1);
        let found = tag.try_get_attribute(name).map_err(|e| self.broken(&e))?;
        let Some(found) = found else { return Ok(None) };
        let value = found.normalized_value(XmlVersion::Implicit1_0).map_err(|e| self.broken(&e))?;
        Ok(Some(value.trim()).filter(|value| !value.is_empty()).map(str::to_owned))
    }

    /// An attribute of the element that began last as the file has it, for those that publishers did not escape; not one of nothing but blanks.
    pub fn written(&self, name: &str) -> Result<Option<String>, ReadError> {
        let tag = BytesStart::from_content(self.tag.0.as_str(), self.tag.1);
        let found = tag.try_get_attribute(name).map_err(|e| self.broken(&e))?;
        let value = found.map(|found| found.value.trim().to_owned());
        Ok(value.filter(|value| !value.is_empty()))
    }

    /// Appends all text of the element that began last, that of the elements in it included, and skips its end.
    pub fn text(&mut self, to: &mut String) -> Result<(), ReadError> {
        let around = self.depth - 1;
        while self.depth > around {
            if matches!(self.meet()?, Met::Text) {
                to.push_str(&self.text);
            }
        }
        Ok(())
    }

    /// Skips the element that began last.
    pub fn skip(&mut self) -> Result<(), ReadError> {
        let around = self.depth - 1;
        while self.depth > around {
            self.meet()?;
        }
        Ok(())
    }

    /// The error that the record of the element met last is not as it should be.
    pub fn broken(&self, problem: &dyn std::fmt::Display) -> ReadError {
        broken(self.place(), problem)
    }

    /// Where the element that was met last begins.
    pub fn place(&self) -> Place {
        self.at.of(self.xml.get_ref().file())
    }

    /// The error that something is missing.
    pub fn missing(&self, what: &'static str) -> ReadError {
        let expected = "it in every record, for documents are called by it";
        ReadError::new(self.place(), format!("{what} is missing"), expected, "fix the record")
    }

    /// The line up to which the file is read, from 1.
    pub fn line(&self) -> u64 {
        self.xml.get_ref().here().line
    }

    /// `tally` with what was read so far.
    pub fn tally(&self, tally: &Tally) -> Tally {
        self.xml.get_ref().tally(tally)
    }

    fn meet(&mut self) -> Result<Met, ReadError> {
        if self.record == 0 {
            self.xml.get_mut().mark();
        }
        self.at = self.xml.get_ref().here();
        self.buffer.clear();
        self.text.clear();
        let (at, file) = (self.at, self.xml.get_ref().file());
        match self.xml.read_event_into(&mut self.buffer) {
            // Empty elements come as a beginning and an end, as configured.
            Ok(Event::Start(tag) | Event::Empty(tag)) => {
                self.tag.0.clear();
                self.tag.0.push_str(&tag);
                self.tag.1 = tag.name().as_ref().len();
                self.open()?;
                return Ok(Met::Open);
            }
            Ok(Event::End(_)) => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth < self.record {
                    self.record = 0;
                }
                return Ok(Met::Close);
            }
            Ok(Event::Text(text)) => self.text.push_str(&text.xml10_content()),
            Ok(Event::CData(text)) => self.text.push_str(&text.xml10_content()),
            Ok(Event::GeneralRef(entity)) => match character(&entity) {
                Ok(text) => self.text.push_str(&text),
                Err(problem) => return Err(broken(at.of(file), &problem)),
            },
            Ok(Event::Decl(declaration)) => match other_encoding(&declaration) {
                Some(problem) => return Err(broken(at.of(file), &problem)),
                None => return Ok(Met::Nothing),
            },
            Ok(Event::Comment(_) | Event::PI(_) | Event::DocType(_)) => return Ok(Met::Nothing),
            Ok(Event::Eof) => return self.end(),
            Err(e) => return Err(self.fault(&e)),
        }
        if self.depth == 0 && !self.text.trim().is_empty() {
            return Err(self.broken(&"there is text outside of all elements"));
        }
        Ok(Met::Text)
    }

    fn open(&mut self) -> Result<(), ReadError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(self.broken(&format_args!("more than {DEEPEST} elements lie in each other")));
        }
        if self.depth == 1 {
            if !self.root.is_empty() {
                return Err(self.broken(&format_args!("a second outermost element <{}> begins", self.name())));
            }
            if !self.names.roots.contains(&self.name()) {
                let (place, found) = (self.at.of(self.xml.get_ref().file()), self.name().to_owned());
                let roots: Vec<String> = self.names.roots.iter().map(|root| format!("<{root}>")).collect();
                let remedy = "say in the config which format the file has";
                return Err(ReadError::new(place, format!("found <{found}>"), roots.join(" or "), remedy));
            }
            self.root = self.name().to_owned();
        }
        if self.record == 0 && self.names.records.contains(&self.name()) {
            self.record = self.depth;
        }
        Ok(())
    }

    fn end(&self) -> Result<Met, ReadError> {
        if self.depth == 0 && !self.root.is_empty() {
            return Ok(Met::End);
        }
        let metered = self.xml.get_ref();
        let root = if self.root.is_empty() { self.names.roots.join(" or ") } else { self.root.clone() };
        let (place, expected) = (metered.here().of(metered.file()), format!("</{root}> first"));
        Err(ReadError::new(place, "the file ends here", expected, "fetch the file again"))
    }

    /// What an error of the parser means.
    fn fault(&self, error: &quick_xml::Error) -> ReadError {
        let metered = self.xml.get_ref();
        match error {
            quick_xml::Error::Io(source) => metered.error(source),
            quick_xml::Error::Encoding(EncodingError::Utf8(utf8)) => {
                let valid = self.buffer.get(..utf8.valid_up_to()).unwrap_or_default();
                let place = self.at.after(valid).of(metered.file());
                broken(place, &"this byte is no UTF-8")
            }
            other => self.broken(other),
        }
    }
}

fn broken(place: Place, problem: &dyn std::fmt::Display) -> ReadError {
    let expected = "well-formed XML in UTF-8 as published";
    ReadError::new(place, problem.to_string(), expected, "fetch the file again, or fix it there")
}

/// What is wrong with the encoding that a file says it has, if anything.
fn other_encoding(declaration: &BytesDecl<'_>) -> Option<String> {
    let encoding = declaration.encoding()?.ok()?;
    let known = ["utf-8", "utf8", "us-ascii", "ascii"].iter().any(|name| encoding.eq_ignore_ascii_case(name));
    (!known).then(|| format!("the file says that its encoding is {encoding}"))
}

/// What `&...;` stands for.
fn character(entity: &BytesRef<'_>) -> Result<String, String> {
    match entity.resolve_char_ref() {
        Ok(Some(character)) => Ok(character.to_string()),
        Ok(None) => match resolve_xml_entity(entity) {
            Some(text) => Ok(text.to_owned()),
            None => Err(format!("the entity &{}; is not one of XML", &**entity)),
        },
        Err(e) => Err(format!("&{}; is no character: {e}", &**entity)),
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    const NAMES: Names = Names { roots: &["all"], records: &["one"] };

    /// The texts of all elements `one`, with an attribute in front.
    fn texts(reader: impl BufRead) -> Result<Vec<String>, ReadError> {
        let (mut elements, mut all) = (Elements::new(reader, Path::new("some.xml"), NAMES), Vec::new());
        loop {
            match elements.step()? {
                Step::Open if elements.depth() == 1 => {}
                Step::Open if elements.name() == "one" => {
                    let mut text = elements.attribute("n")?.unwrap_or_default() + "|";
                    elements.text(&mut text)?;
                    all.push(text);
                }
                Step::Open => elements.skip()?,
                Step::Close => {}
                Step::End => return Ok(all),
            }
        }
    }

    fn refused(text: &[u8]) -> String {
        texts(text).unwrap_err().to_string()
    }

    #[test]
    fn text_is_what_xml_says_it_is() {
        let file = "\u{feff}<?xml version='1.0' encoding='utf-8'?>\r\n<!DOCTYPE all SYSTEM 'all.dtd'>\n<!-- <one> -->\n<all x='1'>\n\
            <other><one>not this</one></other>\r\n<one n='a &amp;&#x20;b '>5 &lt; 6 &#233;<i>m<sup>2</sup></i><!-- no -->\r\nline<![CDATA[<&]]></one>\
            <one/><one n=' '>&quot;&apos;</one ></all>\n";
        let expected = ["a & b|5 < 6 ém2\nline<&", "|", "|\"'"];
        assert_eq!(texts(file.as_bytes()).unwrap(), expected);
        for size in 3..40 {
            assert_eq!(
                texts(io::BufReader::with_capacity(size, file.as_bytes())).unwrap(),
                expected,
                "{size}"
            );
        }
    }

    #[test]
    fn what_is_no_xml_is_refused_with_its_place() {
        let place = |line, byte| format!("some.xml: line {line}, column {byte} (byte of the line): ");
        let cases: [(&[u8], String, &str); 13] = [
            (b"<all>\n <one>a</two></all>", place(2, 8), "expected `</one>`, but `</two>` was found"),
            (b"<all>\n<one>a &no; b</one></all>", place(2, 8), "the entity &no; is not one of XML"),
            (b"<all>\n<one>&#0;</one></all>", place(2, 6), "&#0; is no character"),
            (
                b"<all>\n<one>a\nb\xffc</one></all>",
                place(3, 2),
                "this byte is no UTF-8, expected well-formed XML",
            ),
            (b"<all><one>a</one>", place(1, 18), "the file ends here, expected </all> first"),
            (b"", place(1, 1), "the file ends here"),
            (b"<all>\n<one n='a</one></all>", place(2, 1), "attribute value not closed"),
            (b"just text\n", place(1, 1), "there is text outside of all elements"),
            (b"<all/>\nmore", place(1, 7), "there is text outside of all elements"),
            (b"<all/><all/>", place(1, 7), "a second outermost element <all> begins"),
            (b"<set/>", place(1, 1), "found <set>, expected <all>; say in the config which format"),
            (b"<all></one></all>", place(1, 6), "but `</one>` was found"),
            (b"<?xml version='1.0' encoding='latin1'?><all/>", place(1, 1), "its encoding is latin1"),
        ];
        for (text, place, expected) in cases {
            let message = refused(text);
            let text = String::from_utf8_lossy(text);
            assert!(message.starts_with(&place) && message.contains(expected), "{text}: {message}");
        }
        let deep = "<all>".to_owned() + &"<x>".repeat(DEEPEST);
        assert!(refused(deep.as_bytes()).contains("more than 256 elements lie in each other"));
    }

    #[test]
    fn only_one_record_must_fit_in_memory() {
        let between = "<other>12345678</other>".repeat(1 << 21);
        let file = format!("<all>{between}<one>a</one>{between}</all>");
        assert!(file.len() as u64 > 2 * super::super::metered::LONGEST);
        assert_eq!(texts(io::BufReader::new(file.as_bytes())).unwrap(), ["|a"]);
        let inside = format!("<all>\n<one>{between}</one></all>");
        let message = texts(io::BufReader::new(inside.as_bytes())).unwrap_err().to_string();
        assert!(message.starts_with("some.xml: line 2, column 1 (byte"), "{message}");
        assert!(message.contains("the document that begins here has more than"), "{message}");
    }
}
