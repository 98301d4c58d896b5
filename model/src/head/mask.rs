//! Head masks: for each head of each layer, how much of it is kept; in memory and as a JSON file.

use std::path::Path;

use candle_core::{Device, Tensor};
use serde::{Deserialize, Serialize};

use base::read::ReadError;

use crate::Error;
use crate::checkpoint::whole;
use crate::nn::single;

/// What a mask's file calls itself.
pub const FORMAT: &str = "engraft-head-mask";
/// The version of a mask's file.
pub const VERSION: u32 = 1;

/// `layers x heads` numbers in [0, 1]: 1 is a head that is kept (frozen while the others are retrained), 0 a vacant one,
/// which retraining may overwrite, and what lies between a head that is partly vacant (KIMERA's soft mask).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "File", into = "File")]
pub struct Mask {
    heads: usize,
    /// Layer after layer.
    keep: Vec<f32>,
}

/// A mask as its file has it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    format: String,
    version: u32,
    layers: usize,
    heads: usize,
    /// One row per layer. In f64, which every f32 is exactly.
    keep: Vec<Vec<f64>>,
}

fn no_mask(path: &Path, source: &serde_json::Error) -> Error {
    ReadError::new(path, source.to_string(), "a head mask as JSON", "").into()
}

fn ragged(layers: usize, heads: usize, found: &str) -> Error {
    Error::Misfit(format!(
        "the head mask says {layers} layers of {heads} heads, but {found}; every layer needs a row of {heads} numbers"
    ))
}

impl Mask {
    /// The mask that keeps every head.
    #[must_use]
    pub fn all_kept([layers, heads]: [usize; 2]) -> Self {
        Mask { heads, keep: vec![1.0; layers * heads] }
    }

    /// A mask of the given numbers, layer after layer.
    ///
    /// # Errors
    /// When there are not `layers * heads` of them, or one is not in [0, 1].
    pub fn new([layers, heads]: [usize; 2], keep: Vec<f32>) -> Result<Self, Error> {
        if keep.len() != layers * heads || keep.is_empty() {
            let found = format!("{} numbers", keep.len());
            return Err(ragged(layers, heads, &found));
        }
        match keep.iter().position(|value| !(0.0..=1.0).contains(value)) {
            Some(at) => {
                let (layer, head, value) = (at / heads, at % heads, f64::from(keep[at]));
                Err(Error::Misfit(format!(
                    "layer {layer}, head {head} of the head mask (from 0) is {value}; expected 0 (vacant) to 1 (kept)"
                )))
            }
            None => Ok(Mask { heads, keep }),
        }
    }

    /// Layers and heads per layer.
    #[must_use]
    pub fn shape(&self) -> [usize; 2] {
        [self.keep.len() / self.heads, self.heads]
    }

    /// Whether it belongs to an encoder with so many layers and heads.
    ///
    /// # Errors
    /// Names both shapes when it does not.
    pub fn check(&self, encoder: [usize; 2]) -> Result<(), Error> {
        let mask = self.shape();
        if mask == encoder {
            Ok(())
        } else {
            Err(Error::Misfit(format!(
                "the head mask is for {} layers of {} heads, the encoder has {} layers of {}; take the mask that was searched on this encoder, or the encoder that it was searched on",
                mask[0], mask[1], encoder[0], encoder[1]
            )))
        }
    }

    /// All numbers, layer after layer.
    #[must_use]
    pub fn values(&self) -> &[f32] {
        &self.keep
    }

    /// The numbers of one layer's heads; none for a layer that is not there.
    #[must_use]
    pub fn layer(&self, l: usize) -> &[f32] {
        self.keep.chunks_exact(self.heads).nth(l).unwrap_or(&[])
    }

    /// Whether anything in it may be retrained.
    #[must_use]
    pub fn has_vacant(&self) -> bool {
        self.keep.iter().any(|keep| *keep < 1.0)
    }

    /// How many heads of each layer are vacant, wholly or partly.
    #[must_use]
    pub fn vacant_per_layer(&self) -> Vec<usize> {
        self.keep.chunks_exact(self.heads).map(|row| row.iter().filter(|keep| **keep < 1.0).count()).collect()
    }

    /// The share of each layer's heads that is vacant, wholly or partly.
    #[must_use]
    pub fn vacant_share_per_layer(&self) -> Vec<f64> {
        self.vacant_per_layer().iter().map(|count| *count as f64 / self.heads as f64).collect()
    }

    /// How many heads are vacant in all, wholly or partly.
    #[must_use]
    pub fn vacant(&self) -> usize {
        self.vacant_per_layer().iter().sum()
    }

    /// The hard part: 1 where a head is kept wholly, 0 everywhere else.
    #[must_use]
    pub fn hard(&self) -> Self {
        self.map(|keep| if keep < 1.0 { 0.0 } else { 1.0 })
    }

    /// The forward gates of KIMERA's b+f: `1 - hard`, so that only the heads that are retrained take part. With the hard part
    /// itself as gates, no vacant head would ever get a gradient.
    #[must_use]
    pub fn forward_gates(&self) -> Self {
        self.hard().map(|keep| 1.0 - keep)
    }

    /// The numbers as gates `[l, h]` of the encoder's heads: a kept head is on, a vacant one off.
    ///
    /// # Errors
    /// When the device refuses the memory.
    pub fn gates(&self, device: &Device) -> candle_core::Result<Tensor> {
        let [layers, heads] = self.shape();
        Tensor::from_slice(&self.keep, (layers, heads), device)
    }

