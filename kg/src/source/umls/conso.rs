//! MRCONSO, first reading: the preferred name of each concept, and the concepts that vocabularies with keys of their own have.

use base::funnel::Tally;
use base::read::ReadError;

use super::codes::{Code, Codes, SpokenOf};
use super::count::{Counts, Reason};
use super::cui::Cui;
use super::file::File;
use super::label::Labels;
use super::name::{Candidate, Names, Rank};
use super::options::{Options, Suppressed};
use super::rank::Ranks;
use super::vocabulary::{Verdict, Vocabularies};
use crate::canon::fold::fold;
use crate::source::rrf::{Record, Rows};
use crate::table::Builder;
use crate::table::builder::Wanted;

const CUI: usize = 0;
const LAT: usize = 1;
const TS: usize = 2;
const STT: usize = 4;
const ISPREF: usize = 6;
const SAB: usize = 11;
const TTY: usize = 12;
const CODE: usize = 13;
const STR: usize = 14;
const SUPPRESS: usize = 16;

/// Columns of MRCONSO.
pub(super) const COLUMNS: usize = 18;

/// Reasons to leave out a name.
const REASONS: [Reason; 5] = [
    Reason::OtherLanguage,
    Reason::Suppressed,
    Reason::VocabularyNotAskedFor,
    Reason::NoLevel,
    Reason::AboveMaxSrl,
];

/// What decides which names are taken and which is preferred.
#[derive(Debug, Clone, Copy)]
pub(super) struct Choice<'a> {
    pub(super) options: &'a Options,
    pub(super) vocabularies: &'a Vocabularies<'a>,
    pub(super) ranks: &'a Ranks,
}

/// A name that is taken.
#[derive(Debug, Clone, Copy)]
pub(super) struct Atom<'a> {
    pub(super) cui: Cui,
    pub(super) text: &'a str,
    pub(super) language: &'a str,
    /// Number of the vocabulary in the labels of the piece.
    pub(super) vocabulary: u32,
    pub(super) level: Option<u8>,
    /// Place of the language among those asked for.
    place: usize,
}

/// Names are longer in no file that is published.
const LANGUAGES: usize = u16::MAX as usize;

impl Choice<'_> {
    /// The name in a row, or why it is left out.
    pub(super) fn atom<'r>(
        &self,
        row: &Record<'r, COLUMNS>,
        labels: &mut Labels<Verdict>,
    ) -> Result<Result<Atom<'r>, Reason>, ReadError> {
        let cui = Cui::parse(row, CUI, "CUI")?;
        let language = row.field(LAT);
        let vocabulary = labels.number(row.field(SAB), || self.vocabularies.judge(row.field(SAB)));
        let Some(place) = self.options.languages.iter().position(|asked| asked == language) else {
            return Ok(Err(Reason::OtherLanguage));
        };
        if self.options.suppressed == Suppressed::Drop && row.field(SUPPRESS) != "N" {
            return Ok(Err(Reason::Suppressed));
        }
        let level = match *labels.value(vocabulary) {
            Ok(level) => level,
            Err(reason) => return Ok(Err(reason)),
        };
        let text = row.field(STR);
        if text.trim().is_empty() {
            return Err(row.wrong(STR, "STR", "a name"));
        }
        Ok(Ok(Atom { cui, text, language, vocabulary, level, place }))
    }

    /// The weightiest first: place of the language, whether it is suppressed, rank of its source and type, whether it is the preferred
    /// term (TS), the preferred form (STT), the preferred atom of its string (ISPREF).
    fn rank(&self, row: &Record<'_, COLUMNS>, atom: &Atom<'_>) -> Rank {
        let is_not = |column, value| u64::from(row.field(column) != value);
        let rank = self.ranks.rank(row.field(SAB), row.field(TTY), row.field(SUPPRESS));
        let flags = is_not(TS, "P") << 2 | is_not(STT, "PF") << 1 | is_not(ISPREF, "Y");
        let place = atom.place.min(LANGUAGES) as u64;
        place << 40 | is_not(SUPPRESS, "N") << 39 | u64::from((1 << 20) - rank) << 8 | flags
    }
}

/// What a piece of the file holds.
struct Piece {
    counts: Counts,
    names: Vec<(Cui, Rank, Option<u8>, u32)>,
    /// The texts of `names`, one after another.
    texts: String,
    /// Concepts with keys that they have elsewhere.
    codes: Vec<(Cui, Code)>,
    /// Names that other sources want a key for.
    wanted: Vec<(Cui, String)>,
    vocabularies: Labels<Verdict>,
}

