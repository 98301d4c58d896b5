//! The ledger: one JSON line for every finished run of a stage, only ever appended to.
//!
//! A line counts once its newline is on disk. A last line without one is what a crash leaves and is cut off at the next
//! append; anything unreadable before it is damage and an error. Since format 2 a line ends with the digest of what it says, so
//! that a change which still reads as a line is found as well.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use base::cancel::CancelToken;
use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::describe::Description;
use super::digest::Digest;
use super::error::Error;
use super::explain::Reason;
use super::fault::{Faults, Point, die};
use super::folder::Output;
use super::graph::is_name;
use super::layout::ledger_lock;
use super::licence::Licence;
use super::lock::{For, Lock};

/// The version of the line format; the column table is in docs/formats.md.
pub(crate) const VERSION: u32 = 2;

/// The format before digests, whose lines are still read.
const WITHOUT_DIGEST: u32 = 1;

/// What stands between a line's object, without its closing brace, and the 64 digits of the object's digest.
const SEAL: &[u8] = b",\"digest\":\"";

/// What follows the digits.
const CLOSE: &[u8] = b"\"}";

/// What is known of one finished run of a stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Line {
    /// [`VERSION`].
    pub format: u32,
    /// The stage that ran.
    pub stage: String,
    /// The digest of the description.
    pub fingerprint: Digest,
    /// What the stage was described as.
    pub described: Description,
    /// The digest of the whole artifact.
    pub artifact: Digest,
    /// The artifact's files, sorted by path.
    pub outputs: Vec<Output>,
    /// What the stage recorded, in its order.
    pub facts: Map<String, Value>,
    /// Why it ran.
    pub reasons: Vec<Reason>,
    /// When it started, in milliseconds since the Unix epoch.
    pub started_ms: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// The version of engraft that ran it.
    pub engraft: String,
    /// In a depot, and here of an artifact that comes from one: what may be done with it; absent if that was not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub licence: Option<Licence>,
    /// When the artifact was restored, in milliseconds since the Unix epoch, if it was not made then: when it started, how long it took, what it
    /// recorded and the version of engraft are those of the run that made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored_ms: Option<u64>,
}

impl Line {
    /// How many bytes the artifact's files have.
    pub(crate) fn bytes(&self) -> u64 {
        self.outputs.iter().map(|output| output.bytes).sum()
    }
}

/// The lines of a ledger, oldest first.
#[derive(Debug)]
pub(crate) struct Ledger {
    path: PathBuf,
    lines: Vec<Line>,
    /// How many bytes the whole lines take; what follows is a torn line.
    whole: u64,
    /// How long the file is as far as this process knows.
    length: u64,
}

/// What reading a ledger line by line found, damaged lines included.
#[derive(Debug)]
pub(crate) struct Audit {
    /// The lines that are sound.
    pub ledger: Ledger,
    /// How many of them are of the format without digests, so that only their form could be looked at.
    pub without_digest: usize,
    /// What is wrong with the others.
    pub damages: Vec<Error>,
    /// Whether the last line does not end, as a run leaves it that was killed while it wrote.
    pub torn: bool,
}

#[derive(Deserialize)]
struct Header {
    format: u32,
}

