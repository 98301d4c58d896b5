//! One piece of a MeSH file as a flat list of what its records state.

use memchr::memchr_iter;

use super::relation::Relation;
use super::ui::Ui;
use crate::source::xml::scan::excerpt;
use crate::source::xml::{Fault, Scanner, Tag};

/// The two files of records, and what their elements are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Descriptor,
    Supplement,
}

impl Kind {
    pub(super) fn root(self) -> &'static str {
        match self {
            Self::Descriptor => "DescriptorRecordSet",
            Self::Supplement => "SupplementalRecordSet",
        }
    }

    pub(super) fn record(self) -> &'static str {
        match self {
            Self::Descriptor => "DescriptorRecord",
            Self::Supplement => "SupplementalRecord",
        }
    }

    /// What the publisher calls the file.
    pub(super) fn file(self) -> &'static str {
        match self {
            Self::Descriptor => "descYYYY.xml",
            Self::Supplement => "suppYYYY.xml",
        }
    }

    fn ui(self) -> (&'static str, u8) {
        match self {
            Self::Descriptor => ("DescriptorUI", b'D'),
            Self::Supplement => ("SupplementalRecordUI", b'C'),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Descriptor => "DescriptorName",
            Self::Supplement => "SupplementalRecordName",
        }
    }
}

/// One thing that a record says; texts are kept side by side in [`Tape::text`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Item {
    Link(Relation, Ui),
    Tree(Span),
    Type(Span, Span),
    Term(Span),
    Definition(Span),
}

/// A stretch of [`Tape::text`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    start: u32,
    end: u32,
}

/// The end of a record: what it is about, and where its items end.
#[derive(Debug, Clone, Copy)]
struct End {
    ui: Ui,
    heading: Span,
    line: u64,
    items: usize,
}

/// What one record says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record<'t> {
    pub(super) ui: Ui,
    pub(super) heading: &'t str,
    /// Line of the record's opening tag in the piece, from 0.
    pub(super) line: u64,
    pub(super) items: &'t [Item],
    text: &'t str,
}

impl<'t> Record<'t> {
    pub(super) fn text(&self, span: Span) -> &'t str {
        self.text.get(span.start as usize..span.end as usize).unwrap_or_default()
    }
}

/// What the records of one piece say, in their order.
#[derive(Debug, Default)]
pub(super) struct Tape {
    text: String,
    items: Vec<Item>,
    ends: Vec<End>,
    /// Permuted terms, which are left out.
    pub(super) permuted: u64,
    /// Headings mapped to that the publisher marks with `*`.
    pub(super) major: u64,
    /// Line feeds in the piece.
    pub(super) lines: u64,
}

impl Tape {
    pub(super) fn records(&self) -> impl Iterator<Item = Record<'_>> {
        let (mut start, text) = (0, self.text.as_str());
        self.ends.iter().map(move |end| {
            let items = self.items.get(start..end.items).unwrap_or_default();
            start = end.items;
            let mut record = Record { ui: end.ui, heading: "", line: end.line, items, text };
            record.heading = record.text(end.heading);
            record
        })
    }
}

/// Parses a piece of whole records, and nothing but records.
pub(super) fn parse(text: &str, kind: Kind) -> Result<Tape, Box<Fault>> {
    let mut parser =
        Parser { scanner: Scanner::new(text), kind, tape: Tape::default(), scratch: String::new() };
    let lines = |from: usize, to: usize| {
        memchr_iter(b'\n', text.as_bytes().get(from..to).unwrap_or_default()).count() as u64
    };
    let mut counted = 0;
    while let Some(tag) = parser.scanner.child()? {
        if tag.name != kind.record() {
            return Err(parser.scanner.fault(tag.at, format!("<{}>", kind.record())));
        }
        parser.tape.lines += lines(counted, tag.at);
        counted = tag.at;
        parser.record(&tag)?;
    }
    parser.tape.lines += lines(counted, text.len());
    Ok(parser.tape)
}

struct Parser<'a> {
    scanner: Scanner<'a>,
    kind: Kind,
    tape: Tape,
    scratch: String,
}

type Parsed<T> = Result<T, Box<Fault>>;

impl<'a> Parser<'a> {
    fn record(&mut self, record: &Tag<'a>) -> Parsed<()> {
        let ((ui_name, letter), heading_name) = (self.kind.ui(), self.kind.name());
        let (mut ui, mut heading) = (None, None);
        let line = self.tape.lines;
        while let Some(tag) = self.scanner.child()? {
            match tag.name {
                name if name == ui_name => ui = Some(self.ui(&tag, letter)?),
                name if name == heading_name => heading = self.string()?,
                "TreeNumberList" => self.tree_numbers()?,
                "PharmacologicalActionList" => self.links(Relation::Action)?,
                "SeeRelatedList" => self.links(Relation::Related)?,
                "HeadingMappedToList" => self.links(Relation::Mapped)?,
                "ConceptList" => self.concepts()?,
                _ => self.scanner.skip()?,
            }
        }
        let missing = |name: &str| self.scanner.fault(record.at, format!("a record with <{name}>"));
        let ui = ui.ok_or_else(|| missing(ui_name))?;
        let heading = heading.ok_or_else(|| missing(heading_name))?;
        let items = self.tape.items.len();
        self.tape.ends.push(End { ui, heading, line, items });
        Ok(())
    }

