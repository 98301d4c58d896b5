//! What is not taken of an ontology, as its reader counts it.

use base::funnel::Tally;

use super::{Ontology, identity};

/// What was left out, and why.
fn carry(to: &mut Tally, from: &Tally) {
    let some = from.dropped.iter().filter(|(_, rows)| **rows > 0);
    some.for_each(|(reason, rows)| to.drop_all(reason, *rows));
}

impl Ontology<'_, '_> {
    /// Counts what is no term.
    pub(in crate::source) fn leave_out(&mut self, reason: &'static str) {
        self.stanzas.drop(reason);
    }

    /// Says which file terms come from, where rows are another's.
    pub(in crate::source) fn listed_in(&mut self, read: &Tally) {
        for part in [&mut self.stanzas, &mut self.texts] {
            let what = part.file.rsplit_once(": ").map_or("", |(_, what)| what);
            part.file = format!("{}: {what}", read.file);
        }
        (self.stanzas.lines, self.stanzas.bytes) = (read.lines, read.bytes);
    }

    /// Counts what the reader of a file has left out, as terms.
    pub(in crate::source) fn leave_out_all(&mut self, of: &Tally) {
        carry(&mut self.stanzas, of);
    }

    /// As rows.
    pub(in crate::source) fn leave_out_rows(&mut self, of: &Tally) {
        carry(&mut self.rows, of);
    }

    pub(in crate::source) fn keep_stanza(&mut self) {
        self.stanzas.keep();
    }

    /// Counts a text that is not taken.
    pub(in crate::source) fn leave_out_text(&mut self, reason: &'static str) {
        self.texts.drop(reason);
    }

    /// Counts a reference that says that two things are related, not the same.
    pub(in crate::source) fn leave_out_xrefs(&mut self, xrefs: u64) {
        self.identities.tally.drop_all(identity::RELATED, xrefs);
    }

    /// Counts a row that is left out before its ends are looked at.
    pub(in crate::source) fn leave_out_row(&mut self, reason: &'static str) {
        self.rows.drop(reason);
    }

    /// The same, of a relation that is known to be there even if no row of it is kept.
    pub(in crate::source) fn leave_out_row_of(&mut self, relation: &str, reason: &'static str) {
        self.relations.entry(relation.to_owned()).or_default();
        self.rows.drop(reason);
    }
}