impl Ledger {
    /// Reads the ledger at `path`; one that does not exist has no lines.
    ///
    /// # Errors
    /// When the file system refuses, or a line is damaged.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let Audit { ledger, damages, .. } = Self::audit(path)?;
        damages.into_iter().next().map_or(Ok(ledger), Err)
    }

    /// Reads the ledger at `path` past what is damaged.
    ///
    /// # Errors
    /// When the file system refuses.
    pub(crate) fn audit(path: &Path) -> Result<Audit, Error> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(cause) => return Err(Error::at(path)(cause)),
        };
        let (whole, tail) = parted(&bytes);
        let (mut lines, mut damages, mut without_digest) = (Vec::new(), Vec::new(), 0);
        for (i, line) in parsed(whole).enumerate() {
            match line {
                Ok(line) => {
                    without_digest += usize::from(line.format == WITHOUT_DIGEST);
                    lines.push(line);
                }
                Err(damage) => damages.push(damage.at(path, i + 1)),
            }
        }
        if !is_torn(tail) {
            let line = whole.iter().filter(|&&b| b == b'\n').count() + 1;
            damages.push(
                Damage::Said("it does not end, and is not the beginning of a line either").at(path, line),
            );
        }
        let torn = !tail.is_empty();
        let ledger =
            Self { path: path.to_owned(), lines, whole: whole.len() as u64, length: bytes.len() as u64 };
        Ok(Audit { ledger, without_digest, damages, torn })
    }

    /// All lines, oldest first.
    pub(crate) fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// The last line of a stage.
    pub(crate) fn last(&self, stage: &str) -> Option<&Line> {
        self.lines.iter().rev().find(|line| line.stage == stage)
    }

    /// Takes up the lines that other runs beside this one have appended. Fails if the file has otherwise changed: a line appended then would follow a hole.
    ///
    /// # Errors
    /// When it has, or the file system refuses.
    pub(crate) fn catch_up(&mut self) -> Result<(), Error> {
        // Opened anew: what only asks for the length may be told an old one where the folder lies on another machine.
        let file = match File::open(&self.path) {
            Ok(file) => Some(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(cause) => return Err(Error::at(&self.path)(cause)),
        };
        let length = file.as_ref().map(|file| file.metadata().map(|data| data.len())).transpose();
        let found = length.map_err(Error::at(&self.path))?;
        if found.unwrap_or(0) == self.length && self.length == self.whole {
            return Ok(());
        }
        if let Some(file) = file.filter(|_| found >= Some(self.whole)) {
            let bytes = self.behind(file).map_err(Error::at(&self.path))?;
            let (whole, tail) = parted(&bytes);
            let lines: Result<Vec<Line>, Damage> = parsed(whole).collect();
            if let Some(lines) = lines.ok().filter(|_| is_torn(tail)) {
                self.lines.extend(lines);
                self.length = self.whole + bytes.len() as u64;
                self.whole += whole.len() as u64;
                return Ok(());
            }
        }
        let found = found.map_or("no file".to_owned(), |bytes| format!("{bytes} bytes"));
        Err(Error::new(format!(
            "{}: something other than this run has changed the ledger: it has {found} where this run left {} bytes, and what \
             it no longer names would be lost: nothing was written to it; restore it, then run again (what it does not name is \
             made again)",
            self.path.display(),
            self.length
        )))
    }

    /// What stands behind the lines that are known.
    fn behind(&self, mut file: File) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        file.seek(io::SeekFrom::Start(self.whole))?;
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Appends a line and brings it safely to disk; cuts off a torn one before. On an error the file is as it was.
    ///
    /// # Errors
    /// When it cannot be appended to, or the file system refuses.
    pub(crate) fn append(&mut self, line: Line, faults: &Faults) -> Result<(), Error> {
        let _alone = Lock::of_stage(&ledger_lock(&self.path), For::Making, &CancelToken::NEVER, &mut |_| ())?;
        self.catch_up()?;
        let line = Line { format: VERSION, ..line };
        let path = self.path.clone();
        self.write(&line, faults).map_err(Error::at(&path))?;
        self.lines.push(line);
        Ok(())
    }

    fn write(&mut self, line: &Line, faults: &Faults) -> io::Result<()> {
        let mut text = sealed(line)?;
        text.push(b'\n');
        let mut file = OpenOptions::new().append(true).create(self.length == 0).open(&self.path)?;
        file.set_len(self.whole)?;
        self.length = self.whole;
        if faults.is_at(&line.stage, Point::TornLedger) {
            file.write_all(&text[..text.len() / 2])?;
            file.sync_all()?;
            die();
        }
        if let Err(error) = file.write_all(&text).and_then(|()| file.sync_all()) {
            // Best effort: a torn line that stays is cut off at the next append.
            let _ = file.set_len(self.whole).and_then(|()| file.sync_all());
            self.length = file.metadata().map_or(self.whole, |data| data.len());
            return Err(error);
        }
        if self.whole == 0 {
            File::open(self.path.parent().unwrap_or(Path::new(".")))?.sync_all()?;
        }
        self.whole += text.len() as u64;
        self.length = self.whole;
        Ok(())
    }
}

/// The line as it is written, without its newline: the object, and as its last key the digest of all before.
pub(super) fn sealed(line: &Line) -> serde_json::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(line)?;
    let digest = Digest::of(&text).to_string();
    text.pop();
    text.extend([SEAL, digest.as_bytes(), CLOSE].concat());
    Ok(text)
}

/// The object that was sealed, and the digits of its digest; nothing if the text does not end with a digest.
fn opened(text: &[u8]) -> Option<(Vec<u8>, &[u8; 64])> {
    let (object, digits) = text.strip_suffix(CLOSE)?.split_last_chunk::<64>()?;
    let mut object = object.strip_suffix(SEAL)?.to_vec();
    object.push(b'}');
    Some((object, digits))
}

/// The whole lines of a file, and what follows the last newline.
fn parted(bytes: &[u8]) -> (&[u8], &[u8]) {
    bytes.split_at(bytes.iter().rposition(|&b| b == b'\n').map_or(0, |last| last + 1))
}

