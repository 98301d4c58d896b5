//! Asking a model from the command line: lines in, JSON lines out.

use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use downstream::encode::Cuts;
use model::Device;
use model::device::Wanted;
use model::encoder::pool::Pooling;
use serde_json::json;

use super::exit::Exit;
use super::print;
use crate::bundle::answer::{Answering, Remarks};
use crate::bundle::fill::Filling;
use crate::bundle::known::Around;
use crate::bundle::lines::{Form, Inputs, write_line};
use crate::bundle::opened::Bundle;
use crate::bundle::spans::Reading;
use crate::bundle::vectors::{Encoding, How};

/// Where lines come from, and how they are written.
pub(super) struct Asked<'a> {
    /// A file; standard input without it.
    pub(super) input: Option<&'a Path>,
    /// How lines are written; without it, a file that ends in `.jsonl` has objects and any other texts, none of which may look like an object.
    pub(super) form: Option<Form>,
}

impl Asked<'_> {
    fn open(&self) -> anyhow::Result<(Box<dyn BufRead>, PathBuf, Form)> {
        let is_json = self.input.is_some_and(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
        let form = self.form.unwrap_or(if is_json { Form::Json } else { Form::Untold });
        Ok(match self.input {
            Some(path) => {
                let file = std::fs::File::open(path);
                let file = file.with_context(|| format!("{}: cannot open it", path.display()))?;
                (Box::new(BufReader::new(file)), path.to_owned(), form)
            }
            None => (Box::new(io::stdin().lock()), PathBuf::from("standard input"), form),
        })
    }
}

/// The device to compute on. Where this build looks for a GPU, it says what it found.
pub(super) fn device(wanted: Wanted) -> anyhow::Result<Device> {
    let chosen = wanted.choose()?;
    if wanted == Wanted::Auto && model::device::has_cuda() {
        print::note(&format!("computed on {}", chosen.describe()));
    }
    Ok(chosen.device)
}

/// What came of it, with what to do where a GPU does not take a model or a batch that the CPU takes.
pub(super) fn advised(device: &Device, came: anyhow::Result<Exit>) -> anyhow::Result<Exit> {
    if device.is_cpu() { came } else { came.context("on the GPU (`--device cpu` computes without it)") }
}

/// Answers line by line. Nothing is printed of a line that follows one that cannot be asked about.
pub(super) fn predict(
    bundle: Bundle<'_>,
    task: Option<&str>,
    top: usize,
    asked: &Asked<'_>,
    around: Around<'_>,
) -> anyhow::Result<Exit> {
    if let Some(filling) = Filling::open(bundle, task, top, around)? {
        let (reader, name, form) = asked.open()?;
        return printed(|out| {
            let mut each = |said| Ok(write_line(out, &said)?);
            filling.answer(&mut Inputs::new(reader, &name, form), &mut each)?;
            Ok(Remarks::default())
        });
    }
    if let Some(reading) = Reading::open(bundle, task, top, around)? {
        let (reader, name, form) = asked.open()?;
        return printed(|out| {
            let mut each = |said| Ok(write_line(out, &said)?);
            reading.answer(&mut Inputs::new(reader, &name, form), &mut each)
        });
    }
    let answering = Answering::open(bundle, task, top, around)?;
    let (reader, name, form) = asked.open()?;
    printed(|out| {
        answering.answer(&mut Inputs::new(reader, &name, form), &mut |said| Ok(write_line(out, &said)?))
    })
}

/// Prints the vector of each line.
pub(super) fn encode(
    model: &Path,
    how: &How<'_>,
    asked: &Asked<'_>,
    around: Around<'_>,
) -> anyhow::Result<Exit> {
    let encoding = Encoding::open(model, how, around)?;
    let (reader, name, form) = asked.open()?;
    if encoding.is_guessed() {
        print::note(&format!(
            "{}: nothing says how its vectors are pooled, so each is the state of the first token (cls); say --pooling cls, mean, max or learned_pooler",
            model.display()
        ));
    }
    printed(|out| {
        let cuts = encoding.encode(&mut Inputs::new(reader, &name, form), &mut |id, vector| {
            let said = match id {
                Some(id) => json!({"id": id, "vector": vector}),
                None => json!({"vector": vector}),
            };
            Ok(write_line(out, &said)?)
        })?;
        Ok(Remarks { cuts, ..Remarks::default() })
    })
}

/// Whether a reader that has gone, as `head` does, ends it without a complaint.
pub(super) fn unless_gone(work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<Exit> {
    let gone = |error: &anyhow::Error| {
        let kinds = error.chain().filter_map(|cause| Some(cause.downcast_ref::<io::Error>()?.kind()));
        kinds.into_iter().any(|kind| kind == io::ErrorKind::BrokenPipe)
    };
    match work() {
        Err(error) if !gone(&error) => Err(error),
        _ => Ok(Exit::Ok),
    }
}

/// Writes answers, and then notes what is to be said of them all.
fn printed(
    write: impl FnOnce(&mut BufWriter<io::StdoutLock<'_>>) -> anyhow::Result<Remarks>,
) -> anyhow::Result<Exit> {
    unless_gone(|| {
        let mut out = BufWriter::new(io::stdout().lock());
        let remarks = write(&mut out)?;
        out.flush()?;
        note(&remarks);
        Ok(())
    })
}

fn note(remarks: &Remarks) {
    let Remarks { cuts: Cuts { rows, cut, tokens }, questions, unlike } = remarks;
    if *questions > 0 {
        print::note(&format!(
            "warning: {questions} questions were longer than the model reads beside a passage (finetune.spans.question), and lost their ends"
        ));
    }
    if *unlike > 0 {
        print::note(&format!(
            "warning: {unlike} of the inputs have a `pair` or lack one where the model was trained otherwise: it was never taught what such mean"
        ));
    }
    if *cut > 0 {
        print::note(&format!(
            "warning: {cut} of {rows} rows were too long for the model and lost {tokens} tokens at their end: it saw the rest only"
        ));
    }
}

/// A pooling by its name.
pub(super) fn pooling(name: &str) -> Result<Pooling, String> {
    serde_json::from_value(json!(name)).map_err(|_| "expected cls, mean, max or learned_pooler".to_owned())
}
