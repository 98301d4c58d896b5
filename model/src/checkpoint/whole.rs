//! Files that appear whole or not at all, and tensors in them; files of others are read within bounds.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::Read;
use std::path::Path;

use base::whole::write_whole;
use candle_core::{Device, Tensor};

use super::error;
use crate::Error;

/// Largest file of settings that is read: the longest list of classes or tensors is far from it.
const LARGEST: u64 = 1 << 26;

/// Writes under a temporary name in the same folder, which is made if missing, syncs and renames.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let attempt = || std::fs::create_dir_all(dir).and_then(|()| write_whole(path, bytes));
    attempt().map_err(Error::file(path))
}

/// Writes a JSON value for people to read.
pub(crate) fn write_json(path: &Path, value: &serde_json::Value) -> Result<(), Error> {
    write(path, format!("{value:#}\n").as_bytes())
}

/// Writes named tensors as one safetensors file and returns its BLAKE3 digest.
pub(crate) fn write_tensors<'a>(
    path: &Path,
    tensors: impl Iterator<Item = (&'a str, &'a Tensor)>,
) -> Result<String, Error> {
    let wrong = |source: candle_core::Error| error::weights(path, source);
    // The library's own view of a tensor panics where a copy to main memory fails, so the copy is made here.
    let on_cpu: Vec<(&str, Tensor)> = tensors
        .map(|(name, tensor)| Ok((name, tensor.to_device(&Device::Cpu)?.contiguous()?)))
        .collect::<candle_core::Result<_>>()
        .map_err(wrong)?;
    // `transformers` refuses files that do not say so.
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    let views = on_cpu.iter().map(|(name, tensor)| (*name, tensor));
    let bytes = safetensors::serialize(views, Some(metadata)).map_err(|e| wrong(e.into()))?;
    write(path, &bytes)?;
    Ok(blake3::hash(&bytes).to_hex().to_string())
}

/// The tensors in the contents of the safetensors file `path`, in name order.
pub(crate) fn tensors_in(
    path: &Path,
    bytes: &[u8],
    device: &Device,
) -> Result<BTreeMap<String, Tensor>, Error> {
    let tensors = candle_core::safetensors::load_buffer(bytes, device)
        .map_err(|source| error::weights(path, source))?;
    Ok(tensors.into_iter().collect())
}

/// Opens a file that has an end, and says how many bytes it has: no pipe, which might never say anything, and no device.
pub(super) fn open(path: &Path) -> Result<(File, u64), Error> {
    let wrong = Error::file(path);
    let about = std::fs::metadata(path).map_err(wrong)?;
    if !about.is_file() {
        return Err(error::no_file(path));
    }
    Ok((File::open(path).map_err(wrong)?, about.len()))
}

/// Reads a whole file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(Error::file(path))
}

/// Reads a file of settings, which a model's folder from anywhere may have: one with an end, and not a large one.
///
/// # Errors
/// When it is not there, or none of these.
pub fn read_settings(path: &Path) -> Result<Vec<u8>, Error> {
    let (file, bytes) = open(path)?;
    if bytes > LARGEST {
        return Err(error::large(path, bytes));
    }
    let mut found = vec![];
    let read = file.take(LARGEST).read_to_end(&mut found);
    read.map_err(Error::file(path))?;
    Ok(found)
}
