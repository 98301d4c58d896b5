//! A model's folder as other tools take it: transformers, sentence-transformers, ONNX, Hugging Face's hub. Trains nothing and computes nothing.

mod adapters;
mod onnx;

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail, ensure};
use base::whole::{NewFolder, folder};
use model::Device;
use model::checkpoint::adapters::{ADAPTERS_FILE, ADAPTERS_WEIGHTS_FILE};
use model::checkpoint::{self, digests};
use model::encoder::pool::Pooling;
use serde_json::json;

use super::card;
use super::task_file::{self, Asked, Task, TaskFile};
use super::vectors::{self, is_own};
use crate::engine::folder::list;

/// What a folder becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// What `from_pretrained` reads, without files of engraft's own.
    Transformers,
    /// The same, with how texts are pooled.
    SentenceTransformers,
    /// `model.onnx`, with sizes and vocabulary beside it.
    Onnx,
    /// Everything, to be uploaded.
    Hub,
    /// The adapters alone that were trained in the encoder's place.
    Peft,
}

/// Files that engraft alone reads.
const OWN: [&str; 6] = [
    task_file::FILE,
    checkpoint::OUTPUTS_FILE,
    checkpoint::OUTPUTS_WEIGHTS_FILE,
    ADAPTERS_FILE,
    ADAPTERS_WEIGHTS_FILE,
    digests::DIGESTS_FILE,
];

/// What stands on top of an encoder.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Layer {
    /// Nothing: its states, or their pool, are the answer.
    None,
    /// A last layer of which `transformers` has this class.
    Class(String),
    /// One, or several, that engraft alone knows.
    Own,
}

/// Why it has none there.
const OWN_LAYER: &str = "its last layer is engraft's own (several tasks, of which --task names one, or a pooling that transformers has no class for)";

/// Files of weights.
const WEIGHTS: [&str; 3] = [checkpoint::WEIGHTS_FILE, checkpoint::SHARDS_FILE, checkpoint::PICKLE_FILE];

/// Which files the hub keeps apart from the others, for their size.
const ATTRIBUTES: &str = "*.safetensors filter=lfs diff=lfs merge=lfs -text\n*.bin filter=lfs diff=lfs merge=lfs -text\n*.onnx filter=lfs diff=lfs merge=lfs -text\n";

/// What is exported, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Export<'a> {
    /// A model's folder.
    pub model: &'a Path,
    pub form: Form,
    /// Of a model of several tasks, the one whose last layer goes along.
    pub task: Option<&'a str>,
    /// How texts are pooled, where that is asked for.
    pub pooling: Option<Pooling>,
    /// Where it goes: a folder that is not there yet.
    pub into: &'a Path,
}

/// What came of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exported {
    pub files: Vec<Written>,
    /// What does not go along, if anything does not.
    pub note: Option<String>,
}

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    pub name: String,
    pub bytes: u64,
}