/// Reads whole lines.
fn parsed(whole: &[u8]) -> impl Iterator<Item = Result<Line, Damage>> {
    whole.split_inclusive(|&b| b == b'\n').map(|text| parse(&text[..text.len() - 1]))
}

/// Whether what follows the last newline is what a kill leaves: nothing, or the beginning of a line.
fn is_torn(tail: &[u8]) -> bool {
    const HEAD: &[u8] = b"{\"format\":";
    if tail.len() < HEAD.len() {
        return HEAD.starts_with(tail);
    }
    let Some(seal) = tail.windows(SEAL.len()).rposition(|bytes| bytes == SEAL) else {
        return tail.starts_with(HEAD);
    };
    let (object, rest) = (&tail[..seal], &tail[seal + SEAL.len()..]);
    let digest = Digest::of(&[object, b"}"].concat()).to_string();
    [digest.as_bytes(), CLOSE].concat().starts_with(rest)
}

/// Whether a line names only what lies in its own stage's folder; `clean` removes what a line names.
fn stays_inside(line: &Line) -> bool {
    let plain = |part: &str| !part.is_empty() && part != "." && part != "..";
    is_name(&line.stage) && line.outputs.iter().all(|output| output.path.split('/').all(plain))
}

/// What is wrong with a line.
pub(super) enum Damage {
    /// It is no line, or leads out of its folder.
    Json(serde_json::Error),
    /// It says something else than was written, or not all of it.
    Said(&'static str),
    /// It is of another format.
    Format(u32),
}

impl Damage {
    fn at(&self, path: &Path, line: usize) -> Error {
        let place = format!("{}:{line}", path.display());
        Error::new(match self {
            Self::Json(_) | Self::Said(_) => format!(
                "{place}: this ledger line is damaged ({}): restore the file from a backup, or delete the line to have its \
                 stage run again",
                self.cause()
            ),
            Self::Format(_) => format!(
                "{place}: {}: use the engraft that wrote it, or another folder with --out",
                self.cause()
            ),
        })
    }

