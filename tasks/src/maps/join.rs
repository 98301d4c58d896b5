//! Folders of maps of a corpus's parts, joined to the one that the whole corpus gives, byte for byte.

use std::path::{Path, PathBuf};

use batch::maps::sample::Sample;
use kg::split::Part;
use rayon::iter::{IntoParallelIterator, ParallelIterator};

use super::generators::Counts;
use super::index::Index;
use super::read::Maps;
use super::write::{Target, Writer};
use crate::Error;
use crate::shard::file::Size;
use crate::shard::write::WAVE;

/// The maps of a part.
#[derive(Debug, Clone)]
pub struct Stretch {
    /// Their folder.
    pub folder: PathBuf,
    /// Documents that they were made of, those without a sample included.
    pub documents: u64,
}

/// Where joined maps go, and how they are divided.
#[derive(Debug, Clone, Copy)]
pub struct Into<'a> {
    /// The folder, which exists.
    pub folder: &'a Path,
    /// Where a file ends.
    pub size: Size,
    /// Documents behind a row group.
    pub items_per_group: usize,
}

/// Joins the maps of parts, which follow each other in this order. The index is returned, not written. `watch` is told of every so many documents,
/// and ends the work by an error.
///
/// # Errors
/// When a folder has no maps, they are damaged or were made in different ways, the disk refuses, or `watch` fails.
pub fn join(
    parts: &[Stretch],
    into: Into<'_>,
    watch: &mut dyn FnMut(u64) -> Result<(), Error>,
) -> Result<Index, Error> {
    let indices: Vec<Index> = parts.iter().map(|part| Index::read(&part.folder)).collect::<Result<_, _>>()?;
    let Some(first) = indices.first() else {
        return Err(Error::unfit("no maps are to be joined"));
    };
    for (part, index) in parts.iter().zip(&indices) {
        if (&index.options, &index.tokenizer) != (&first.options, &first.tokenizer) {
            let problem = format!("made in another way than {}", parts[0].folder.display());
            return Err(Error::at(&part.folder, problem, "build the maps again (`engraft run maps`)"));
        }
    }
    let target = Target {
        folder: into.folder,
        part: Part::Train,
        tokenizer: &first.tokenizer.blake3,
        size: into.size,
        items_per_group: into.items_per_group,
    };
    let numbered = |first: u32, documents: &[Vec<Sample>]| {
        let numbered = (first..).zip(documents).flat_map(|(number, samples)| {
            samples.iter().map(move |sample| Sample { document: number, ..sample.clone() })
        });
        Ok((numbered.collect(), Counts::default()))
    };
    let mut writer = Writer::new(target, &numbered)?;
    let mut counts = Counts::default();
    for (part, index) in parts.iter().zip(&indices) {
        documents(part, index, &mut |samples| writer.push(samples), watch)?;
        index.texts.values().for_each(|more| counts.add(more));
    }
    let (written, _) = writer.finish()?;
    Ok(Index::new(first.options.clone(), first.tokenizer.clone(), vec![(written, counts)]))
}

/// Hands on the samples of each document of a part, none for those that have none.
fn documents(
    part: &Stretch,
    index: &Index,
    take: &mut dyn FnMut(Vec<Sample>) -> Result<(), Error>,
    watch: &mut dyn FnMut(u64) -> Result<(), Error>,
) -> Result<(), Error> {
    let (mut samples, mut met, mut told) = (Vec::new(), 0, 0);
    for file in index.files() {
        let maps = Maps::open(&part.folder, file)?;
        for first in (0..maps.groups()).step_by(WAVE) {
            let groups: Vec<Vec<Sample>> = (first..maps.groups().min(first + WAVE))
                .into_par_iter()
                .map(|group| Ok(maps.group(group)?.rows().map(|row| row.to_sample()).collect()))
                .collect::<Result<_, Error>>()?;
            for sample in groups.into_iter().flatten() {
                let document = u64::from(sample.document);
                if document < met || document >= part.documents {
                    let problem = format!("document {document} behind {met} of {}", part.documents);
                    return Err(Error::at(
                        &part.folder.join(&file.path),
                        problem,
                        "build the maps again (`engraft run maps`)",
                    ));
                }
                while met < document {
                    take(std::mem::take(&mut samples))?;
                    met += 1;
                }
                samples.push(sample);
            }
            watch(met - told)?;
            told = met;
        }
    }
    while met < part.documents {
        take(std::mem::take(&mut samples))?;
        met += 1;
    }
    watch(met - told)
}