    /// The identifier that is the innermost element's text.
    fn ui(&mut self, tag: &Tag<'a>, letter: u8) -> Parsed<Ui> {
        self.scratch.clear();
        self.scanner.text(&mut self.scratch)?;
        Ui::parse(&self.scratch, letter).ok_or_else(|| self.no_ui(tag, letter))
    }

    fn no_ui(&self, tag: &Tag<'a>, letter: u8) -> Box<Fault> {
        let letter = char::from(letter);
        Fault::new(
            tag.at,
            excerpt(&self.scratch),
            format!("<{}> of {letter} and up to nine digits", tag.name),
        )
    }

    /// The text of the innermost element; none if it is empty.
    fn span(&mut self) -> Parsed<Option<Span>> {
        let start = position(&self.tape.text);
        self.scanner.text(&mut self.tape.text)?;
        let end = position(&self.tape.text);
        Ok((end > start).then_some(Span { start, end }))
    }

    /// The text of the `String` inside the innermost element.
    fn string(&mut self) -> Parsed<Option<Span>> {
        let mut string = None;
        while let Some(tag) = self.scanner.child()? {
            match tag.name {
                "String" => string = self.span()?,
                _ => self.scanner.skip()?,
            }
        }
        Ok(string)
    }

    fn tree_numbers(&mut self) -> Parsed<()> {
        while let Some(tag) = self.scanner.child()? {
            if tag.name == "TreeNumber" {
                let number = self.span()?.ok_or_else(|| self.scanner.fault(tag.at, "a tree number"))?;
                self.tape.items.push(Item::Tree(number));
            } else {
                self.scanner.skip()?;
            }
        }
        Ok(())
    }

    /// A list of entries that each refer to a descriptor, perhaps with a qualifier; one of the two bears a `*` if it is major.
    fn links(&mut self, link: Relation) -> Parsed<()> {
        while let Some(entry) = self.scanner.child()? {
            let (mut target, mut major) = (None, false);
            while let Some(referred) = self.scanner.child()? {
                if !matches!(referred.name, "DescriptorReferredTo" | "QualifierReferredTo") {
                    self.scanner.skip()?;
                    continue;
                }
                while let Some(tag) = self.scanner.child()? {
                    if !matches!(tag.name, "DescriptorUI" | "QualifierUI") {
                        self.scanner.skip()?;
                        continue;
                    }
                    self.scratch.clear();
                    self.scanner.text(&mut self.scratch)?;
                    let bare = self.scratch.strip_prefix('*');
                    major |= bare.is_some();
                    if tag.name == "DescriptorUI" {
                        let ui = Ui::parse(bare.unwrap_or(&self.scratch), b'D');
                        target = Some(ui.ok_or_else(|| self.no_ui(&tag, b'D'))?);
                    }
                }
            }
            let none = || self.scanner.fault(entry.at, format!("<{}> with a <DescriptorUI>", entry.name));
            self.tape.items.push(Item::Link(link, target.ok_or_else(none)?));
            self.tape.major += u64::from(major && link == Relation::Mapped);
        }
        Ok(())
    }

    /// The terms of all concepts; types and definition of the preferred one, which is what the record is about.
    fn concepts(&mut self) -> Parsed<()> {
        while let Some(concept) = self.scanner.child()? {
            let preferred = self.scanner.attribute(&concept, "PreferredConceptYN")? == Some("Y");
            while let Some(tag) = self.scanner.child()? {
                match tag.name {
                    "TermList" => self.terms()?,
                    "ScopeNote" if preferred => {
                        let definition = self.span()?.map(Item::Definition);
                        self.tape.items.extend(definition);
                    }
                    "SemanticTypeList" if preferred => self.types()?,
                    _ => self.scanner.skip()?,
                }
            }
        }
        Ok(())
    }

    fn terms(&mut self) -> Parsed<()> {
        while let Some(term) = self.scanner.child()? {
            if self.scanner.attribute(&term, "IsPermutedTermYN")? == Some("Y") {
                self.tape.permuted += 1;
                self.scanner.skip()?;
                continue;
            }
            let text = self.string()?;
            let text = text.ok_or_else(|| self.scanner.fault(term.at, "a <Term> with a <String>"))?;
            self.tape.items.push(Item::Term(text));
        }
        Ok(())
    }

    fn types(&mut self) -> Parsed<()> {
        while let Some(entry) = self.scanner.child()? {
            let (mut code, mut name) = (None, None);
            while let Some(tag) = self.scanner.child()? {
                match tag.name {
                    "SemanticTypeUI" => code = self.span()?,
                    "SemanticTypeName" => name = self.span()?,
                    _ => self.scanner.skip()?,
                }
            }
            let expected = "a <SemanticType> with <SemanticTypeUI> and <SemanticTypeName>";
            let both = code.zip(name).ok_or_else(|| self.scanner.fault(entry.at, expected))?;
            self.tape.items.push(Item::Type(both.0, both.1));
        }
        Ok(())
    }
}

/// The end of a tape's text; a piece is shorter than 4 GiB, and what it says no longer than the piece.
fn position(text: &str) -> u32 {
    u32::try_from(text.len()).unwrap_or(u32::MAX)
}
