//! Tensors in files: where each lies and what it is, and its numbers once they are asked for. Nothing is allocated but for what a file really
//! has.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use base::visible::shortened;
use candle_core::{DType, Device, Tensor};
use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use serde::de::{Error as _, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::place::{Place, bytes_of};
use super::{error, pickle, whole};
use crate::Error;
use crate::nn::Host;

/// Largest header, as the format has it.
const HEADER: u64 = 100_000_000;
/// The bytes in front of a header, which say how long it is.
const LENGTH: u64 = 8;
/// Most files that the tensors of one model are in.
const SHARDS: usize = 1024;

/// Tensors by name, in one file or several.
#[derive(Debug)]
pub(crate) struct Stored {
    files: Vec<PathBuf>,
    tensors: BTreeMap<String, Place>,
}

/// The header of a safetensors file, in which no name stands twice.
struct Header(BTreeMap<String, TensorInfo>);

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = Header;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("tensors by name")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Header, A::Error> {
                let mut tensors = BTreeMap::new();
                while let Some(name) = map.next_key::<String>()? {
                    if name == "__metadata__" {
                        map.next_value::<IgnoredAny>()?;
                    } else if tensors.insert(name.clone(), map.next_value()?).is_some() {
                        return Err(A::Error::custom(format!("tensor {name} stands there twice")));
                    }
                }
                Ok(Header(tensors))
            }
        }
        deserializer.deserialize_map(Names)
    }
}

/// The list of a model's files, as `transformers` writes it.
#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

impl Stored {
    /// The tensors of a safetensors file. Its header is compared with the file's size.
    pub(crate) fn open(path: &Path) -> Result<Self, Error> {
        Ok(Stored { files: vec![path.to_path_buf()], tensors: places(path, 0)? })
    }

    /// The tensors of the files that the list at `path` names, which lie beside it.
    pub(super) fn sharded(path: &Path) -> Result<Self, Error> {
        let wrong = |problem: String| error::shards(path, problem);
        let index = serde_json::from_slice(&whole::read_settings(path)?);
        let Index { weight_map } = index.map_err(|error| wrong(error.to_string()))?;
        let names: BTreeSet<&String> = weight_map.values().collect();
        if names.len() > SHARDS {
            return Err(wrong(format!("it names {} files, expected at most {SHARDS}", names.len())));
        }
        let (mut files, mut tensors) = (vec![], BTreeMap::new());
        for (number, name) in names.into_iter().enumerate() {
            let plain = Path::new(name).file_name().is_some_and(|plain| plain == name.as_str());
            if !plain {
                return Err(wrong(format!("{name} is no name of a file beside it")));
            }
            let file = path.with_file_name(name);
            for (tensor, place) in places(&file, number)? {
                if weight_map.get(&tensor) != Some(name) {
                    return Err(wrong(format!("{tensor} is in {name}, which it does not say")));
                }
                tensors.insert(tensor, place);
            }
            files.push(file);
        }
        match weight_map.iter().find(|(tensor, _)| !tensors.contains_key(*tensor)) {
            Some((tensor, file)) => Err(wrong(format!("{file} has no {tensor}"))),
            None => Ok(Stored { files, tensors }),
        }
    }

    /// The tensors of a file of PyTorch's.
    pub(super) fn pickled(path: &Path) -> Result<Self, Error> {
        Ok(Stored { files: vec![path.to_path_buf()], tensors: pickle::places(path)? })
    }

    /// All names, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// The sizes of a tensor's axes.
    pub(crate) fn shape(&self, name: &str) -> Option<&[usize]> {
        self.tensors.get(name).map(|place| place.shape.as_slice())
    }

    /// The numbers of a tensor, in f32.
    ///
    /// # Errors
    /// When there is no such tensor, its numbers are of a kind that no weights are, or one of them is not finite.
    pub(crate) fn read(&self, name: &str, device: &Device) -> Result<Tensor, Error> {
        let (path, place) = match self.tensors.get(name) {
            Some(place) => (&self.files[place.file], place),
            None => return Err(self.wrong(&self.files[0], name, "it is not there".to_owned())),
        };
        let dtype = match place.dtype {
            Dtype::F32 => DType::F32,
            Dtype::F16 => DType::F16,
            Dtype::BF16 => DType::BF16,
            Dtype::F64 => DType::F64,
            other => {
                let problem = format!("its numbers are {other:?}, expected F32, F16, BF16 or F64");
                return Err(self.wrong(path, name, problem));
            }
        };
        let bytes =
            bytes_of(path, place.start, place.shape.iter().product::<usize>() * dtype.size_in_bytes())?;
        let weights = |source| error::weights(path, source);
        let tensor = tensor(&bytes, dtype, place).map_err(weights)?;
        if let Some((at, value)) = not_finite(&tensor).map_err(weights)? {
            return Err(self.wrong(path, name, format!("{at:?} is {value}, expected finite numbers")));
        }
        tensor.to_device(device).map_err(weights)
    }