    /// BLAKE3 of shape and numbers, in hex.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(FORMAT.as_bytes());
        self.shape().iter().for_each(|size| {
            hasher.update(&(*size as u64).to_le_bytes());
        });
        self.keep.iter().for_each(|keep| {
            hasher.update(&keep.to_le_bytes());
        });
        hasher.finalize().to_hex().to_string()
    }

    /// Reads a mask's file.
    ///
    /// # Errors
    /// Names file, line and column of what is no mask, or the first number that is none.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let bytes = whole::read(path)?;
        let json = |source: serde_json::Error| no_mask(path, &source);
        serde_json::from_slice(&bytes).map_err(json)
    }

    /// Writes the mask as a file, whole or not at all.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let json = |source: serde_json::Error| no_mask(path, &source);
        let text = serde_json::to_string_pretty(self).map_err(json)?;
        whole::write(path, format!("{text}\n").as_bytes())
    }

    fn map(&self, f: impl Fn(f32) -> f32) -> Self {
        Mask { heads: self.heads, keep: self.keep.iter().map(|keep| f(*keep)).collect() }
    }
}

impl From<Mask> for File {
    fn from(mask: Mask) -> Self {
        let [layers, heads] = mask.shape();
        let row = |row: &[f32]| row.iter().map(|keep| f64::from(*keep)).collect();
        let keep = mask.keep.chunks_exact(heads).map(row).collect();
        File { format: FORMAT.to_owned(), version: VERSION, layers, heads, keep }
    }
}

impl TryFrom<File> for Mask {
    type Error = Error;

    fn try_from(file: File) -> Result<Self, Error> {
        let File { format, version, layers, heads, keep } = file;
        if format != FORMAT || version != VERSION {
            return Err(Error::Misfit(format!(
                "this is {format} of version {version}, expected {FORMAT} of version {VERSION}; write the mask again with this engraft"
            )));
        }
        let wrong = keep.iter().position(|row| row.len() != heads);
        if let Some(l) = wrong {
            let found = format!("layer {l} (from 0) has {} numbers", keep[l].len());
            return Err(ragged(layers, heads, &found));
        }
        if keep.len() != layers {
            return Err(ragged(layers, heads, &format!("{} rows", keep.len())));
        }
        Mask::new([layers, heads], keep.into_iter().flatten().map(single).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask() -> Mask {
        Mask::new([2, 3], vec![1.0, 0.0, 0.65, 1.0, 1.0, 1.0]).unwrap()
    }

    #[test]
    fn parts_counts_and_gates_are_what_they_say() {
        let mask = mask();
        assert_eq!((mask.shape(), mask.layer(0), mask.layer(2)), ([2, 3], &[1.0, 0.0, 0.65][..], &[][..]));
        assert_eq!((mask.vacant(), mask.vacant_per_layer()), (2, vec![2, 0]));
        assert_eq!(mask.vacant_share_per_layer(), [2.0 / 3.0, 0.0]);
        assert_eq!(mask.hard().values(), [1.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
        assert_eq!(mask.forward_gates().values(), [0.0, 1.0, 1.0, 0.0, 0.0, 0.0]);
        assert!(mask.has_vacant() && !Mask::all_kept([2, 3]).has_vacant());
        assert_eq!(mask.gates(&Device::Cpu).unwrap().to_vec2::<f32>().unwrap()[0], [1.0, 0.0, 0.65]);
    }

    #[test]
    fn a_file_gives_the_same_bits_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mask.json");
        let odd = Mask::new([1, 3], vec![0.1, f32::MIN_POSITIVE, 1.0 - f32::EPSILON / 2.0]).unwrap();
        for mask in [mask(), odd] {
            mask.write(&path).unwrap();
            let read = Mask::read(&path).unwrap();
            assert_eq!((read.digest(), &read), (mask.digest(), &mask));
        }
        assert_ne!(mask().digest(), mask().hard().digest());
        // As many numbers in another shape are another mask.
        assert_ne!(Mask::all_kept([2, 3]).digest(), Mask::all_kept([3, 2]).digest());
    }

    #[test]
    fn what_is_no_mask_is_refused_with_its_place() {
        let text = mask().check([12, 12]).unwrap_err().to_string();
        assert!(text.contains("for 2 layers of 3 heads, the encoder has 12 layers of 12"), "{text}");
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("mask.json");
        let refused = |json: &str| {
            whole::write(&path, json.as_bytes()).unwrap();
            Mask::read(&path).unwrap_err().to_string()
        };
        let file = |rest: &str| format!("{{\"format\": \"{FORMAT}\", \"version\": {rest}}}");
        let cases = [
            (file("2, \"layers\": 1, \"heads\": 1, \"keep\": [[1]]"), "engraft-head-mask of version 2"),
            (
                file("1, \"layers\": 1, \"heads\": 2, \"keep\": [[1, 1.5]]"),
                "layer 0, head 1 of the head mask (from 0) is 1.5",
            ),
            (
                file("1, \"layers\": 2, \"heads\": 2, \"keep\": [[1, 1], [0]]"),
                "layer 1 (from 0) has 1 numbers",
            ),
            (file("1, \"layers\": 2, \"heads\": 2, \"keep\": [[1, 1]]"), "but 1 rows"),
            (file("1, \"layers\": 0, \"heads\": 0, \"keep\": []"), "but 0 numbers"),
            (file("1, \"layers\": 1, \"heads\": 1, \"keep\": [[1]], \"gate\": 1"), "unknown field `gate`"),
            ("[1".to_owned(), "line 1 column 2"),
        ];
        for (json, expected) in cases {
            let text = refused(&json);
            assert!(text.contains("mask.json") && text.contains(expected), "{text}");
        }
        assert!(Mask::new([1, 2], vec![0.0, f32::NAN]).is_err());
        assert!(Mask::read(&dir.path().join("none.json")).unwrap_err().to_string().contains("none.json"));
    }
}
