//! SQL over the artifacts that the ledger names: which files may be read, and where an answer goes.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, IsTerminal, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;
use base::cancel::CancelToken;
use base::{visible, whole};
use clap::{Args, ValueEnum};
use query::{Answer, Artifact, Check, Format as Written, Tables, Told};
use serde_json::{Value, json};

use super::exit::Exit;
use super::measure;
use super::print::{self, Format};
use crate::engine::digest::Digest;
use crate::engine::folder::altered;
use crate::engine::layout::Layout;
use crate::engine::ledger::{Ledger, Line};

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Form {
    /// Aligned columns, cut to the width of the terminal
    Table,
    /// Comma-separated values under a heading
    Csv,
    /// A JSON object a line
    Json,
    /// Parquet; needs --into
    Parquet,
}

/// What is asked.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  engraft query 'select relation, count(*) n from triples group by relation order by n desc'
  engraft query \"select object from triples where subject = 'Asthma'\" --json
  engraft query 'select * from scores' --into scores.csv
  engraft query --tables          the tables, their columns, rows and files

On a terminal the answer is a table, elsewhere CSV. Only finished artifacts are read, each file after
its digest was compared with the ledger's. docs/query.md has the tables and useful queries.")]
pub(super) struct Asked {
    /// The query, in the SQL of polars
    #[arg(value_name = "SQL", required_unless_present = "tables", conflicts_with = "tables")]
    sql: Option<String>,
    /// Lists the tables instead: rows, columns and types, and the files that they come from
    #[arg(long)]
    tables: bool,
    /// Format of the answer; defaults to a table on a terminal, the ending of --into, or CSV
    #[arg(long, value_name = "FORMAT", value_enum, conflicts_with = "tables")]
    format: Option<Form>,
    /// The file to write the answer to
    #[arg(long, value_name = "FILE", conflicts_with = "tables")]
    pub(super) into: Option<PathBuf>,
    /// Maximum number of rows that a table shows; other formats have all
    #[arg(long, value_name = "N", default_value_t = 100)]
    rows: u32,
    /// Trusts files of the right size instead of comparing their digests with the ledger's
    #[arg(long)]
    unchecked: bool,
}

/// What is believed of the files that a query reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Belief {
    /// Nothing: their digests are compared with the ledger's first.
    Digests,
    /// That a file of the right size is the right one.
    Sizes,
}

impl Asked {
    /// A list of tables reads little more than footers, and hashing everything for it would take minutes where shards are large.
    fn belief(&self) -> Belief {
        if self.unchecked || self.tables { Belief::Sizes } else { Belief::Digests }
    }
}

/// Answers a query over the finished artifacts in `out`.
pub(super) fn query(out: &Path, asked: &Asked, format: Format) -> anyhow::Result<Exit> {
    let artifacts = artifacts(&Layout::new(out))?;
    let finished = !artifacts.is_empty();
    anyhow::ensure!(
        finished,
        "there is nothing to query: no stage has finished in {}; `engraft run` makes artifacts, and --out names another folder",
        out.display()
    );
    let tables = Tables::new(artifacts, check(asked.belief()));
    // Polars panics at some damaged files, which only --unchecked lets through.
    let silent = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let answered = catch_unwind(AssertUnwindSafe(|| match &asked.sql {
        None => list(&tables, format),
        Some(sql) => answer(tables.query(sql)?, asked, format),
    }));
    std::panic::set_hook(silent);
    match answered {
        Ok(answered) => answered.map(|()| Exit::Ok),
        Err(panic) => {
            let said = panic.downcast_ref::<String>().cloned();
            let said = said.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
            anyhow::bail!(
                "polars stopped at this query: {}; if `engraft verify` finds the files sound, please report it with the query",
                said.unwrap_or_default()
            )
        }
    }
}

/// The last artifact of each stage that is there, in the order in which stages first finished.
fn artifacts(layout: &Layout) -> anyhow::Result<Vec<Artifact>> {
    let ledger = Ledger::read(&layout.ledger())?;
    let mut seen = BTreeSet::new();
    let stages = ledger.lines().iter().map(|line| line.stage.as_str()).filter(|stage| seen.insert(*stage));
    let there =
        stages.filter_map(|stage| ledger.last(stage)).filter(|line| layout.artifact(&line.stage).is_dir());
    Ok(there.map(|line| artifact(layout, line)).collect())
}

fn artifact(layout: &Layout, line: &Line) -> Artifact {
    let file = |output: &crate::engine::folder::Output| query::File {
        path: output.path.clone(),
        bytes: output.bytes,
        blake3: output.blake3.to_string(),
    };
    Artifact {
        stage: line.stage.clone(),
        folder: layout.artifact(&line.stage),
        files: line.outputs.iter().map(file).collect(),
        digest: line.artifact.to_string(),
        inputs: line.described.artifacts.iter().map(|(stage, of)| (stage.clone(), of.to_string())).collect(),
        fingerprint: line.fingerprint.to_string(),
        started_ms: line.started_ms,
        seconds: line.seconds,
        engraft: line.engraft.clone(),
    }
}

