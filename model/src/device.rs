//! Where tensors live and in which numbers a model computes, as configurations say it.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use crate::Error;
#[cfg(target_arch = "x86_64")]
use crate::nn::keep_to;
use crate::nn::{arch, product};
use candle_core::utils::cuda_is_available;
use candle_core::{DType, Device};
use serde::{Deserialize, Serialize};

/// The vector instructions that loops on the CPU use: the widest of this machine, but for [`keep_to_avx2`].
#[must_use]
pub fn vectors() -> pulp::Arch {
    arch()
}

/// The instructions that loops on the CPU use, in words: those of [`vectors`].
#[must_use]
pub fn cpu_level() -> &'static str {
    match arch() {
        #[cfg(target_arch = "x86_64")]
        pulp::Arch::V4(_) => "x86-64-v4 (AVX-512)",
        #[cfg(target_arch = "x86_64")]
        pulp::Arch::V3(_) => "x86-64-v3 (AVX2, FMA)",
        #[cfg(target_arch = "aarch64")]
        pulp::Arch::Neon(_) => "aarch64 (Neon)",
        _ => "no vector instructions",
    }
}

/// Loops of this process use AVX2 and FMA alone from here on, as on a processor without AVX-512, to measure on one machine what both kinds need
/// (`benches/model.py --avx2`). Results are the same bits, but that numbers below 2^-126 are no longer
/// 0 in bf16.
///
/// # Errors
/// When the processor has no AVX2, or loops use wider instructions already.
pub fn keep_to_avx2() -> Result<(), Error> {
    #[cfg(target_arch = "x86_64")]
    if let Some(simd) = pulp::x86::V3::try_new() {
        return if keep_to(pulp::Arch::V3(simd)) {
            Ok(())
        } else {
            Err(Error::Misfit("loops of this process use the widest instructions already: ask for AVX2 alone before anything is computed".to_owned()))
        };
    }
    Err(Error::Misfit(format!("AVX2 alone was asked for, and this processor has {}", cpu_level())))
}

/// The device that a run asks for: `auto`, `cpu` or `cuda:N`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub enum Wanted {
    /// The first CUDA device if this build has CUDA and the device answers, else the CPU.
    Auto,
    /// The CPU.
    #[default]
    Cpu,
    /// The CUDA device of this number, the first being 0.
    Cuda(usize),
}

/// The dtype of activations and matrix products. Weights, their gradients and the optimiser's state are f32 in any case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ActivationDtype {
    /// Single precision.
    #[default]
    F32,
    /// Single precision, but for the factors of matrix products, which tensor cores of GPUs take with 11 significant bits: on CUDA alone.
    Tf32,
    /// The range of f32 and 8 significant bits, for hardware that multiplies them. On GPUs activations are bf16 and take half the memory; norms, softmax, dropout,
    /// sums over rows and losses are computed in f32. On the CPU it is the factors of the layers' matrix products that are rounded; sums, and all that lies between
    /// products, are f32. Processors with AVX-512 BF16 have an instruction for it, on others those of f32 do it, to the same bits; those with
    /// AMX are several times as fast, to other bits.
    Bf16,
}

/// What a training computes a second time instead of keeping it (activation checkpointing, Chen et al. 2016): bits stay the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Recompute {
    /// Nothing: all activations are kept until the backward pass.
    #[default]
    None,
    /// Each layer's forward pass, in the backward pass: only the inputs of layers are kept, for about a third more time. With BERT's own attention
    /// or label embeddings.
    Layers,
}

/// Which device it comes to, with the reason; not opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreseen {
    name: Wanted,
    reason: String,
}

/// A device with the reason why it was taken.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// The device.
    pub device: Device,
    foreseen: Foreseen,
}

impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wanted::Auto => f.write_str("auto"),
            Wanted::Cpu => f.write_str("cpu"),
            Wanted::Cuda(number) => write!(f, "cuda:{number}"),
        }
    }
}

impl FromStr for Wanted {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let number = name.strip_prefix("cuda:").filter(|number| number.bytes().all(|b| b.is_ascii_digit()));
        match (name, number.and_then(|number| number.parse().ok())) {
            ("auto", _) => Ok(Wanted::Auto),
            ("cpu", _) => Ok(Wanted::Cpu),
            (_, Some(number)) => Ok(Wanted::Cuda(number)),
            _ => Err(Error::Misfit(format!(
                "device `{found}`: expected auto, cpu or cuda:N, N being the number of a device (cuda:0 is the first)",
                found = name.to_owned()
            ))),
        }
    }
}

impl TryFrom<String> for Wanted {
    type Error = Error;

    fn try_from(name: String) -> Result<Self, Error> {
        name.parse()
    }
}

impl From<Wanted> for String {
    fn from(wanted: Wanted) -> String {
        wanted.to_string()
    }
}

