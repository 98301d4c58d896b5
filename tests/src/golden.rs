//! Golden numbers computed with PyTorch, their tolerances, and which of them have been compared.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use batch::task::Task;
use batch::{Batch, Targets};
use candle_core::{DType, Device, Tensor};
use model::device::{ActivationDtype, Recompute, Wanted};
use model::encoder::config::Config;
use model::encoder::tokens::Tokens;
use model::optim::adamw::{AdamWConfig, Missing};
use model::optim::head_mask::SoftOn;
use model::optim::schedule::{Decay, Schedule};
use model::train;
use model::train::heads::{Heads, Mode, Shared};

/// The folder of golden numbers: `ENGRAFT_GOLDENS`, or `tests/fixtures/golden`.
#[expect(clippy::disallowed_methods, reason = "the folder of golden numbers is the tests' one setting")]
#[must_use]
pub fn folder() -> PathBuf {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/golden");
    std::env::var_os("ENGRAFT_GOLDENS").map_or(default, PathBuf::from)
}

/// The unpacked folder of all-MiniLM-L6-v2, which `ENGRAFT_MINILM` names; without it a test that needs it says that it skips.
#[expect(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "as the folder; a test that does nothing says so"
)]
#[must_use]
pub fn minilm() -> Option<PathBuf> {
    let found = std::env::var_os("ENGRAFT_MINILM").map(PathBuf::from);
    if found.is_none() {
        eprintln!(
            "skipped: set ENGRAFT_MINILM to the unpacked folder of all-MiniLM-L6-v2 to compare with it"
        );
    }
    found
}

/// The device of trainers and predictors: what `ENGRAFT_GOLDENS_DEVICE` names, or the CPU.
///
/// # Errors
/// When it cannot be had.
#[expect(clippy::disallowed_methods, reason = "as the folder")]
pub fn device() -> Result<Device> {
    let name = std::env::var("ENGRAFT_GOLDENS_DEVICE").unwrap_or_else(|_| "cpu".to_owned());
    Ok(name.parse::<Wanted>()?.device()?)
}

/// A training without clipping, at a rate that is the same in all its steps, in f32.
#[must_use]
pub fn training(rate: f64) -> train::Config {
    let (peak, decay) = (rate, Decay::Linear);
    train::Config {
        seed: 0,
        schedule: Schedule { peak, warmup_steps: 0, total_steps: 1 << 40, decay, reference: None },
        adamw: AdamWConfig::default(),
        missing: Missing::Zero,
        optimiser: None,
        // A norm that no gradient has.
        clip_norm: f64::MAX,
        frozen: vec![],
        heads: Heads { mode: Mode::None, shared: Shared::Train, soft_on: SoftOn::Step },
        lora: None,
        accumulate: 1,
        patience: None,
        covered_by: 1,
        recompute: Recompute::None,
        dtype: ActivationDtype::F32,
    }
}

