//! A corpus cut into parts at the borders of its files: as many stages, which any number of processes and machines may run.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use super::{Config, Corpus, Extent, Texts, found};
use crate::engine::context::Context;
use crate::engine::describe::Describe;
use crate::engine::stage::{Artifacts, Input, Stage};
use crate::stage::folder;
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

/// What becomes of a corpus.
#[derive(Debug)]
pub(crate) enum Cut {
    /// It is in one piece.
    Whole,
    /// These follow each other.
    Parts(Vec<Corpus>),
    /// It is to be cut, and cannot be looked at.
    Unseen(String),
}

impl Cut {
    /// The parts, if there are any.
    #[must_use]
    pub(crate) fn parts(&self) -> Option<&[Corpus]> {
        match self {
            Self::Parts(parts) => Some(parts),
            Self::Whole | Self::Unseen(_) => None,
        }
    }

    /// What stands for the stage `name`, which cannot be cut: other commands than those that make it go on.
    #[must_use]
    pub(crate) fn in_place_of(&self, name: &'static str) -> Option<Box<dyn Stage>> {
        match self {
            Self::Unseen(why) => Some(Box::new(Uncut { name, why: why.clone() })),
            Self::Whole | Self::Parts(_) => None,
        }
    }
}

impl Corpus {
    /// Cuts it, if it is to be cut: a function of the names and sizes of the files alone.
    ///
    /// # Errors
    /// When a setting is invalid.
    pub(crate) fn cut(&self) -> anyhow::Result<Cut> {
        let Some(Parts { bytes }) = self.config.parts else { return Ok(Cut::Whole) };
        let table = &self.table;
        anyhow::ensure!(bytes.0 > 0, "{table}.parts.bytes is 0, expected an amount such as \"256MiB\"");
        for place in self.places.iter().flatten() {
            if let Place::World { label, below } = place {
                anyhow::bail!(
                    "{label} lies in the artifact of stage world: {}; make the world first, in another output folder, and name {} there, or leave [{table}.parts] out",
                    self.when(),
                    below.display()
                );
            }
        }
        Ok(match self.cut_by(bytes.0 as u64) {
            Ok(parts) => Cut::Parts(parts),
            Err(error) => Cut::Unseen(format!("{error:#}")),
        })
    }

    fn cut_by(&self, bytes: u64) -> anyhow::Result<Vec<Self>> {
        let mut parts: Vec<Vec<Piece>> = Vec::new();
        let mut room = 0;
        for (number, (texts, places)) in self.config.texts.iter().zip(&self.places).enumerate() {
            for place in places {
                for piece in self.pieces(number, texts, place)? {
                    match parts.last_mut().filter(|_| piece.bytes <= room) {
                        Some(part) => {
                            room -= piece.bytes;
                            part.push(piece);
                        }
                        None => {
                            room = bytes.saturating_sub(piece.bytes);
                            parts.push(vec![piece]);
                        }
                    }
                }
            }
        }
        Ok(parts.into_iter().map(|pieces| self.part(pieces)).collect())
    }

    /// The part of these pieces. Nothing says which part it is: that of the same files is the same.
    fn part(&self, pieces: Vec<Piece>) -> Self {
        let mut part = Self {
            table: self.table.clone(),
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

    /// Why it must be there early.
    fn when(&self) -> String {
        format!(
            "[{}.parts] cuts a corpus by the sizes of its files, which must be there when stages are planned",
            self.table
        )
    }

    /// What a place consists of, with sizes.
    fn pieces(&self, texts: usize, format: &Texts, place: &Place) -> anyhow::Result<Vec<Piece>> {
        let when = || self.when();
        let Place::Outside { path, .. } = place else {
            let bytes = place.bytes().with_context(|| format!("{}: {}", place.label(), when()))?;
            return Ok(vec![Piece { texts, place: place.clone(), bytes }]);
        };
        let files = found(format, path, place.label()).with_context(when)?;
        let size = |path: &Path| -> anyhow::Result<u64> {
            let data = std::fs::metadata(path).with_context(|| format!("{}: {}", path.display(), when()))?;
            Ok(data.len())
        };
        if format.format.is_in_several_files() {
            let bytes = files.iter().map(|file| size(file)).sum::<anyhow::Result<u64>>()?;
            return Ok(vec![Piece { texts, place: place.clone(), bytes }]);
        }
        let piece = |file: &PathBuf| {
            let place = match folder::below(path, file).map(Path::to_str) {
                Some(Some(below)) => place.file(below),
                Some(None) => anyhow::bail!("{}: the name is no Unicode: rename the file", file.display()),
                None => place.clone(),
            };
            Ok(Piece { texts, bytes: size(file)?, place })
        };
        files.iter().map(piece).collect()
    }
}

/// A stage on a corpus that cannot be cut.
#[derive(Debug)]
struct Uncut {
    name: &'static str,
    why: String,
}

impl Stage for Uncut {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> u32 {
        1
    }

    fn describe(&self, to: &mut dyn Describe) {
        to.field("corpus.parts", self.why.clone().into());
    }

    fn inputs(&self) -> Vec<Input> {
        Vec::new()
    }

    fn foresee(&self, _: &Artifacts<'_>) -> anyhow::Result<()> {
        Err(anyhow::anyhow!(self.why.clone()))
    }

    fn run(&self, _: &mut Context) -> anyhow::Result<()> {
        Err(anyhow::anyhow!(self.why.clone()))
    }
}