impl Wanted {
    /// Which device it comes to, and why. The driver only counts its devices for that: opened, a device would keep some hundred MiB for each
    /// process that asked, and of ranks all would ask for the first one.
    ///
    /// # Errors
    /// When a CUDA device is asked for by number and there is none of it.
    pub fn foresee(self) -> Result<Foreseen, Error> {
        let taken = |name, reason: &str| Ok(Foreseen { name, reason: reason.to_owned() });
        // The driver is not asked for it: to start it takes time.
        if self == Wanted::Cpu {
            return taken(Wanted::Cpu, "as `compute.device` says");
        }
        match (self, found()) {
            (Wanted::Auto, Err(none)) => taken(Wanted::Cpu, &none),
            (Wanted::Auto, Ok(_)) => taken(Wanted::Cuda(0), "the first CUDA device"),
            (Wanted::Cuda(number), Ok(count)) if number < count => taken(self, "as `compute.device` says"),
            _ if !cuda_is_available() => Err(Error::Misfit(format!(
                "device {self}: this build has no CUDA; build with `--features cuda` (without a CUDA toolkit: scripts/cuda-build.sh), or take the device auto or cpu"
            ))),
            (_, found) => Err(Error::Misfit(format!(
                "device {self}: {}; take the number of one that `nvidia-smi -L` lists (processes started together have one each), or the device auto or cpu",
                found.map_or_else(|none| none, |count| format!("the driver has {count}, counted from 0"))
            ))),
        }
    }

    /// The device to take, and why.
    ///
    /// # Errors
    /// As [`Wanted::foresee`], and when a GPU does not answer: hours on the CPU instead would be nobody's choice.
    pub fn choose(self) -> Result<Chosen, Error> {
        let foreseen = self.foresee()?;
        let device = match foreseen.name {
            Wanted::Cuda(number) => cuda(number).map_err(|source| {
                Error::Misfit(format!(
                    "device {}: it does not answer ({source}); see what `nvidia-smi` says of it, or take the device cpu",
                    foreseen.name
                ))
            })?,
            _ => Device::Cpu,
        };
        Ok(Chosen { device, foreseen })
    }

    /// The device of a process that has so many others before it on its machine, each with a device of its own: GPUs are counted on from the one asked for.
    ///
    /// # Errors
    /// As [`Wanted::choose`], and when there are some GPUs, but not so many.
    pub fn choose_beside(self, others: usize) -> Result<Chosen, Error> {
        match self {
            Wanted::Cuda(first) => Wanted::Cuda(first.saturating_add(others)).choose(),
            Wanted::Auto if others > 0 && cuda_is_available() => match Wanted::Cuda(others).choose() {
                Ok(Chosen { device, foreseen }) => {
                    let reason = "the CUDA device of this process".to_owned();
                    Ok(Chosen { device, foreseen: Foreseen { reason, ..foreseen } })
                }
                // The CPU only where there is no GPU at all: ranks of both kinds would not come to the same numbers.
                Err(_) if self.foresee()?.is_cpu() => self.choose(),
                Err(error) => Err(error),
            },
            _ => self.choose(),
        }
    }

    /// The device of [`Wanted::choose`].
    ///
    /// # Errors
    /// As there.
    pub fn device(self) -> Result<Device, Error> {
        Ok(self.choose()?.device)
    }
}

/// The CUDA devices that are in use, by their numbers.
static IN_USE: Mutex<BTreeMap<usize, Device>> = Mutex::new(BTreeMap::new());

/// Whether this build can compute on CUDA devices.
#[must_use]
pub fn has_cuda() -> bool {
    cuda_is_available()
}

/// How many CUDA devices the driver has, or why none.
fn found() -> Result<usize, String> {
    #[cfg(feature = "cuda")]
    return match candle_core::cuda_backend::cudarc::driver::CudaContext::device_count().map(usize::try_from) {
        Ok(Ok(count @ 1..)) => Ok(count),
        Ok(_) => Err("the driver has no CUDA device".to_owned()),
        Err(error) => Err(format!("the driver has no CUDA device: {error}")),
    };
    #[cfg(not(feature = "cuda"))]
    Err("this build has no CUDA".to_owned())
}

/// A CUDA device with one stream, on which everything waits for what came before, whichever thread asked for it. Without one that is made
/// for it, each thread has a stream of its own, and nothing orders these.
fn cuda(number: usize) -> candle_core::Result<Device> {
    in_use(&IN_USE, number, |number| {
        let device = Device::new_cuda_with_stream(number)?;
        #[cfg(feature = "cuda")]
        if let Device::Cuda(cuda) = &device {
            crate::cuda::set_up(cuda)?;
        }
        Ok(device)
    })
}

/// The device of this number, made when it is first asked for: two handles of one device would be two devices to the tensor library, whose
/// tensors cannot meet.
fn in_use(
    devices: &Mutex<BTreeMap<usize, Device>>,
    number: usize,
    make: impl FnOnce(usize) -> candle_core::Result<Device>,
) -> candle_core::Result<Device> {
    let mut devices = devices.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(device) = devices.get(&number) {
        return Ok(device.clone());
    }
    let device = make(number)?;
    devices.insert(number, device.clone());
    Ok(device)
}

