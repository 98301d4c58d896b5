//! Tests of training adapters in the encoder's place.

use candle_core::Var;

use super::super::heads::{Mode, Shared};
use super::super::lora::{Adapters, Config as Lora, Target};
use super::masked::masked;
use super::*;
use crate::checkpoint::adapters::{ADAPTERS_FILE, ADAPTERS_WEIGHTS_FILE};
use crate::nn::check::{numbers, randn};

const QUERY: &str = "encoder.layer.1.attention.self.query";

fn adapted() -> Setup {
    let mut setup = setup();
    let targets = vec![Target::Query, Target::AttentionOutput, Target::Intermediate, Target::Output];
    setup.train.lora = Some(Lora { rank: 3, alpha: 5.0, targets });
    setup
}

fn number(params: &Params, name: &str) -> Vec<f32> {
    params.get(name).unwrap().flatten_all().unwrap().to_vec1().unwrap()
}

#[test]
fn gradients_and_sums_are_those_of_the_product() {
    let setup = adapted();
    let adapters = Adapters::of(&setup);
    let params = Params::fresh(&setup.specs(), 1, &Device::Cpu).unwrap();
    adapters.begin(&params).unwrap();
    let of = |part: &str| format!("adapters.{QUERY}.{part}");
    let (weight, d) = (format!("{QUERY}.weight"), setup.encoder.hidden_size);
    params.set(&of("b"), &randn(2, &[d, 3]).to_dtype(candle_core::DType::F32).unwrap()).unwrap();
    adapters.add(&params).unwrap();
    // candle's own gradient of the same product.
    let [a, b, base] = ["a", "b", "base"].map(|part| params.get(&of(part)).unwrap().copy().unwrap());
    let [a, b] = [a, b].map(|factor| Var::from_tensor(&factor).unwrap());
    let sum = (base + (b.matmul(a.as_tensor()).unwrap() * (5.0 / 3.0)).unwrap()).unwrap();
    let near = |found: &[f32], expected: &Tensor| {
        let expected = numbers(expected);
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((f64::from(*found) - expected).abs() < 1e-5, "{found} {expected}");
        }
    };
    near(&number(&params, &weight), &sum);
    let of_weight = randn(3, &[d, d]).to_dtype(candle_core::DType::F32).unwrap();
    let store = (sum * &of_weight).unwrap().sum_all().unwrap().backward().unwrap();
    let mut grads =
        BTreeMap::from([(weight, of_weight), ("embeddings.LayerNorm.bias".to_owned(), randn(4, &[d]))]);
    adapters.gradients(&params, &mut grads).unwrap();
    let names: Vec<&str> = grads.keys().map(String::as_str).collect();
    assert_eq!(names, [&of("a"), &of("b"), "embeddings.LayerNorm.bias"]);
    for (part, factor) in [("a", &a), ("b", &b)] {
        near(&grads[&of(part)].flatten_all().unwrap().to_vec1::<f32>().unwrap(), store.get(factor).unwrap());
    }
}

#[test]
fn adapters_and_outputs_move_and_nothing_else() {
    let mut trainer = Trainer::new(adapted(), &Device::Cpu).unwrap();
    let names: Vec<String> = trainer.params().iter().map(|(name, _)| name.to_owned()).collect();
    let before: Vec<Vec<f32>> = names.iter().map(|name| number(trainer.params(), name)).collect();
    let records = run(&mut trainer, 1..=3);
    trainer.check_frozen().unwrap();
    let reasons = trainer.frozen_reasons();
    for (name, before) in names.iter().zip(&before) {
        let is_target = name.starts_with("encoder.")
            && ["self.query.weight", "output.dense.weight", "intermediate.dense.weight"]
                .iter()
                .any(|end| name.ends_with(end));
        let of_adapter = name.starts_with("adapters.") && !name.ends_with(".base");
        let moves = is_target || of_adapter || name.starts_with("outputs.");
        assert_eq!(*before != number(trainer.params(), name), moves, "{name}");
        assert_eq!(reasons.contains_key(name), is_target || !moves, "{name}: {:?}", reasons.get(name));
    }
    assert_eq!(reasons[&format!("{QUERY}.weight")], "its adapter moves it");
    assert_eq!(reasons["encoder.layer.0.attention.self.key.weight"], "adapters are trained in its place");
    // The first step has a gradient of B alone, and what is told of it is no 0.
    assert!(records.iter().all(|record| record.grad_norm > 0.0));
    let again = trainer.predictor();
    assert_eq!(again.parameters().encoder, names_of_encoder(&trainer));
}