/// The JSON file `NAME.json` of the folder.
///
/// # Errors
/// When it cannot be read.
pub fn json(name: &str) -> Result<serde_json::Value> {
    let path = folder().join(format!("{name}.json"));
    let bytes = std::fs::read(&path).with_context(|| path.display().to_string())?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// `NAME.safetensors`, or the parts `NAME.*.safetensors` in name order: no file of the repository may be larger than 2 MiB.
fn parts(name: &str) -> Result<Vec<PathBuf>> {
    let whole = folder().join(format!("{name}.safetensors"));
    if whole.exists() {
        return Ok(vec![whole]);
    }
    let entries = std::fs::read_dir(folder())?.collect::<std::io::Result<Vec<_>>>()?;
    let mut found: Vec<PathBuf> = entries.iter().map(std::fs::DirEntry::path).collect();
    let file =
        |path: &PathBuf| path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    found.retain(|path| file(path).starts_with(&format!("{name}.")) && file(path).ends_with(".safetensors"));
    found.sort();
    ensure!(!found.is_empty(), "{} is not there, nor parts of it", whole.display());
    Ok(found)
}

/// The tokens of padded batches.
///
/// # Errors
/// When one does not fit the encoder.
pub fn tokens(batches: &[&Batch], config: &Config) -> Result<Tokens> {
    let ragged = batches.iter().map(|batch| Ok((batch.task.name(), batch.ragged()?.0)));
    let ragged = ragged.collect::<Result<Vec<_>>>()?;
    let rows: Vec<_> = ragged.iter().map(|(task, rows)| (*task, rows)).collect();
    Ok(Tokens::new(&rows, config, &Device::Cpu)?)
}

/// One golden file with its tolerances, and which of its tensors have been compared.
#[derive(Debug)]
pub struct Golden {
    file: String,
    /// All its tensors.
    pub tensors: BTreeMap<String, Tensor>,
    tolerances: serde_json::Value,
    compared: BTreeSet<String>,
}

impl Golden {
    /// Opens `NAME.safetensors`, or all files `NAME.*.safetensors` that it was split into.
    ///
    /// # Errors
    /// When there is none, or nothing is said of its tolerances.
    pub fn open(name: &str) -> Result<Self> {
        let file = format!("{name}.safetensors");
        let mut tensors = BTreeMap::new();
        for path in parts(name)? {
            let part = candle_core::safetensors::load(&path, &Device::Cpu);
            tensors.extend(part.with_context(|| path.display().to_string())?);
        }
        let all = json("tolerances")?;
        let tolerances =
            all.get(&file).with_context(|| format!("tolerances.json says nothing of {file}"))?.clone();
        Ok(Golden { file, tensors, tolerances, compared: BTreeSet::new() })
    }

    /// One tensor.
    ///
    /// # Errors
    /// When there is none of this name.
    pub fn get(&self, name: &str) -> Result<&Tensor> {
        self.tensors.get(name).with_context(|| format!("{} has no {name}", self.file))
    }

    /// The integers of one tensor.
    ///
    /// # Errors
    /// When there is none of this name, or a number does not fit.
    pub fn integers<T: TryFrom<i64>>(&self, name: &str) -> Result<Vec<T>> {
        let values = self.get(name)?.flatten_all()?.to_vec1::<i64>()?;
        values.into_iter().map(|v| T::try_from(v).ok().with_context(|| format!("{name}: {v}"))).collect()
    }

    /// How far a number of tensor `name` may be off.
    ///
    /// # Errors
    /// When the folder says nothing of it.
    pub fn tolerance(&self, name: &str) -> Result<f64> {
        let tolerance = self.tolerances.pointer(&format!("/{name}/atol")).and_then(serde_json::Value::as_f64);
        tolerance.with_context(|| format!("{}: no tolerance for {name}", self.file))
    }

    /// How far the reference's own f32 numbers of tensor `name` were off its f64 ones.
    ///
    /// # Errors
    /// When the folder says nothing of it.
    pub fn rounding(&self, name: &str) -> Result<f64> {
        let rounding = self.tolerances.pointer(&format!("/{name}/f32_minus_f64_max_abs"));
        let rounding = rounding.and_then(serde_json::Value::as_f64);
        rounding.with_context(|| format!("{}: nothing is said of the rounding of {name}", self.file))
    }

    /// Takes note that the golden tensor `name` was compared by other means than [`Golden::compare`].
    pub fn note(&mut self, name: &str) {
        self.compared.insert(name.to_owned());
    }

    /// Compares numbers with (a part of) the golden tensor `name`, at that tensor's tolerance.
    ///
    /// # Errors
    /// Names the first number that is too far off.
    pub fn compare(&mut self, name: &str, found: &Tensor, golden: &Tensor) -> Result<()> {
        let tolerance = self.tolerance(name)?;
        ensure!(found.dims() == golden.dims(), "{name}: {:?}, expected {:?}", found.dims(), golden.dims());
        let numbers = |t: &Tensor| t.to_dtype(DType::F64)?.flatten_all()?.to_vec1::<f64>();
        for (i, (a, b)) in numbers(found)?.iter().zip(numbers(golden)?).enumerate() {
            // Written so that a NaN is too far as well.
            ensure!((a - b).abs() <= tolerance, "{name}[{i}] is {a}, expected {b} within {tolerance}");
        }
        self.compared.insert(name.to_owned());
        Ok(())
    }

    /// Compares numbers with the golden tensor `name`.
    ///
    /// # Errors
    /// Names the first number that is too far off.
    pub fn compare_all(&mut self, name: &str, found: &Tensor) -> Result<()> {
        let golden = self.get(name)?.clone();
        self.compare(name, found, &golden)
    }

    /// Asserts that every golden tensor that `wanted` accepts has been compared.
    ///
    /// # Panics
    /// When one has not been.
    pub fn complete(&self, wanted: impl Fn(&str) -> bool) {
        let left: Vec<&String> =
            self.tensors.keys().filter(|name| wanted(name) && !self.compared.contains(*name)).collect();
        assert!(left.is_empty(), "not compared: {left:?}");
        assert!(!self.compared.is_empty(), "{} holds nothing to compare", self.file);
    }

    /// The batch stored under `prefix`.
    ///
    /// # Errors
    /// When it is not stored whole.
    pub fn batch(&self, prefix: &str, task: Task, targets: Targets) -> Result<Batch> {
        let (rows, width) = self.get(&format!("{prefix}input_ids"))?.dims2()?;
        let matrix = |field| self.integers::<u32>(&format!("{prefix}{field}"));
        let (input_ids, attention_mask) = (matrix("input_ids")?, matrix("attention_mask")?);
        let token_type_ids = matrix("token_type_ids")?;
        let (position_ids, segment_ids, samples) = (vec![], vec![], vec![]);
        let batch = Batch {
            task,
            rows,
            width,
            input_ids,
            attention_mask,
            token_type_ids,
            position_ids,
            segment_ids,
            samples,
            targets,
        };
        Ok(batch.one_per_row())
    }
}
