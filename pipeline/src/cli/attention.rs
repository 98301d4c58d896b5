//! What the tokens of a text attend to in a model, drawn for a terminal and as SVG files.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use base::visible::shown;
use serde_json::json;
use tasks::maps::draw::{self, Picture};

use super::exit::Exit;
use super::heat::shades;
use super::print::{self, Format};
use crate::bundle::attention::{Seen, seen};
use crate::bundle::known::Around;
use crate::bundle::lines::Input;

/// What is asked.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  engraft attention out/finetune-base-mortality-1/model --text 'Fever and a cough.'
  engraft attention out/finetune-kam-rte-1/model --text '...' --pair '...' --svg attention --out out
  engraft attention all-MiniLM-L6-v2 --text 'Fever and a cough.' --json

Shown is what the first token ([CLS]) takes in of each token, layer by layer, as the mean over the
heads. --svg also writes every layer and every head, token by token, and beside them the maps that
a model with knowledge-assisted attention attends by; `engraft inspect maps --text` draws maps by
words. Such a model generates them as in its fine-tuning, from --config, --data and --out.")]
pub(super) struct Asked {
    /// A fine-tuned model's folder, or any checkpoint's of BERT or RoBERTa
    #[arg(value_name = "MODEL")]
    pub(super) model: PathBuf,
    /// The text
    #[arg(long)]
    pub(super) text: String,
    /// The second text, for models of two
    #[arg(long, value_name = "TEXT")]
    pub(super) pair: Option<String>,
    /// A head mask; each head is multiplied by its value
    #[arg(long, value_name = "FILE")]
    pub(super) mask: Option<PathBuf>,
    /// Also writes cls.svg, layer-L.svg, layer-L-head-H.svg and map-NAME.svg to this folder
    #[arg(long, value_name = "DIR")]
    pub(super) svg: Option<PathBuf>,
}

/// Draws what the tokens attend to.
pub(super) fn attention(asked: &Asked, around: Around<'_>, format: Format) -> anyhow::Result<Exit> {
    let input = Input { line: 1, id: None, text: asked.text.clone(), pair: asked.pair.clone() };
    let found = seen(&asked.model, asked.mask.as_deref(), &input, around)?;
    if found.cuts.tokens > 0 {
        print::note(&format!(
            "warning: the text was too long for the model and lost {} tokens at its end",
            found.cuts.tokens
        ));
    }
    let layers: Vec<String> = (0..found.layers.len()).map(|layer| format!("layer {layer}")).collect();
    let first = found.layers.iter().flat_map(|layer| layer.mean().into_iter().take(layer.tokens));
    let first: Vec<f32> = first.collect();
    let title =
        format!("what {} attends to, mean over the heads", found.tokens.first().map_or("", |token| token));
    if let Some(folder) = &asked.svg {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("{}: cannot make the folder", folder.display()))?;
        let cls = Picture { title: &title, down: &layers, across: &found.tokens, values: &first, note: None };
        write(folder, "cls", &cls)?;
        drawn(folder, &found)?;
    }
    if format == Format::Json {
        let layers = found.layers.iter().map(|layer| {
            let head = |head: usize| layer.head(head).chunks(layer.tokens).map(<[f32]>::to_vec).collect();
            (0..layer.heads).map(head).collect::<Vec<Vec<Vec<f32>>>>()
        });
        let layers: Vec<_> = layers.collect();
        let maps = found.maps.iter().map(|(name, values)| {
            let rows: Vec<&[f32]> = values.chunks(found.tokens.len()).collect();
            ((*name).to_owned(), json!(rows))
        });
        let maps: serde_json::Map<_, _> = maps.collect();
        print::line(&json!({"tokens": found.tokens, "layers": layers, "maps": maps}).to_string())?;
        return Ok(Exit::Ok);
    }
    // The picture has colours of ours, so texts in it are made harmless here and not where it is printed.
    let tokens: Vec<String> = found.tokens.iter().map(|token| shown(token).into_owned()).collect();
    let across = Picture { title: &title, down: &layers, across: &tokens, values: &first, note: None };
    print::painted(&draw::text(&across, shades())?)?;
    Ok(Exit::Ok)
}

/// Every map, every layer, and every head of it.
fn drawn(folder: &Path, found: &Seen) -> anyhow::Result<()> {
    for (name, values) in &found.maps {
        let title = format!("map {name}, by which every layer attends");
        write(folder, &format!("map-{name}"), &Picture::square(&title, &found.tokens, values, None))?;
    }
    for (number, layer) in found.layers.iter().enumerate() {
        let title = format!("attention in layer {number}, mean over the heads");
        write(
            folder,
            &format!("layer-{number}"),
            &Picture::square(&title, &found.tokens, &layer.mean(), None),
        )?;
        for head in 0..layer.heads {
            let title = format!("attention in layer {number}, head {head}");
            let picture = Picture::square(&title, &found.tokens, layer.head(head), None);
            write(folder, &format!("layer-{number}-head-{head}"), &picture)?;
        }
    }
    Ok(())
}

fn write(folder: &Path, name: &str, picture: &Picture<'_>) -> anyhow::Result<()> {
    let file = folder.join(format!("{name}.svg"));
    base::whole::write_whole(&file, draw::svg(picture)?.as_bytes())
        .with_context(|| format!("{}: cannot be written", file.display()))
}
