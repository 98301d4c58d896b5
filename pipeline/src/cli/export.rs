//! `export`: a model's folder as other tools take it. Writes nothing itself.

use std::path::PathBuf;

use clap::ValueEnum;
use model::encoder::pool::Pooling;
use serde_json::json;

use super::exit::Exit;
use super::measure;
use super::predict::pooling;
use super::print::{self, Format};
use crate::bundle::export::{Export, Exported, Form};

/// What is asked.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  engraft export out/finetune-base-mortality-1/model --to onnx --into mortality-onnx
  engraft export out/retrain/model --to sentence-transformers --pooling mean --into encoder
  engraft export out/retrain-lora/model --to peft --into adapters
  engraft export out/finetune-base-mortality-1/model --to hub --into upload
  engraft export out/recipe-all-1/model --task mortality --to transformers --into mortality

  transformers           what from_pretrained reads, without files of engraft's own
  sentence-transformers  the same, with how texts are pooled
  onnx                   model.onnx (last layer included, or pooled), sizes and vocabulary
  peft                   adapters alone (retrain.lora), to be added to the encoder that they began with
  hub                    everything, with model card and .gitattributes: hf upload REPOSITORY upload

The answers are those of `engraft predict` and `engraft encode`. Models whose attention has labels,
maps or gates are computed by engraft alone.")]
pub(super) struct Asked {
    /// A model's folder: of a fine-tuning, of a training, or any checkpoint of BERT or RoBERTa
    #[arg(value_name = "MODEL")]
    pub(super) model: PathBuf,
    /// What it becomes
    #[arg(long, value_name = "FORM")]
    pub(super) to: To,
    /// The folder to write, which must not be there yet
    #[arg(long, value_name = "DIR")]
    pub(super) into: PathBuf,
    /// Of a model of several tasks, the one whose last layer goes along (with transformers and onnx)
    #[arg(long, value_name = "NAME")]
    pub(super) task: Option<String>,
    /// How token states are pooled into a vector: cls, mean, max or, with onnx, learned_pooler. Defaults to that of a fine-tuned bi-encoder, or, with sentence-transformers, of any fine-tuned model
    #[arg(long, value_name = "POOLING", value_parser = pooling)]
    pub(super) pooling: Option<Pooling>,
}

/// The forms by name.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum To {
    Transformers,
    SentenceTransformers,
    Onnx,
    Peft,
    Hub,
}

/// Exports a model.
pub(super) fn export(asked: &Asked, format: Format) -> anyhow::Result<Exit> {
    let form = match asked.to {
        To::Transformers => Form::Transformers,
        To::SentenceTransformers => Form::SentenceTransformers,
        To::Onnx => Form::Onnx,
        To::Peft => Form::Peft,
        To::Hub => Form::Hub,
    };
    let takes_pooling = matches!(form, Form::Onnx | Form::SentenceTransformers);
    anyhow::ensure!(
        asked.pooling.is_none() || takes_pooling,
        "--pooling goes with --to onnx and --to sentence-transformers"
    );
    let task = asked.task.as_deref();
    let export = Export { model: &asked.model, form, task, pooling: asked.pooling, into: &asked.into };
    let Exported { files, note } = export.write()?;
    if let Some(note) = note {
        print::note(&format!("note: {note}"));
    }
    print::result(
        format,
        || {
            let line = |file: &crate::bundle::export::Written| {
                format!("{}  {}", asked.into.join(&file.name).display(), measure::bytes(file.bytes))
            };
            files.iter().map(line).collect()
        },
        || {
            let files = files.iter().map(|file| json!({"path": file.name, "bytes": file.bytes}));
            vec![json!({"into": asked.into.display().to_string(), "files": files.collect::<Vec<_>>()})]
        },
    )?;
    Ok(Exit::Ok)
}