fn names_of_encoder(trainer: &Trainer) -> usize {
    let of = |name: &str| !name.starts_with("outputs.") && !name.starts_with("adapters.");
    trainer.params().iter().filter(|(name, _)| of(name)).map(|(_, tensor)| tensor.elem_count()).sum()
}

#[test]
fn it_is_resumed_to_the_bit_and_saved_with_adapters_added() {
    let (state, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut whole = Trainer::new(adapted(), &Device::Cpu).unwrap();
    run(&mut whole, 1..=5);
    let mut first = Trainer::new(adapted(), &Device::Cpu).unwrap();
    // Before the second step no A has had a gradient, and the state knows it.
    run(&mut first, 1..=1);
    first.save_state(state.path(), &Value::Null).unwrap();
    let (mut second, _) = Trainer::resume(adapted(), state.path(), &Device::Cpu).unwrap();
    run(&mut second, 2..=5);
    assert_eq!(bits(&second), bits(&whole));
    let text = Trainer::resume(setup(), state.path(), &Device::Cpu).unwrap_err().to_string();
    assert!(text.contains("lora") || text.contains("adapters"), "{text}");
    second.save_checkpoint(folder.path()).unwrap();
    let loaded = checkpoint::load(folder.path(), &Device::Cpu).unwrap();
    assert_eq!(loaded.left_out, Vec::<String>::new());
    for (name, tensor) in loaded.params.iter() {
        assert_eq!(numbers(tensor), numbers(&second.params().get(name).unwrap()), "{name}");
    }
    let config: Value =
        serde_json::from_slice(&std::fs::read(folder.path().join(ADAPTERS_FILE)).unwrap()).unwrap();
    assert_eq!((config["r"].as_u64(), config["lora_alpha"].as_f64()), (Some(3), Some(5.0)));
    assert_eq!(config["target_modules"].as_array().unwrap().len(), 8);
    assert!(config["modules_to_save"].is_null());
    let tensors =
        candle_core::safetensors::load(folder.path().join(ADAPTERS_WEIGHTS_FILE), &Device::Cpu).unwrap();
    let of_query = &tensors[&format!("base_model.model.{QUERY}.lora_A.weight")];
    assert_eq!(numbers(of_query), numbers(&second.params().get(&format!("adapters.{QUERY}.a")).unwrap()));
    assert_eq!(tensors.len(), 16);
}

#[test]
fn a_pooler_that_a_task_pools_with_is_trained_and_goes_along() {
    let mut setup = adapted();
    setup.outline.pooling = Pooling::LearnedPooler;
    let mut trainer = Trainer::new(setup, &Device::Cpu).unwrap();
    let before = number(trainer.params(), "pooler.dense.weight");
    run(&mut trainer, 1..=2);
    assert_ne!(before, number(trainer.params(), "pooler.dense.weight"));
    let folder = tempfile::tempdir().unwrap();
    trainer.save_checkpoint(folder.path()).unwrap();
    let tensors =
        candle_core::safetensors::load(folder.path().join(ADAPTERS_WEIGHTS_FILE), &Device::Cpu).unwrap();
    assert!(tensors.contains_key("base_model.model.pooler.dense.bias"));
}

#[test]
fn what_says_otherwise_what_is_trained_is_refused() {
    let refused = |setup: Setup| Trainer::new(setup, &Device::Cpu).unwrap_err().to_string();
    let mut heads = masked(Mode::Hard, Shared::Train);
    heads.train.lora = adapted().train.lora;
    assert!(refused(heads).starts_with("lora is given beside heads.mode, expected one of them"));
    let mut frozen = adapted();
    frozen.train.frozen = vec!["embeddings.".to_owned()];
    assert!(refused(frozen).starts_with("lora is given beside frozen"));
    for (lora, expected) in [
        (Lora { rank: 0, ..Lora::default() }, "lora.rank is 0, expected from 1 to "),
        (Lora { rank: 10_000, ..Lora::default() }, "lora.rank is 10000, expected from 1 to "),
        (Lora { alpha: 0.0, ..Lora::default() }, "lora.alpha is 0, expected from 1e-12 to 1e6"),
        (Lora { targets: vec![], ..Lora::default() }, "lora.targets is [], expected at least one"),
        (
            Lora { targets: vec![Target::Key, Target::Key], ..Lora::default() },
            "lora.targets is [\"key\",\"key\"], expected at least one matrix, and each once",
        ),
    ] {
        let mut setup = setup();
        setup.train.lora = Some(lora);
        let text = refused(setup);
        assert!(text.starts_with(expected), "{text}");
    }
}