impl Chosen {
    /// What is to be known of a GPU: its name, capability, memory, driver and the library of products; none of the CPU.
    ///
    /// # Errors
    /// When the driver does not answer.
    pub fn facts(&self) -> Result<Option<BTreeMap<&'static str, String>>, Error> {
        #[cfg(feature = "cuda")]
        if let Device::Cuda(device) = &self.device {
            return crate::cuda::facts(device).map(Some);
        }
        Ok(None)
    }

    /// The same of one among several GPUs that train together: with the library by which they add gradients, where there is one. A training that
    /// needs it says so if not.
    ///
    /// # Errors
    /// When the driver does not answer.
    pub fn facts_of_rank(&self) -> Result<Option<BTreeMap<&'static str, String>>, Error> {
        #[cfg(feature = "cuda")]
        if let Some(mut facts) = self.facts()? {
            facts.extend(crate::cuda::nccl_version().ok().map(|version| ("nccl", version)));
            return Ok(Some(facts));
        }
        self.facts()
    }

    /// As [`Foreseen::describe`].
    #[must_use]
    pub fn describe(&self) -> String {
        self.foreseen.describe()
    }
}

impl Foreseen {
    /// Whether it is the CPU.
    #[must_use]
    pub fn is_cpu(&self) -> bool {
        self.name == Wanted::Cpu
    }

    /// Which device it is and why, such as `cpu: this build has no CUDA`.
    #[must_use]
    pub fn describe(&self) -> String {
        format!("{}: {}", self.name, self.reason)
    }
}

/// What multiplies factors that are rounded to bf16 on this processor.
#[must_use]
pub fn bf16_products() -> &'static str {
    product::bf16_by().unwrap_or("f32 instructions")
}

impl ActivationDtype {
    /// The same for the tensor library.
    #[must_use]
    pub fn dtype(self) -> DType {
        match self {
            ActivationDtype::F32 | ActivationDtype::Tf32 => DType::F32,
            ActivationDtype::Bf16 => DType::BF16,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written_and_others_refused() {
        for wanted in [Wanted::Auto, Wanted::Cpu, Wanted::Cuda(0), Wanted::Cuda(13)] {
            assert_eq!(wanted.to_string().parse::<Wanted>().unwrap(), wanted);
            let json = serde_json::to_string(&wanted).unwrap();
            assert_eq!(json, format!("\"{wanted}\""));
            assert_eq!(serde_json::from_str::<Wanted>(&json).unwrap(), wanted);
        }
        for wrong in
            ["gpu", "cuda", "cuda:", "cuda:-1", "cuda:+1", "cuda:1.5", "CPU", "cuda:99999999999999999999"]
        {
            let error = serde_json::from_str::<Wanted>(&format!("\"{wrong}\"")).unwrap_err().to_string();
            assert!(error.contains(&format!("device `{wrong}`: expected auto, cpu or cuda:N")), "{error}");
        }
        assert_eq!(
            serde_json::to_string(&[ActivationDtype::F32, ActivationDtype::Tf32, ActivationDtype::Bf16])
                .unwrap(),
            r#"["f32","tf32","bf16"]"#
        );
        assert!(serde_json::from_str::<ActivationDtype>("\"f16\"").is_err());
    }

    #[test]
    fn what_was_chosen_is_told_with_its_reason() {
        let cpu = Wanted::Cpu.choose().unwrap();
        assert!(cpu.device.is_cpu() && cpu.describe() == "cpu: as `compute.device` says");
        let auto = Wanted::Auto.choose().unwrap();
        let told = auto.describe();
        match (cuda_is_available(), auto.device.is_cpu()) {
            (false, _) => assert_eq!(told, "cpu: this build has no CUDA"),
            (true, true) => assert!(told.starts_with("cpu: the driver has no CUDA device"), "{told}"),
            (true, false) => assert_eq!(told, "cuda:0: the first CUDA device"),
        }
        let foreseen = Wanted::Auto.foresee().unwrap();
        assert_eq!((foreseen.describe(), foreseen.is_cpu()), (told, auto.device.is_cpu()));
    }

    #[test]
    fn silent_10_a_device_has_one_handle_however_often_it_is_asked_for() {
        let (devices, made) = (Mutex::new(BTreeMap::new()), std::cell::RefCell::new(vec![]));
        let ask = |number: usize| {
            in_use(&devices, number, |number| {
                made.borrow_mut().push(number);
                if number == 7 { candle_core::bail!("no such device") } else { Ok(Device::Cpu) }
            })
        };
        assert!([0, 0, 1, 0, 1].into_iter().all(|number| ask(number).is_ok()));
        // One that could not be had may be had later.
        assert!(ask(7).is_err() && ask(7).is_err());
        assert_eq!(*made.borrow(), [0, 1, 7, 7]);
        if cuda_is_available()
            && let Ok(device) = cuda(0)
        {
            assert!(device.same_device(&Wanted::Cuda(0).device().unwrap()));
        }
    }

    #[test]
    fn a_gpu_that_cannot_be_had_is_an_error_that_says_what_to_do() {
        let told = Wanted::Cuda(4096).device().unwrap_err().to_string();
        let expected = if cuda_is_available() { "the driver has " } else { "build with `--features cuda`" };
        assert!(told.contains("device cuda:4096") && told.contains(expected), "{told}");
    }
}
