//! Files that give HSDN's names their MeSH ids (github.com/LABrueggs/HSDN, `*-Occurence-Output.tsv`).
//!
//! Four tab-separated columns: row number (its header is empty), name, articles in PubMed, id. A row without id is published as such
//! and counted; a name with two ids is an error, since nothing in the file says which is meant. Two names may share an id: MeSH made
//! them one descriptor. Its text is then the name with more articles (of equal ones the smaller).

use std::collections::HashMap;
use std::io::BufRead;

use base::funnel::{BLANK_LINES, Tally};
use base::line::{Line, Lines, Place};
use base::read::ReadError;

use super::super::files::Input;
use super::super::names::{Id, Ids as Known, NameTable};
use super::{columns, header, wrong};
use crate::canon::fold::{fold, tidy};

const SYMPTOMS: [&str; 4] = ["", "MeSH Symptom Term", "PubMed occurrence", "MeSH Symptom ID"];
const DISEASES: [&str; 4] = ["", "MeSH Disease Term", "PubMed occurrence", "MeSH Disease ID"];

const NO_ID: &str = "no_id";
const REPEATED: &str = "repeated";
const NOT_IN_TABLE: &str = "not_in_table";

/// Which of the two files.
#[derive(Debug, Clone, Copy)]
pub(super) enum Role {
    Symptoms,
    Diseases,
}

impl Role {
    fn header(self) -> &'static [&'static str; 4] {
        match self {
            Role::Symptoms => &SYMPTOMS,
            Role::Diseases => &DISEASES,
        }
    }
}

/// The ids of both files.
#[derive(Debug, Default)]
pub(super) struct Ids {
    name_of: HashMap<String, Named>,
    text_of: HashMap<String, (u64, String)>,
}

#[derive(Debug)]
struct Named {
    id: String,
    place: Place,
}

/// A file that was read, until it is known which names the table has.
#[derive(Debug)]
pub(super) struct Pending {
    tally: Tally,
    names: Vec<String>,
}

impl Ids {
    /// Reads one file.
    pub(super) fn read<R: BufRead>(&mut self, file: Input<R>, role: Role) -> Result<Pending, ReadError> {
        let label = &file.label;
        let mut lines = Lines::new(file.reader, label);
        header(&mut lines, label, role.header())?;
        let mut pending = Pending {
            tally: Tally::new(label, &[BLANK_LINES, NO_ID, REPEATED, NOT_IN_TABLE]),
            names: Vec::new(),
        };
        while let Some(line) = lines.next_filled()? {
            self.row(&line, role, &mut pending)?;
        }
        pending.tally.account(&lines);
        Ok(pending)
    }

    fn row(&mut self, line: &Line<'_>, role: Role, pending: &mut Pending) -> Result<(), ReadError> {
        let names = role.header();
        let [number, name, count, id] = columns(line)?;
        if number.parse::<u64>().is_err() {
            return Err(wrong(line, (1, "row number"), number, "a whole number"));
        }
        if name.trim().is_empty() {
            return Err(wrong(line, (2, names[1]), name, "a name"));
        }
        let count: u64 = count.parse().map_err(|_| wrong(line, (3, names[2]), count, "a whole number"))?;
        if id.is_empty() {
            pending.tally.drop(NO_ID);
            return Ok(());
        }
        if !is_descriptor(id) {
            return Err(wrong(
                line,
                (4, names[3]),
                id,
                "a MeSH descriptor (D and six to nine digits), or nothing",
            ));
        }
        let folded = fold(name);
        let known = self.name_of.get(&folded);
        if let Some(before) = known.filter(|before| before.id != id) {
            let place = line.place(Some((4, names[3])));
            let found = format!("{name:?} has the id {id}, but {} in {}", before.id, before.place);
            return Err(ReadError::new(place, found, "one id for a name", "remove the wrong line"));
        }
        if known.is_some_and(|before| before.place.file == line.place(None).file) {
            pending.tally.drop(REPEATED);
            return Ok(());
        }
        self.text(id, count, name);
        self.name_of.insert(folded.clone(), Named { id: id.to_owned(), place: line.place(None) });
        pending.names.push(folded);
        Ok(())
    }

    /// Remembers the better text of an id.
    fn text(&mut self, id: &str, count: u64, name: &str) {
        let name = tidy(name);
        let text = self.text_of.entry(id.to_owned()).or_insert_with(|| (count, name.clone()));
        if (count, &text.1) > (text.0, &name) {
            *text = (count, name);
        }
    }

    /// The ids by folded name.
    pub(super) fn known(&self) -> Known {
        let text = |id: &str| self.text_of.get(id).map(|(_, text)| text.clone()).unwrap_or_default();
        let id = |id: &str| Id { key: format!("mesh:{id}"), text: text(id) };
        self.name_of.iter().map(|(folded, named)| (folded.clone(), id(&named.id))).collect()
    }
}

impl Pending {
    /// Counts the names by whether the table has them.
    pub(super) fn settle(mut self, table: &NameTable<'_>) -> Tally {
        for folded in &self.names {
            if table.has(folded) { self.tally.keep() } else { self.tally.drop(NOT_IN_TABLE) }
        }
        self.tally
    }
}

fn is_descriptor(id: &str) -> bool {
    id.strip_prefix('D')
        .is_some_and(|digits| (6..=9).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit()))
}