impl Export<'_> {
    /// Exports it, whole or not at all; gives what it consists of, and what does not go along.
    ///
    /// # Errors
    /// When the folder is no sound model's, the form has no place for it, or the disk refuses.
    pub(crate) fn write(&self) -> anyhow::Result<Exported> {
        let Self { model, into, .. } = *self;
        // Sizes first: what is no model's folder is said to be none.
        let sizes = checkpoint::sizes(model)?;
        digests::verify(model)?;
        ensure!(
            !is_own(model)?,
            "{}: its attention has labels, maps or gates, which only engraft computes: ask it with engraft predict or engraft encode",
            model.display()
        );
        ensure!(!into.exists(), "{} is there already: name a folder that is not", into.display());
        if let Some(task) = self.task {
            return self.write_task(task);
        }
        let layer = self.layer()?;
        let beside = folder(into);
        fs::create_dir_all(beside).with_context(|| beside.display().to_string())?;
        let made = NewFolder::begin(into).with_context(|| beside.display().to_string())?;
        let out = made.path();
        match self.form {
            Form::Transformers => self.copy(out, |name| !OWN.contains(&name))?,
            Form::Hub => {
                self.copy(out, |_| true)?;
                put(out, ".gitattributes", ATTRIBUTES.as_bytes())?;
                if !out.join(card::FILE).is_file() {
                    bail!(
                        "{}: it has no {}, without which nobody knows what it is: write one",
                        model.display(),
                        card::FILE
                    );
                }
            }
            Form::SentenceTransformers => {
                self.copy(out, |name| !OWN.contains(&name) && name != card::FILE)?;
                self.modules(out, sizes.hidden_size, sizes.max_position_embeddings)?;
            }
            Form::Peft => adapters::write(model, out)?,
            Form::Onnx => {
                self.copy(out, |name| !OWN.contains(&name) && !is_weights(name))?;
                self.onnx(out, &layer)?;
            }
        }
        let files = listed(out)?;
        made.finish().with_context(|| into.display().to_string())?;
        let is_left = layer == Layer::Own && !matches!(self.form, Form::Hub | Form::Peft);
        let note = is_left.then(|| {
            format!(
                "{}: {OWN_LAYER}, and stays here: {} has the encoder alone",
                model.display(),
                into.display()
            )
        });
        Ok(Exported { files, note })
    }

    /// Exports it with one of its tasks alone.
    fn write_task(&self, name: &str) -> anyhow::Result<Exported> {
        ensure!(
            matches!(self.form, Form::Transformers | Form::Onnx),
            "--task goes with --to transformers and --to onnx: other forms have the encoder alone, or all of it"
        );
        TaskFile::expected(self.model)?;
        let file = TaskFile::read(self.model)?;
        let Some(task) = file.tasks.iter().find(|task| task.name == name) else {
            let names: Vec<&str> = file.tasks.iter().map(|task| task.name.as_str()).collect();
            bail!("this model was not fine-tuned on {name:?} but on {}", names.join(", "));
        };
        let beside = folder(self.into);
        fs::create_dir_all(beside).with_context(|| beside.display().to_string())?;
        let work = tempfile::Builder::new().prefix(".tmp").tempdir_in(beside);
        let work = work.with_context(|| beside.display().to_string())?;
        // Its card speaks of all of its tasks.
        let others = |name: &str| {
            !OWN.contains(&name)
                && !is_weights(name)
                && ![card::FILE, checkpoint::CONFIG_FILE].contains(&name)
        };
        self.copy(work.path(), others)?;
        model::predict::write_one_task(self.model, name, work.path())?;
        let alone = Task { max_tokens: None, ..task.clone() };
        TaskFile { max_tokens: file.most(task), tasks: vec![alone.clone()], ..file }.write(work.path())?;
        digests::seal(work.path())?;
        alone.name_classes(work.path())?;
        let alone = Export { model: work.path(), task: None, ..*self };
        ensure!(
            alone.layer()? != Layer::Own,
            "{}: transformers has no class for the last layer of {name} (by what it says, or how it pools): ask it with engraft predict --task {name}",
            self.model.display()
        );
        alone.write()
    }

    /// What stands on top of the encoder.
    fn layer(&self) -> anyhow::Result<Layer> {
        // The last layer of a publisher's own that engraft does not know is left out, as it is when it is read.
        let known = |class: &String| class != "PreTraining" && class != "NextSentencePrediction";
        if let Some(class) = checkpoint::loaded_as(self.model)?.filter(known) {
            return Ok(Layer::Class(class));
        }
        if !self.model.join(task_file::FILE).is_file() {
            return Ok(Layer::None);
        }
        let tasks = TaskFile::read(self.model)?.tasks;
        let is_similarity = tasks.iter().all(|task| task.asked == Asked::Similarity);
        Ok(if is_similarity { Layer::None } else { Layer::Own })
    }

    /// Copies the files that are wanted; folders, which published models have for other tools, are left out.
    fn copy(&self, out: &Path, wanted: impl Fn(&str) -> bool) -> anyhow::Result<()> {
        for (path, name) in files(self.model)? {
            if wanted(&name) {
                copy(&path, &out.join(&name))?;
            }
        }
        Ok(())
    }

    /// What sentence-transformers reads beside a checkpoint.
    fn modules(&self, out: &Path, width: usize, positions: usize) -> anyhow::Result<()> {
        let pooling = match self.pooling {
            Some(pooling) => pooling,
            None => vectors::told(self.model)?.with_context(|| {
                format!(
                    "{}: nothing says how its vectors are pooled: say --pooling cls, mean or max, as `engraft encode` is asked",
                    self.model.display()
                )
            })?,
        };
        ensure!(
            matches!(pooling, Pooling::Cls | Pooling::Mean | Pooling::Max),
            "sentence-transformers pools by cls, mean or max, and this is {}: export it to onnx, or encode with engraft",
            pooling.name()
        );
        let is = |of: Pooling| pooling == of;
        let modules = json!([
            {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
        ]);
        let pool = json!({
            "word_embedding_dimension": width,
            "pooling_mode_cls_token": is(Pooling::Cls),
            "pooling_mode_mean_tokens": is(Pooling::Mean),
            "pooling_mode_max_tokens": is(Pooling::Max),
            "pooling_mode_mean_sqrt_len_tokens": false,
        });
        // Case is the tokenizer's own matter.
        let reads = json!({"max_seq_length": self.most(positions)?, "do_lower_case": false});
        fs::create_dir(out.join("1_Pooling")).with_context(|| out.display().to_string())?;
        for (name, value) in [
            ("modules.json", modules),
            ("1_Pooling/config.json", pool),
            ("sentence_bert_config.json", reads),
            // Vectors are compared as a bi-encoder's are.
            (
                "config_sentence_transformers.json",
                json!({"prompts": {}, "default_prompt_name": null, "similarity_fn_name": "cosine"}),
            ),
        ] {
            put(out, name, format!("{value:#}\n").as_bytes())?;
        }
        let card = self.model.join(card::FILE);
        if card.is_file() {
            let text = fs::read_to_string(&card).with_context(|| card.display().to_string())?;
            put(out, card::FILE, card::of_sentences(&text).as_bytes())?;
        }
        Ok(())
    }

    /// Most tokens of a text: as many as in the model's fine-tuning, else as the encoder has positions.
    fn most(&self, positions: usize) -> anyhow::Result<usize> {
        let has_task = self.model.join(task_file::FILE).is_file();
        Ok(if has_task { TaskFile::read(self.model)?.max_tokens } else { positions })
    }

    fn onnx(&self, out: &Path, layer: &Layer) -> anyhow::Result<()> {
        let class = match layer {
            Layer::Class(class) => Some(class.as_str()),
            Layer::None => None,
            Layer::Own => {
                ensure!(
                    self.pooling.is_some(),
                    "{}: {OWN_LAYER}: ask it with engraft predict, or say --pooling to export the encoder alone",
                    self.model.display()
                );
                None
            }
        };
        let pooling = match (class, self.pooling) {
            (None, None) => vectors::told(self.model)?,
            (_, pooling) => pooling,
        };
        ensure!(
            class.is_none() || self.pooling.is_none(),
            "{}: it has a last layer ({}), so its texts are not pooled: leave --pooling out",
            self.model.display(),
            class.unwrap_or_default()
        );
        let whole = checkpoint::load_whole(self.model, &Device::Cpu)?;
        ensure!(
            pooling != Some(Pooling::LearnedPooler) || whole.checkpoint.fresh.is_empty(),
            "{}: the checkpoint has no pooler: use cls, mean or max",
            self.model.display()
        );
        let path = out.join("model.onnx");
        let mut to = BufWriter::new(File::create(&path).with_context(|| path.display().to_string())?);
        onnx::write(&mut to, &whole, class, pooling).with_context(|| self.model.display().to_string())?;
        to.flush().and_then(|()| to.get_ref().sync_all()).with_context(|| path.display().to_string())
    }
}