/// Compares a file with what the ledger says of it, once.
fn check(belief: Belief) -> Check {
    let sound: Mutex<BTreeSet<PathBuf>> = Mutex::default();
    Check::new(move |path, file| {
        let known = || sound.lock().unwrap_or_else(PoisonError::into_inner);
        if known().contains(path) {
            return Ok(());
        }
        let unreadable = |cause: io::Error| {
            format!("{}: {cause}; `engraft verify` tells what else is damaged", path.display())
        };
        let bytes = path.metadata().map_err(unreadable)?.len();
        let same = bytes == file.bytes
            && (belief == Belief::Sizes
                || Digest::of_file(path, &CancelToken::NEVER).map_err(unreadable)?.to_string()
                    == file.blake3);
        if !same {
            return Err(altered(path));
        }
        known().insert(path.to_owned());
        Ok(())
    })
}

fn answer(answer: Answer, asked: &Asked, format: Format) -> anyhow::Result<()> {
    let form = form(asked, format)?;
    let written = match form {
        Form::Table => return shown(answer, asked.rows),
        Form::Csv => Written::Csv,
        Form::Json => Written::Json,
        Form::Parquet => Written::Parquet,
    };
    if let Some(into) = &asked.into {
        let at = || into.display().to_string();
        let temporary = whole::temporary(whole::folder(into)).with_context(at)?;
        answer.write(written, temporary.path())?;
        return whole::persist(temporary, into).with_context(at);
    }
    // Through a file, so that a query that fails halfway prints nothing.
    let temporary = tempfile::NamedTempFile::new().context("a temporary file for the answer")?;
    answer.write(written, temporary.path())?;
    match copy(BufReader::new(File::open(temporary.path())?), written) {
        // A reader that has gone away (`| head`) is no error.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Copies a written answer to standard output: CSV for a program byte by byte, anything else so that it steers no terminal (JSON means the same then).
fn copy(mut lines: impl BufRead, written: Written) -> io::Result<()> {
    let stdout = io::stdout();
    let exact = written == Written::Csv && !stdout.is_terminal();
    let mut out = BufWriter::new(stdout.lock());
    if exact {
        io::copy(&mut lines, &mut out)?;
    } else {
        for line in lines.lines() {
            writeln!(out, "{}", visible::shown(&line?))?;
        }
    }
    out.flush()
}

/// What was asked for, or else what the file's name says, or else what whoever reads standard output needs.
fn form(asked: &Asked, format: Format) -> anyhow::Result<Form> {
    let ending = asked.into.as_deref().and_then(Path::extension).and_then(|ending| ending.to_str());
    let named = match ending {
        Some("csv") => Some(Form::Csv),
        Some("jsonl" | "ndjson" | "json") => Some(Form::Json),
        Some("parquet") => Some(Form::Parquet),
        _ => None,
    };
    let json = (format == Format::Json).then_some(Form::Json);
    let form = asked.format.or(json).or(named);
    match (form, &asked.into) {
        (None, Some(into)) => anyhow::bail!(
            "{}: its name does not say in which format to write, expected .csv, .jsonl or .parquet: rename it or add --format",
            into.display()
        ),
        (Some(Form::Table), Some(_)) => {
            anyhow::bail!(
                "a table is for reading on a terminal: expected --format csv, json or parquet with --into"
            )
        }
        (Some(Form::Parquet), None) => {
            anyhow::bail!("Parquet is not for reading on a terminal: name a file with --into FILE")
        }
        (Some(form), _) => Ok(form),
        (None, None) if io::stdout().is_terminal() => Ok(Form::Table),
        (None, None) => Ok(Form::Csv),
    }
}

fn shown(answer: Answer, rows: u32) -> anyhow::Result<()> {
    let width = terminal_size::terminal_size().filter(|_| io::stdout().is_terminal());
    let (lines, more) = answer.shown(rows, width.map(|(width, _)| usize::from(width.0)))?;
    lines.iter().try_for_each(|line| print::painted(line))?;
    if more {
        print::note(&format!(
            "only the first {} rows are shown: --rows shows more, --format csv or --into FILE gives all",
            measure::count(rows.into())
        ));
    }
    Ok(())
}

fn list(tables: &Tables, format: Format) -> anyhow::Result<()> {
    let told = tables.list()?;
    print::result(format, || told.iter().flat_map(lines).collect(), || told.iter().map(as_json).collect())?;
    Ok(())
}

/// A table for people: its size, what a row is, where it comes from, its columns.
fn lines(told: &Told) -> Vec<String> {
    let Told { name, row, rows, columns, files } = told;
    let from = match &files[..] {
        [] => String::new(),
        [one] => one.clone(),
        [first, rest @ ..] => format!("{first} and {} more", rest.len()),
    };
    let columns = columns.iter().map(|column| format!("{} {}", column.name, column.dtype));
    vec![
        format!("{name}: {} rows from {from}; each is {row}", measure::count(*rows)),
        format!("  {}", columns.collect::<Vec<_>>().join(", ")),
    ]
}

fn as_json(Told { name, row, rows, columns, files }: &Told) -> Value {
    let columns: Vec<Value> =
        columns.iter().map(|column| json!({"name": column.name, "type": column.dtype})).collect();
    json!({"table": name, "row": row, "rows": rows, "columns": columns, "files": files})
}
