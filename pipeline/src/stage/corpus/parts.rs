//! A corpus cut into parts at the borders of its files: as many stages, which any number of processes and machines may run.

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::{Config, Corpus, Extent, Texts, found};
use crate::stage::location::Place;
use crate::stage::memory::Memory;

/// How a corpus is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Parts {
    /// Files are taken in order as long as they have no more bytes than this together; a larger file is a part by itself. Files are counted as they
    /// lie there, packed or not.
    pub bytes: Memory,
}

/// The stage that makes of a part, by its number from 1, what the stage `of` makes of the whole.
#[must_use]
pub(crate) fn part_name(of: &str, number: usize) -> String {
    format!("{of}.part-{number:04}")
}

/// What is not cut: a file, or a folder of a format that keeps entities in files of their own.
struct Piece {
    texts: usize,
    place: Place,
    bytes: u64,
}

impl Corpus {
    /// Its parts, if it is to be cut: a function of the names and sizes of the files alone.
    ///
    /// # Errors
    /// When a file cannot be looked at.
    pub(crate) fn parts(&self) -> anyhow::Result<Option<Vec<Self>>> {
        let Some(Parts { bytes }) = self.config.parts else { return Ok(None) };
        anyhow::ensure!(bytes.0 > 0, "corpus.parts.bytes is 0, expected an amount such as \"256MiB\"");
        let mut parts: Vec<Vec<Piece>> = Vec::new();
        let mut room = 0;
        for (number, (texts, places)) in self.config.texts.iter().zip(&self.places).enumerate() {
            for place in places {
                for piece in pieces(number, texts, place)? {
                    match parts.last_mut().filter(|_| piece.bytes <= room) {
                        Some(part) => {
                            room -= piece.bytes;
                            part.push(piece);
                        }
                        None => {
                            room = (bytes.0 as u64).saturating_sub(piece.bytes);
                            parts.push(vec![piece]);
                        }
                    }
                }
            }
        }
        Ok(Some(parts.into_iter().map(|pieces| self.part(pieces)).collect()))
    }

    /// The part of these pieces. Nothing says which part it is: that of the same files is the same.
    fn part(&self, pieces: Vec<Piece>) -> Self {
        let mut part = Self {
            key: self.key.clone(),
            config: Config { texts: Vec::new(), parts: None },
            places: Vec::new(),
            extent: Extent::Part,
        };
        let mut last = None;
        for Piece { texts, place, .. } in pieces {
            if last != Some(texts) {
                part.config.texts.push(self.config.texts[texts].clone());
                part.places.push(Vec::new());
                last = Some(texts);
            }
            if let Some(places) = part.places.last_mut() {
                places.push(place);
            }
        }
        part
    }
}

/// What a place consists of, with sizes.
fn pieces(texts: usize, format: &Texts, place: &Place) -> anyhow::Result<Vec<Piece>> {
    let first =
        "[corpus.parts] cuts a corpus by the sizes of its files, which must be there when stages are planned";
    let path = match place {
        Place::Outside { path, .. } => path,
        Place::World { below, .. } => anyhow::bail!(
            "{} lies in the artifact of stage world: {first}; make the world first, in another output folder, and name {} there, or leave [corpus.parts] out",
            place.label(),
            below.display()
        ),
        Place::Remote { .. } => {
            let bytes = place.bytes().with_context(|| format!("{}: {first}", place.label()))?;
            return Ok(vec![Piece { texts, place: place.clone(), bytes }]);
        }
    };
    let files = found(format, path, place.label()).with_context(|| first)?;
    let size = |path: &std::path::Path| -> anyhow::Result<u64> {
        let data = std::fs::metadata(path).with_context(|| format!("{}: {first}", path.display()))?;
        Ok(data.len())
    };
    if format.format.is_in_several_files() {
        let bytes = files.iter().map(|file| size(file)).sum::<anyhow::Result<u64>>()?;
        return Ok(vec![Piece { texts, place: place.clone(), bytes }]);
    }
    let piece = |file: &std::path::PathBuf| {
        let below = file.strip_prefix(path).ok().filter(|below| !below.as_os_str().is_empty());
        let place = below.map_or_else(|| place.clone(), |below| place.file(&below.to_string_lossy()));
        Ok(Piece { texts, bytes: size(file)?, place })
    };
    files.iter().map(piece).collect()
}
