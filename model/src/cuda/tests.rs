//! Steps on the mock driver (`scripts/cuda-host.sh`): the numbers of the CPU's, and what a step asks of the driver.

mod counted;
mod heads;
mod machines;

use std::ffi::{CString, c_char, c_int, c_void};

use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use candle_core::{Device, DeviceLocation, Tensor, Var};

use super::args::SIZES;
use super::ops;
use crate::device::{ActivationDtype, Wanted};
use crate::encoder::pool::Pooling;
use crate::head::mask::Mask;
use crate::output::{Batch, Targets};
use crate::predict::Predictor;
use crate::train::tests::{self, finetune};
use crate::train::{Setup, StepRecord, Trainer};

unsafe extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn mock_schedule(schedule: u64);
}

/// Tests run side by side, but the one that counts.
static ALONE: RwLock<()> = RwLock::new(());

fn beside() -> RwLockReadGuard<'static, ()> {
    ALONE.read().unwrap_or_else(PoisonError::into_inner)
}

/// The device that every test has: one stream, one handle.
fn device() -> Device {
    Wanted::Cuda(0).device().unwrap()
}

/// Numbers of all parameters, by name.
fn numbers(trainer: &Trainer) -> Vec<(String, Vec<f32>)> {
    let values = |tensor: &Tensor| {
        tensor.to_device(&Device::Cpu).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap()
    };
    trainer.params().iter().map(|(name, tensor)| (name.to_owned(), values(tensor))).collect()
}

/// The distance of two lists by norm, over the norm of the first.
fn distance(a: &[f32], b: &[f32]) -> f64 {
    let norm = |each: &mut dyn Iterator<Item = f64>| each.map(|x| x * x).sum::<f64>().sqrt();
    let apart = norm(&mut a.iter().zip(b).map(|(a, b)| f64::from(a - b)));
    apart / norm(&mut a.iter().map(|a| f64::from(*a))).max(1e-12)
}

/// So many steps of a setup on a device.
fn trained(
    setup: &Setup,
    device: &Device,
    steps: u64,
    batches: fn(u64) -> Vec<Batch>,
) -> (Trainer, Vec<StepRecord>) {
    let mut trainer = Trainer::new(setup.clone(), device).unwrap();
    let records = (1..=steps).map(|step| trainer.step(0, &batches(step)).unwrap()).collect();
    (trainer, records)
}

/// How far records and parameters of two machines may be apart, by norm.
const MOST: f64 = 1e-4;

/// A few steps on both machines; twenty are those of the tests that say so.
fn agrees(name: &str, setup: &Setup, batches: fn(u64) -> Vec<Batch>) {
    agrees_for(3, name, setup, batches);
}

