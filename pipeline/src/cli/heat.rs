//! The maps of one text, drawn for a terminal and as SVG files.

use std::io::{self, IsTerminal};
use std::path::Path;

use anyhow::Context as _;
use base::visible::shown;
use batch::Place;
use batch::maps::expand::{Map, expand};
use serde_json::json;
use tasks::maps::draw::{self, Picture, Shades};

use super::exit::Exit;
use super::print::{self, Format};
use crate::engine::layout::Layout;
use crate::stage::maps::{Mapping, empty};

/// What is drawn, and where.
pub(super) struct Drawing<'a> {
    /// What makes maps.
    pub(super) maps: &'a Mapping,
    /// Where the artifacts lie.
    pub(super) layout: &'a Layout,
    pub(super) text: &'a str,
    /// A folder for SVG files.
    pub(super) svg: Option<&'a Path>,
}

/// Refuses to draw a text for another artifact.
pub(super) fn only_maps(artifact: &str) -> anyhow::Result<()> {
    anyhow::ensure!(artifact == "maps", "--text goes with `engraft inspect maps`, not with {artifact:?}");
    Ok(())
}

/// Draws all maps of a text, auxiliary terms behind its words.
pub(super) fn draw(drawing: &Drawing<'_>, format: Format) -> anyhow::Result<Exit> {
    let tools = drawing
        .maps
        .tools(&|name| drawing.layout.artifact(name))
        .context("what maps are made with is not there; `engraft run maps` makes it")?;
    let (sample, words) = tools.sample(drawing.text)?;
    let row = sample.row();
    let place = Place { row: 0, start: 0, len: row.tokens() };
    let mut squares = Vec::new();
    for map in Map::ALL {
        let cells = expand(&[(place, row)], &[map], 1, row.tokens())?;
        let values = draw::by_word(&row, 0, &cells, row.tokens()).context("a map without all its words")?;
        squares.push((map, values));
    }
    // Words of the text are all in a phrase.
    let auxiliary = row.phrases.iter().filter(|phrase| **phrase == 0).count();
    let empty = |map| {
        let reason = empty::reason(tools.config(), map, &sample)?;
        Some(format!("{}: empty beside the diagonal: {reason}", Map::name(map)))
    };
    if let Some(folder) = drawing.svg {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("{}: cannot make the folder", folder.display()))?;
        for (map, values) in &squares {
            let note = empty(*map);
            let square = Picture::square(map.name(), &words, values, note.as_deref());
            let file = folder.join(format!("{}.svg", map.name()));
            base::whole::write_whole(&file, draw::svg(&square)?.as_bytes())
                .with_context(|| format!("{}: cannot be written", file.display()))?;
        }
    }
    // The picture has colours of ours, so texts in it are made harmless here and not where it is printed.
    let labels: Vec<String> = words.iter().map(|word| shown(word).into_owned()).collect();
    let pictures = || -> Result<Vec<String>, tasks::Error> {
        let shades = shades();
        let square = |(map, values): &(Map, Vec<f32>)| {
            draw::text(&Picture::square(map.name(), &labels, values, None), shades)
        };
        squares.iter().map(square).collect()
    };
    if format == Format::Json {
        let maps: serde_json::Map<_, _> =
            squares.iter().map(|(map, values)| (map.name().to_owned(), json!(values))).collect();
        print::line(&json!({"words": words, "auxiliary": auxiliary, "maps": maps}).to_string())?;
        return Ok(Exit::Ok);
    }
    for (picture, (map, _)) in pictures()?.iter().zip(&squares) {
        print::painted(picture)?;
        if let Some(reason) = empty(*map) {
            print::line(&reason)?;
        }
    }
    print::line(&format!("{} words, {auxiliary} of them auxiliary terms", words.len()))?;
    Ok(Exit::Ok)
}

/// How standard output shows shades.
#[expect(clippy::disallowed_methods, reason = "the command line is where the environment is read")]
pub(super) fn shades() -> Shades {
    let has_colour = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    if io::stdout().is_terminal() && has_colour { Shades::Ansi } else { Shades::Blocks }
}