    /// What is wrong, without what to do.
    pub(super) fn cause(&self) -> String {
        match self {
            Self::Json(cause) => cause.to_string(),
            Self::Said(cause) => (*cause).to_owned(),
            Self::Format(found) => format!("ledger format {found}, but this engraft reads format {VERSION}"),
        }
    }
}

/// The digest is compared with what the line says.
const ALTERED: Damage = Damage::Said("its digest is not that of what it says");

/// Reads a line without its newline.
pub(super) fn parse(text: &[u8]) -> Result<Line, Damage> {
    let Some((object, digits)) = opened(text) else {
        return match object(text)? {
            line if line.format == WITHOUT_DIGEST => Ok(line),
            _ => Err(Damage::Said("it has no digest")),
        };
    };
    if Digest::of(&object).to_string().as_bytes() != digits {
        // The parser's word says where the damage is, if it is such that the parser sees it.
        return Err(self::object(text)
            .err()
            .filter(|damage| matches!(damage, Damage::Json(_)))
            .unwrap_or(ALTERED));
    }
    // The format without digests is none that ends with one.
    match self::object(&object)? {
        line if line.format == VERSION => Ok(line),
        _ => Err(ALTERED),
    }
}

fn object(text: &[u8]) -> Result<Line, Damage> {
    let known = |format: &u32| [WITHOUT_DIGEST, VERSION].contains(format);
    let parsed = serde_json::from_slice(text).and_then(|line: Line| {
        let outside = || serde_json::Error::custom("a name that leads out of the stage's folder");
        if stays_inside(&line) { Ok(line) } else { Err(outside()) }
    });
    let format = serde_json::from_slice::<Header>(text).ok().map(|header| header.format);
    match (parsed, format.filter(|format| !known(format))) {
        (_, Some(found)) => Err(Damage::Format(found)),
        (parsed, None) => parsed.map_err(Damage::Json),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use base::whole::write_with_folder;
    use tempfile::tempdir;

    use super::*;
    use crate::engine::testing::{run, stage};

    #[test]
    fn a_torn_last_line_is_no_line_and_is_cut_off_by_the_next() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("ledger.jsonl");
        run(dir.path(), [stage("a"), stage("b").reads("a")]);
        let whole = fs::read(&path).unwrap();
        let torn = whole.len() - 7;
        OpenOptions::new().write(true).open(&path).unwrap().set_len(torn as u64).unwrap();
        assert_eq!(Ledger::read(&path).unwrap().lines().len(), 1);
        assert_eq!(run(dir.path(), [stage("a"), stage("b").reads("a")]), ["a fresh", "b done"]);
        let lines = Ledger::read(&path).unwrap();
        assert_eq!(lines.lines().iter().map(|line| line.stage.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    }

    #[test]
    fn damage_in_the_middle_is_an_error_that_names_the_line() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("ledger.jsonl");
        run(dir.path(), [stage("a"), stage("b").reads("a")]);
        let text = fs::read_to_string(&path).unwrap();
        write_with_folder(&path, text.replacen("\"stage\"", "\"stag", 1).as_bytes()).unwrap();
        let error = Ledger::read(&path).unwrap_err().to_string();
        assert!(error.contains("ledger.jsonl:1:") && error.contains("column"), "{error}");
    }

    #[test]
    fn silent_21_a_flipped_bit_anywhere_in_a_line_is_damage() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("ledger.jsonl");
        run(dir.path(), [stage("a").field("weight", 0.1)]);
        let sound = fs::read(&path).unwrap();
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        for (at, bit) in (0..sound.len() - 1).flat_map(|at| (0..8).map(move |bit| (at, bit))) {
            file.write_all_at(&[sound[at] ^ (1 << bit)], at as u64).unwrap();
            let audit = Ledger::audit(&path).unwrap();
            assert!(!audit.damages.is_empty() && audit.ledger.lines().is_empty(), "byte {at}, bit {bit}");
            file.write_all_at(&sound[at..=at], at as u64).unwrap();
        }
        assert!(Ledger::read(&path).is_ok());
    }

    #[test]
    fn silent_21_a_ledger_shortened_or_deleted_during_a_run_is_not_extended() {
        for left in [None, Some(7)] {
            let dir = tempdir().unwrap();
            let path = dir.path().join("ledger.jsonl");
            run(dir.path(), [stage("a")]);
            let meddled = path.clone();
            let b = stage("b").reads("a").works(move |context| {
                match left {
                    None => fs::remove_file(&meddled)?,
                    Some(bytes) => OpenOptions::new().write(true).open(&meddled)?.set_len(bytes)?,
                }
                crate::engine::testing::say(context, "out.txt", "b")
            });
            let events = run(dir.path(), [stage("a"), b, stage("c").reads("b")]);
            assert!(events[1].contains("changed the ledger"), "{events:?}");
            assert_eq!(fs::metadata(&path).ok().map(|data| data.len()), left, "it is as it was found");
            assert!(!dir.path().join("b").exists(), "no artifact that the ledger does not name");
        }
    }

    #[test]
    fn silent_21_lines_of_the_format_without_digests_are_read_and_followed_by_lines_with_one() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("ledger.jsonl");
        run(dir.path(), [stage("a")]);
        let line = Ledger::read(&path).unwrap().last("a").unwrap().clone();
        let old = serde_json::to_string(&Line { format: WITHOUT_DIGEST, ..line }).unwrap() + "\n";
        write_with_folder(&path, old.as_bytes()).unwrap();
        assert_eq!(run(dir.path(), [stage("a"), stage("b").reads("a")]), ["a fresh", "b done"]);
        let audit = Ledger::audit(&path).unwrap();
        assert_eq!((audit.ledger.lines().len(), audit.without_digest, audit.damages.len()), (2, 1, 0));
        // A line of this format that has lost its digest is none of the format before.
        write_with_folder(&path, old.replacen("\"format\":1", "\"format\":2", 1).as_bytes()).unwrap();
        assert!(Ledger::read(&path).unwrap_err().to_string().contains("no digest"));
    }

    #[test]
    fn another_format_is_refused_as_such() {
        let dir = tempdir().unwrap();
        let path = dir.path().join("ledger.jsonl");
        write_with_folder(&path, b"{\"format\":3,\"unheard\":true}\n").unwrap();
        let error = Ledger::read(&path).unwrap_err().to_string();
        assert!(error.contains("ledger.jsonl:1: ledger format 3, but"), "{error}");
    }

    #[test]
    fn a_line_comes_back_as_it_was_written() {
        let dir = tempdir().unwrap();
        run(dir.path(), [stage("a").field("weight", 0.1)]);
        let ledger = Ledger::read(&dir.path().join("ledger.jsonl")).unwrap();
        let line = ledger.last("a").unwrap();
        assert_eq!(line.described.fingerprint("a"), line.fingerprint);
        assert_eq!(line.facts["letters"], 1);
        assert_eq!(line.described.fields["a.weight"], 0.1);
        assert_eq!(line.outputs[0].bytes, 1);
    }
}