fn agrees_for(steps: u64, name: &str, setup: &Setup, batches: fn(u64) -> Vec<Batch>) {
    let [(cpu, expected), (cuda, found)] =
        [Device::Cpu, device()].map(|device| trained(setup, &device, steps, batches));
    for (a, b) in expected.iter().zip(&found) {
        let apart = ((a.loss - b.loss) / a.loss).abs().max(((a.grad_norm - b.grad_norm) / a.grad_norm).abs());
        assert!(apart < MOST, "{name}, step {}: {a:?} {b:?}", a.step);
        assert_eq!((a.tokens, a.rows, a.learning_rate), (b.tokens, b.rows, b.learning_rate), "{name}");
        for (task, a) in &a.tasks {
            let b = &b.tasks[task];
            assert_eq!(
                (a.targets, a.samples, a.accuracy.is_some()),
                (b.targets, b.samples, b.accuracy.is_some())
            );
        }
    }
    for ((of, a), (_, b)) in numbers(&cpu).iter().zip(&numbers(&cuda)) {
        // What a softmax does not go by, a key's bias and that of pooling's scores, has no gradient but rounding's, which Adam makes as large as any other.
        let rounding = of.ends_with(".attention.self.key.bias") || of.ends_with("pool_attn.bias");
        assert!(rounding || distance(a, b) < MOST, "{name}: {of} is {} apart", distance(a, b));
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the mock driver's own variable")]
fn sizes_are_those_of_the_kernels() {
    let path = CString::new(std::env::var("MOCK_KERNELS").unwrap()).unwrap();
    // SAFETY: the library is the kernels', and the function has this signature.
    let size_of: unsafe extern "C" fn(*const c_char) -> usize = unsafe {
        let library = dlopen(path.as_ptr(), 2);
        assert!(!library.is_null(), "{path:?}");
        std::mem::transmute(dlsym(library, c"engraft_host_args_size".as_ptr()))
    };
    for (kernel, size) in SIZES {
        let name = CString::new(*kernel).unwrap();
        // SAFETY: as above.
        assert_eq!(unsafe { size_of(name.as_ptr()) }, *size, "{kernel}");
    }
}

#[test]
fn processes_of_one_machine_have_a_gpu_each() {
    let number = |wanted: Wanted, others: usize| match wanted.choose_beside(others).unwrap().device.location()
    {
        DeviceLocation::Cuda { gpu_id } => Some(gpu_id),
        _ => None,
    };
    // The mock has four; the last is left to another test.
    assert_eq!([0, 1, 2].map(|others| number(Wanted::Auto, others)), [0, 1, 2].map(Some));
    assert_eq!([0, 1].map(|others| number(Wanted::Cuda(1), others)), [1, 2].map(Some));
    assert_eq!(number(Wanted::Cpu, 2), None);
    for (wanted, others) in [(Wanted::Auto, 4), (Wanted::Cuda(1), 3)] {
        let error = wanted.choose_beside(others).unwrap_err().to_string();
        let told =
            "device cuda:4: the driver has 4, counted from 0; take the number of one that `nvidia-smi -L`";
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn freed_memory_stays_and_allocations_have_no_event() {
    use candle_core::cuda_backend::cudarc::driver::{result, sys};
    let _alone = ALONE.write().unwrap_or_else(PoisonError::into_inner);
    let device = device();
    let stream = super::device(&device).unwrap().cuda_stream();
    let (which, mut kept) = (sys::CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 0_u64);
    // SAFETY: the pool is the device's own, and the driver writes one number.
    unsafe {
        let pool = result::device::get_default_mem_pool(stream.context().cu_device()).unwrap();
        result::mem_pool::get_attribute(pool, which, (&raw mut kept).cast()).unwrap();
    }
    assert_eq!(kept, u64::MAX);
    counted::counted();
    Tensor::zeros(1000, candle_core::DType::F32, &device).unwrap();
    let counts = counted::counted();
    assert_eq!((&counts["allocations"], &counts["events_made"]), (&1.into(), &0.into()), "{counts}");
}

#[test]
fn a_gpu_is_told_of_with_its_driver_and_libraries() {
    let chosen = Wanted::Cuda(0).choose().unwrap();
    assert_eq!(chosen.describe(), "cuda:0: as `compute.device` says");
    let facts = chosen.facts().unwrap().unwrap();
    // What the mock says; the version of a kernel module is where there is one.
    assert_eq!((&*facts["name"], &*facts["cuda_of_driver"], &*facts["cublaslt"]), ("mock", "13.0", "130000"));
    let (major, minor) = facts["capability"].split_once('.').unwrap();
    assert!(major.parse::<u32>().unwrap() >= 8 && minor.parse::<u32>().is_ok(), "{facts:?}");
    assert!(facts["memory_mib"].parse::<u64>().unwrap() > 0, "{facts:?}");
    let of_rank = chosen.facts_of_rank().unwrap().unwrap();
    assert_eq!((facts.get("nccl"), of_rank["nccl"].as_str()), (None, "22803"));
    assert!(Wanted::Cpu.choose().unwrap().facts_of_rank().unwrap().is_none());
}

#[test]
fn a_device_that_is_only_asked_for_is_not_opened() {
    let _alone = ALONE.write().unwrap_or_else(PoisonError::into_inner);
    // Those that other tests take, so that none of these opens one meanwhile; the last is this one's alone.
    assert!([0, 1, 2].iter().all(|number| Wanted::Cuda(*number).device().is_ok()));
    let last = Wanted::Cuda(3);
    counted::counted();
    assert_eq!(last.foresee().unwrap().describe(), "cuda:3: as `compute.device` says");
    assert!(!Wanted::Auto.foresee().unwrap().is_cpu());
    assert_eq!(counted::counted()["contexts"], 0);
    assert!(last.device().unwrap().is_cuda());
    assert_eq!(counted::counted()["contexts"], 1);
}

/// The bits of all parameters.
fn bits(trainer: &Trainer) -> Vec<u32> {
    numbers(trainer).into_iter().flat_map(|(_, numbers)| numbers).map(f32::to_bits).collect()
}

#[test]
fn killed_and_resumed_gives_the_same_bits_in_any_order_of_threads() {
    let _beside = beside();
    // Odd numbers draw single threads, even ones warps.
    for (dtype, schedule) in [(ActivationDtype::F32, 5), (ActivationDtype::Bf16, 6)] {
        let mut setup = finetune::setup();
        setup.train.dtype = dtype;
        let (whole, all) = trained(&setup, &device(), 6, finetune::batches);
        let (first, _) = trained(&setup, &device(), 3, finetune::batches);
        let dir = tempfile::tempdir().unwrap();
        first.save_state(dir.path(), &serde_json::json!(3)).unwrap();
        drop(first);
        let (mut second, along) = Trainer::resume(setup.clone(), dir.path(), &device()).unwrap();
        assert_eq!((second.steps(), along), (3, serde_json::json!(3)));
        // SAFETY: the mock is the driver that this test is linked with. What runs beside is in that order too, and no worse for it.
        unsafe { mock_schedule(schedule) };
        let rest: Vec<StepRecord> =
            (4..=6).map(|step| second.step(0, &finetune::batches(step)).unwrap()).collect();
        // SAFETY: as above.
        unsafe { mock_schedule(0) };
        assert_eq!(rest, all[3..]);
        assert!(bits(&second) == bits(&whole), "{dtype:?}");
        second.check_frozen().unwrap();
        // What was trained here goes on nowhere else.
        let text = Trainer::resume(setup, dir.path(), &Device::Cpu).unwrap_err().to_string();
        assert!(text.contains("made with the device = cuda, now cpu"), "{text}");
    }
}

#[test]
fn steps_that_nobody_waits_for_are_the_same_steps() {
    let _beside = beside();
    let setup = finetune::setup();
    let (whole, expected) = trained(&setup, &device(), 9, finetune::batches);
    let mut ahead = Trainer::new(setup, &device()).unwrap();
    let mut records = vec![];
    for step in 1..=9 {
        records.extend(ahead.advance(0, &[finetune::batches(step)]).unwrap());
    }
    records.extend(ahead.settle().unwrap());
    assert_eq!(records, expected);
    assert!(bits(&ahead) == bits(&whole));
    assert_eq!(ahead.evaluate(&finetune::batches(3)).unwrap().len(), finetune::TASKS.len());
}

#[test]
fn held_out_losses_are_the_cpus() {
    let _beside = beside();
    let of = |device: &Device| trained(&finetune::setup(), device, 2, finetune::batches).0;
    let [cpu, cuda] = [of(&Device::Cpu), of(&device())];
    let [cpu, cuda] = [cpu, cuda].map(|trainer| trainer.evaluate(&finetune::batches(9)).unwrap());
    for (task, a) in &cpu {
        let b = &cuda[task];
        assert!(
            (a.loss - b.loss).abs() < 1e-4 && (a.targets, a.accuracy) == (b.targets, b.accuracy),
            "{task}"
        );
    }
}

#[test]
fn answers_and_vectors_are_the_cpus() {
    let _beside = beside();
    let mut setup = finetune::setup();
    setup.gates = Some(Mask::new([2, 4], vec![1.0, 0.0, 0.5, 1.0, 0.0, 1.0, 1.0, 0.25]).unwrap());
    let [cpu, cuda] = [Device::Cpu, device()].map(|device| trained(&setup, &device, 2, finetune::batches).0);
    let near = |a: &[Vec<f32>], b: &[Vec<f32>]| {
        assert!(a.len() == b.len() && distance(&a.concat(), &b.concat()) < 1e-4, "{a:?} {b:?}");
    };
    let rows = finetune::rows(7);
    let both = |cpu: &Predictor, cuda: &Predictor| {
        let tasks: Vec<usize> = (0..6).collect();
        let [a, b] = [cpu, cuda].map(|model| model.logits_of(&tasks, &rows).unwrap());
        a.iter().zip(&b).for_each(|(a, b)| near(a, b));
        near(&cpu.hidden(&rows).unwrap(), &cuda.hidden(&rows).unwrap());
        for pooling in Pooling::ALL.into_iter().filter(|pooling| *pooling != Pooling::LearnedAttn) {
            near(&cpu.pooled(&rows, pooling).unwrap(), &cuda.pooled(&rows, pooling).unwrap());
        }
    };
    both(cpu.predictor(), cuda.predictor());
    both(&cpu.predictor().clone().without_gates(), &cuda.predictor().clone().without_gates());
    // It follows the training, and what was saved answers the same.
    let mut cuda = cuda;
    let before = cuda.predictor().hidden(&rows).unwrap();
    cuda.step(0, &finetune::batches(3)).unwrap();
    let after = cuda.predictor().hidden(&rows).unwrap();
    assert_ne!(before, after);
    let dir = tempfile::tempdir().unwrap();
    cuda.save_checkpoint(dir.path()).unwrap();
    let loaded = Predictor::load(dir.path(), &device()).unwrap();
    assert_eq!(loaded.hidden(&rows).unwrap(), after);
    near(&Predictor::load(dir.path(), &Device::Cpu).unwrap().hidden(&rows).unwrap(), &after);
}

#[test]
fn operations_for_other_users_of_candle_are_the_cpus() {
    use crate::nn::check::randn;
    let _beside = beside();
    let values = |tensor: &Tensor| {
        tensor.to_device(&Device::Cpu).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap()
    };
    // Values, and of each argument the gradient that one of the result leads to. What candle computes between is done on the CPU: its kernels are not here.
    type Forward<'a> = &'a dyn Fn(&[Tensor]) -> candle_core::Result<Tensor>;
    type Back<'a> = &'a dyn Fn(&[Tensor], &Tensor) -> candle_core::Result<Vec<Tensor>>;
    let both = |name: &str, forward: Forward<'_>, back: Back<'_>, at: &[Tensor]| {
        let vars: Vec<Var> = at.iter().map(|t| Var::from_tensor(t).unwrap()).collect();
        let here: Vec<Tensor> = vars.iter().map(|var| var.as_tensor().clone()).collect();
        let y = forward(&here).unwrap();
        let grad = randn(9, y.dims());
        let grads = (&y * &grad).unwrap().sum_all().unwrap().backward().unwrap();
        let there: Vec<Tensor> = at.iter().map(|t| t.to_device(&device()).unwrap()).collect();
        assert!(distance(&values(&y), &values(&forward(&there).unwrap())) < 1e-5, "{name}");
        let found = back(&there, &grad.to_device(&device()).unwrap()).unwrap();
        for (var, b) in vars.iter().zip(&found) {
            let apart = distance(&values(grads.get(var).unwrap()), &values(b));
            assert!(apart < 1e-5, "{name}: {apart}");
        }
    };
    let back = |a: &[Tensor], g: &Tensor| Ok(vec![ops::gelu_gradient(&a[0], g)?]);
    both("gelu", &|a| crate::nn::gelu::gelu(&a[0]), &back, &[randn(1, &[37, 20])]);
    let norm = |a: &[Tensor]| crate::nn::layer_norm::layer_norm(&a[0], [&a[1], &a[2]], 1e-12);
    let back = |a: &[Tensor], g: &Tensor| Ok(ops::layer_norm_gradient(&a[0], &a[1], g, 1e-12)?.to_vec());
    both("layer norm", &norm, &back, &[randn(1, &[37, 20]), randn(2, &[20]), randn(3, &[20])]);
    let attention = |a: &[Tensor]| crate::nn::varlen::attention(&a[0], &[3, 1, 20], 2);
    let of = ops::AttentionOf { starts: vec![0, 3, 4, 24], longest: 20, heads: 2, d: 16 };
    let back = |a: &[Tensor], g: &Tensor| Ok(vec![ops::attention_gradient(&of, &a[0], g)?]);
    both("attention", &attention, &back, &[randn(1, &[24, 48])]);
}

#[test]
fn what_is_no_number_is_named_and_changes_nothing() {
    let _beside = beside();
    let mut trainer = Trainer::new(tests::setup(), &device()).unwrap();
    trainer.step(0, &tests::batches(1)).unwrap();
    let wild = Tensor::new(&[f32::INFINITY, 0.0, 0.0], &device()).unwrap();
    trainer.params().set("outputs.relation.bias", &wild).unwrap();
    let mut dir = tempfile::tempdir().unwrap();
    trainer.save_state(dir.path(), &serde_json::Value::Null).unwrap();
    let (mut trainer, _) = Trainer::resume(tests::setup(), dir.path(), &device()).unwrap();
    let before = bits(&trainer);
    let text = trainer.step(0, &tests::batches(2)).unwrap_err().to_string();
    assert!(text.contains("step 2: the loss of relation is NaN"), "{text}");
    assert!(bits(&trainer) == before);
    dir.disable_cleanup(false);
    // A parameter that no loss reaches.
    let mut setup = tests::setup();
    setup.train.covered_by = 1;
    let mut trainer = Trainer::new(setup, &device()).unwrap();
    let text = trainer.step(0, &tests::batches(1)[..1]).unwrap_err().to_string();
    assert!(text.contains("by step 1, no gradient reaches [outputs.object.bias"), "{text}");
}

#[test]
fn a_step_without_room_is_refused_before_anything_moves() {
    let _beside = beside();
    let mut setup = finetune::setup();
    setup.outline.tasks.truncate(1);
    // A feed-forward layer so wide that a few thousand tokens are more than the device's 80 GiB.
    (setup.encoder.num_hidden_layers, setup.encoder.intermediate_size) = (1, 1 << 18);
    let mut trainer = Trainer::new(setup, &device()).unwrap();
    let one = finetune::batches(1).swap_remove(0);
    let large = repeated(&one, 1001);
    let before = bits(&trainer);
    let text = trainer.step(0, &[large]).unwrap_err().to_string();
    let settings = [
        "`batch`",
        "`stream.batching.items`",
        "`stream.batching.tokens`",
        "`accumulate`",
        "`compute.recompute",
    ];
    assert!(text.contains("tokens: the GPU does not give"), "{text}");
    assert!(settings.iter().all(|setting| text.contains(setting)), "{text}");
    assert!(bits(&trainer) == before && trainer.steps() == 0);
    assert_eq!(trainer.step(0, &[one]).unwrap().step, 1);
}

/// As many devices as a test has ranks: those of the mock, which has `MOCK_DEVICES`.
fn of_rank(rank: usize) -> Device {
    Wanted::Cuda(rank).device().unwrap()
}

#[test]
fn ranks_with_a_gpu_each_make_the_steps_of_one() {
    let _beside = beside();
    tests::ranks::on_gpus(of_rank);
}

#[test]
fn ranks_that_leave_or_share_a_gpu_are_named() {
    let _beside = beside();
    tests::ranks::leaving_gpus(of_rank);
}

/// The same batch with its rows so many times.
fn repeated(batch: &Batch, times: usize) -> Batch {
    let mut all = batch.clone();
    for _ in 1..times {
        match (&mut all.targets, &batch.targets) {
            (Targets::Classes(all), Targets::Classes(more)) => all.extend_from_slice(more),
            (Targets::Tokens(all), Targets::Tokens(more)) => all.extend_from_slice(more),
            _ => panic!("classes or tokens"),
        }
        all.rows.ids.extend_from_slice(&batch.rows.ids);
        all.rows.types.extend_from_slice(&batch.rows.types);
        all.rows.lengths.extend_from_slice(&batch.rows.lengths);
    }
    all
}