    fn wrong(&self, path: &Path, name: &str, problem: String) -> Error {
        error::tensor(path, name, problem)
    }
}

/// Reads all tensors of a safetensors file in name order, as [`Stored::read`] does.
pub(crate) fn read_tensors(path: &Path, device: &Device) -> Result<BTreeMap<String, Tensor>, Error> {
    let stored = Stored::open(path)?;
    stored.names().map(|name| Ok((name.to_owned(), stored.read(name, device)?))).collect()
}

/// Where the tensors of a safetensors file lie, which has the number `file`.
fn places(path: &Path, file: usize) -> Result<BTreeMap<String, Place>, Error> {
    let wrong = |problem: String| error::weights(path, candle_core::Error::Msg(shortened(&problem)));
    let (_, bytes) = whole::open(path)?;
    if bytes < LENGTH {
        return Err(wrong(format!("it has {bytes} bytes")));
    }
    let length = bytes_of(path, 0, 8)?;
    let length = length.iter().rev().fold(0, |sum, byte| (sum << 8) | u64::from(*byte));
    if length > HEADER.min(bytes - LENGTH) {
        return Err(wrong(format!("it says that its header has {length} bytes, of {bytes}")));
    }
    let header = bytes_of(path, LENGTH, usize::try_from(length).map_err(|e| wrong(e.to_string()))?)?;
    let Header(tensors) = serde_json::from_slice(&header).map_err(|e| wrong(e.to_string()))?;
    let mut tensors: Vec<(String, TensorInfo)> = tensors.into_iter().collect();
    tensors.sort_by_key(|(_, info)| info.data_offsets);
    // Whether they lie side by side, and are as long as their shapes say.
    let metadata = Metadata::new(None, tensors).map_err(|e| wrong(e.to_string()))?;
    let (body, said) = (bytes - LENGTH - length, metadata.data_len() as u64);
    if body != said {
        return Err(wrong(format!("its tensors have {said} bytes and the file {body} for them")));
    }
    let place = |(name, info): (String, &TensorInfo)| {
        let (start, shape) = (LENGTH + length + info.data_offsets.0 as u64, info.shape.clone());
        (name, Place { file, start, dtype: info.dtype, shape, order: None })
    };
    Ok(metadata.tensors().into_iter().map(place).collect())
}

/// Numbers as they lie in a file, in f32.
fn tensor(bytes: &[u8], dtype: DType, place: &Place) -> candle_core::Result<Tensor> {
    let stored =
        |shape: &[usize]| Tensor::from_raw_buffer(bytes, dtype, shape, &Device::Cpu)?.to_dtype(DType::F32);
    let Some(order) = &place.order else { return stored(&place.shape) };
    let shape: Vec<usize> = order.iter().map(|axis| place.shape[*axis]).collect();
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, axis)| back[*axis] = at);
    stored(&shape)?.permute(back)?.contiguous()
}

/// The place of the first number that is infinite or none, and the number.
fn not_finite(tensor: &Tensor) -> candle_core::Result<Option<(Vec<usize>, f32)>> {
    let host = Host::of(tensor)?;
    let values = host.get()?;
    // All in one go first: this is what compilers make vectors of.
    if values.iter().fold(true, |all, value| all & value.is_finite()) {
        return Ok(None);
    }
    let found = values.iter().position(|value| !value.is_finite());
    Ok(found.map(|at| {
        let mut rest = at;
        let mut index: Vec<usize> = tensor
            .dims()
            .iter()
            .rev()
            .map(|size| {
                let axis = rest % size;
                rest /= size;
                axis
            })
            .collect();
        index.reverse();
        (index, values[at])
    }))
}