fn is_weights(name: &str) -> bool {
    WEIGHTS.contains(&name) || name.ends_with(".safetensors") || name.ends_with(".bin")
}

/// The files of a folder with their names, sorted; no hidden ones.
fn files(folder: &Path) -> anyhow::Result<Vec<(PathBuf, String)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry.with_context(|| folder.display().to_string())?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_file() && !name.starts_with('.') {
            files.push((path, name));
        }
    }
    files.sort();
    Ok(files)
}

/// Copies a file; it is on the disk then.
fn copy(path: &Path, to: &Path) -> anyhow::Result<()> {
    let copied = fs::copy(path, to).and_then(|_| File::open(to)?.sync_all());
    copied.with_context(|| format!("{}: cannot be copied to {}", path.display(), to.display()))
}

fn put(out: &Path, name: &str, bytes: &[u8]) -> anyhow::Result<()> {
    base::whole::write_whole(&out.join(name), bytes).with_context(|| out.join(name).display().to_string())
}

/// What a folder consists of.
fn listed(out: &Path) -> anyhow::Result<Vec<Written>> {
    let written = |name: String| {
        let path = out.join(&name);
        let bytes = fs::metadata(&path).with_context(|| path.display().to_string())?.len();
        Ok(Written { name, bytes })
    };
    list(out)?.into_iter().map(written).collect()
}