/// What other sources say of concepts.
#[derive(Debug, Default)]
pub(super) struct Spoken {
    /// Concepts that another source mentions by a key of another vocabulary.
    pub(super) codes: Vec<Cui>,
    /// Concepts with a name that another source wants a key for, and that name.
    pub(super) wanted: Vec<(Cui, String)>,
}

/// What the first reading comes to.
pub(super) struct Read {
    pub(super) names: Names,
    pub(super) spoken: Spoken,
    /// Of names, and of codes if other sources mention some.
    pub(super) tallies: Vec<Tally>,
}

/// Chooses the name of each concept, notes every vocabulary in `met`, and tells `builder` which concepts the codes of other vocabularies are of.
pub(super) fn read(
    source: &File<'_>,
    choice: Choice<'_>,
    met: &mut Labels<()>,
    builder: &mut Builder,
) -> Result<Read, ReadError> {
    let (mut names, mut counts, mut spoken) = (Names::new(), Counts::default(), Spoken::default());
    let (mut codes, spoken_of) = (Codes::default(), SpokenOf::new(builder));
    let wanted = builder.wants_names().then(|| builder.wanted().clone());
    let totals = source.scan(
        |rows| parse(rows, choice, wanted.as_ref(), spoken_of),
        |piece: Piece| {
            counts.add(&piece.counts);
            for (vocabulary, _) in piece.vocabularies.iter() {
                met.number(vocabulary, || ());
            }
            let mut rest = piece.texts.as_str();
            for (cui, rank, level, length) in piece.names {
                let (text, after) = rest.split_at(length as usize);
                rest = after;
                names.propose(cui, Candidate { rank, text, level });
            }
            piece.codes.into_iter().for_each(|(cui, code)| codes.push(cui, code, builder));
            spoken.wanted.extend(piece.wanted);
            Ok(())
        },
    )?;
    if totals.lines == 0 {
        return Err(source.is_empty());
    }
    let mut tallies = vec![counts.tally(&source.label, &REASONS, totals)];
    let of_codes;
    (spoken.codes, of_codes) = codes.join(builder);
    tallies.extend(of_codes);
    Ok(Read { names, spoken, tallies })
}

fn parse(
    rows: &mut Rows<'_, COLUMNS>,
    choice: Choice<'_>,
    wanted: Option<&Wanted>,
    spoken_of: SpokenOf,
) -> Result<Piece, ReadError> {
    let mut piece = Piece {
        counts: Counts::default(),
        names: Vec::new(),
        texts: String::new(),
        codes: Vec::new(),
        wanted: Vec::new(),
        vocabularies: Labels::new(),
    };
    while let Some(row) = rows.next_record()? {
        let atom = choice.atom(&row, &mut piece.vocabularies)?;
        // Identity is no text, so languages, vocabularies that are asked for and levels do not matter.
        if choice.options.suppressed == Suppressed::Keep || row.field(SUPPRESS) == "N" {
            let code = spoken_of.code(row.field(SAB), row.field(TTY), row.field(CODE));
            if let Some(code) = code {
                piece.codes.push((Cui::parse(&row, CUI, "CUI")?, code));
            }
        }
        match atom {
            Err(reason) => piece.counts.drop(reason),
            Ok(atom) => {
                piece.counts.keep();
                let rank = choice.rank(&row, &atom);
                if wanted.is_some_and(|wanted| wanted.contains(&fold(atom.text))) {
                    piece.wanted.push((atom.cui, atom.text.to_owned()));
                }
                add(&mut piece, atom, rank);
            }
        }
    }
    Ok(piece)
}

/// Adds a name, or puts it in the place of the last if that is a worse one of the same concept.
fn add(piece: &mut Piece, atom: Atom<'_>, rank: Rank) {
    if let Some(&(cui, last_rank, last_level, length)) = piece.names.last()
        && cui == atom.cui
    {
        let start = piece.texts.len() - length as usize;
        let last = Candidate { rank: last_rank, text: &piece.texts[start..], level: last_level };
        if last <= (Candidate { rank, text: atom.text, level: atom.level }) {
            return;
        }
        piece.texts.truncate(start);
        piece.names.pop();
    }
    piece.texts.push_str(atom.text);
    let length = u32::try_from(atom.text.len()).unwrap_or(u32::MAX);
    piece.names.push((atom.cui, rank, atom.level, length));
}
