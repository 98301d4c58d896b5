//! The losses of metric learning beside those of pytorch-metric-learning, with which SapBERT is trained, and that of relations beside PyTorch's.
//!
//! `ENGRAFT_TORCH` names a Python with tests/python/requirements-torch.txt; without it the test is skipped.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use base::rng::CounterRng;
use base::whole::write_whole;
use batch::rows::Rows;
use candle_core::{DType, Device, Tensor, Var};
use model::encoder::pool::Pooling;
use model::encoder::tokens::Span;
use model::output::{Batch, Identity, Outline, Output, OutputDropout, Outputs, PairLoss, Targets, Task};
use model::params::{Init, Params, Spec};
use serde_json::{Value, json};

const ROWS: usize = 24;
const WIDTH: usize = 8;

/// The outputs of one task, over its own parameters.
fn outputs(output: Output, params: &Params) -> Result<Outputs> {
    let outline = Outline {
        tasks: vec![Task { name: "names".to_owned(), output, alpha: 1.0 }],
        pooling: Pooling::Cls,
        dropout: 0.0,
        thinned: OutputDropout::default(),
        labels: None,
        knowledge: None,
    };
    let encoder: model::encoder::config::Config = serde_json::from_value(json!({
        "vocab_size": 16, "hidden_size": WIDTH, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8, "max_position_embeddings": 8,
        "type_vocab_size": 2, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "initializer_range": 0.02, "layer_norm_eps": 1e-12, "pad_token_id": 0,
    }))?;
    Ok(Outputs::new(&outline, &encoder, params)?)
}

/// Our loss and its gradient by the vectors.
fn ours(
    vectors_md: &Tensor,
    classes: &[u32],
    loss: PairLoss,
    margin: Option<f64>,
) -> Result<(f64, Vec<f64>)> {
    let x = Var::from_tensor(vectors_md)?;
    let mut rows = Rows::default();
    classes.iter().for_each(|_| rows.push([(2, 0)]));
    let identities = classes.iter().map(|&class| Identity { class, also: vec![] }).collect();
    let batch = Batch { task: 0, rows, targets: Targets::Identities(identities) };
    let spans: Vec<Span> = (0..classes.len()).map(|start| Span { start, len: 1 }).collect();
    let params = Params::fresh(&[], 1, &Device::Cpu)?;
    let found =
        outputs(Output::Metric { loss, margin }, &params)?.loss(x.as_tensor(), &spans, &batch, None)?;
    let gradient = found.loss.backward()?.get(&x).context("a gradient")?.to_dtype(DType::F64)?;
    let loss = f64::from(found.loss.to_dtype(DType::F32)?.to_scalar::<f32>()?);
    Ok((loss, gradient.flatten_all()?.to_vec1()?))
}

#[test]
fn relations_between_vectors_are_learnt_as_by_pytorch() -> Result<()> {
    let Some(python) = engraft_tests::python::interpreter("ENGRAFT_TORCH") else { return Ok(()) };
    const RELATIONS: usize = 3;
    let key = CounterRng::new(6);
    let links: Vec<u32> =
        (0..ROWS as u64 / 3).map(|at| u32::try_from(key.bits(at) % 3).unwrap_or(0)).collect();
    let vectors: Vec<f64> = (0..(ROWS * WIDTH) as u64).map(|at| key.named("vectors").normal(at)).collect();
    let spec = Spec::new("outputs.names.weight", &[RELATIONS, WIDTH], Init::Normal(0.5));
    let params = Params::fresh(&[spec], 1, &Device::Cpu)?;
    let moves_rd = params.get("outputs.names.weight")?;
    let moves: Vec<Vec<f32>> = moves_rd.to_vec2()?;
    let cases: Vec<Value> = [0.3, 1.0, 5.0]
        .map(|margin| {
            let vectors: Vec<&[f64]> = vectors.chunks(WIDTH).collect();
            json!({ "vectors": vectors, "relations": moves, "links": links, "margin": margin })
        })
        .to_vec();
    let folder = tempfile::tempdir()?;
    for (said, case) in said_of(&python, &cases, folder.path())?.iter().zip(&cases) {
        let x = Var::from_tensor(
            &Tensor::from_vec(vectors.clone(), (ROWS, WIDTH), &Device::Cpu)?.to_dtype(DType::F32)?,
        )?;
        let mut rows = Rows::default();
        (0..ROWS).for_each(|_| rows.push([(2, 0)]));
        let batch = Batch { task: 0, rows, targets: Targets::Links(links.clone()) };
        let spans: Vec<Span> = (0..ROWS).map(|start| Span { start, len: 1 }).collect();
        let output = Output::Translation {
            relations: RELATIONS,
            margin: case["margin"].as_f64().context("a margin")?,
        };
        let found = outputs(output, &params)?.loss(x.as_tensor(), &spans, &batch, None)?.loss;
        let grads = found.backward()?;
        let (loss, expected) =
            (f64::from(found.to_scalar::<f32>()?), said["loss"].as_f64().context("a loss")?);
        assert!((loss - expected).abs() <= 1e-5 * (1.0 + expected) && expected > 0.0, "{loss} {expected}");
        let golden: Vec<Vec<f32>> = serde_json::from_value(said["gradient"].clone())?;
        let own = [grads.get(&x), grads.get(&moves_rd)];
        let own: Vec<f32> = own
            .into_iter()
            .map(|grad| Ok(grad.context("a gradient")?.flatten_all()?.to_vec1::<f32>()?))
            .collect::<Result<Vec<_>>>()?
            .concat();
        assert_eq!(own.len(), golden.concat().len());
        for (found, golden) in own.iter().zip(golden.concat()) {
            assert!((found - golden).abs() <= 1e-5 * (1.0 + golden.abs()), "{found} {golden}");
        }
    }
    Ok(())
}

/// What Python says of cases.
fn said_of(python: &OsStr, cases: &[Value], folder: &Path) -> Result<Vec<Value>> {
    let [asked, said] = ["cases.json", "said.json"].map(|name| folder.join(name));
    write_whole(&asked, &serde_json::to_vec(cases)?)?;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("python/metric.py");
    let output = Command::new(python).arg(script).arg(&asked).arg(&said).output()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said: Vec<Value> = serde_json::from_slice(&std::fs::read(&said)?)?;
    assert_eq!(said.len(), cases.len());
    Ok(said)
}

#[test]
fn losses_and_gradients_are_those_of_pytorch_metric_learning() -> Result<()> {
    let Some(python) = engraft_tests::python::interpreter("ENGRAFT_TORCH") else { return Ok(()) };
    let key = CounterRng::new(5);
    let (similarity, contrast) = (PairLoss::default(), PairLoss::InfoNce { temperature: 0.07 });
    let other = PairLoss::MultiSimilarity { alpha: 2.0, beta: 20.0, base: 0.1 };
    // What NTXentLoss makes of a miner's triplets counts a pair once for each of them; ours counts it once.
    let kinds = [
        (similarity, Some(0.2)),
        (similarity, None),
        (similarity, Some(0.0)),
        (other, Some(0.5)),
        (contrast, None),
    ];
    let mut cases = vec![];
    for (number, (loss, margin)) in (0_u64..).zip(kinds) {
        for few in [3, 12] {
            let draw = key.branch(number).branch(few);
            let classes: Vec<u32> =
                (0..ROWS as u64).map(|row| u32::try_from(draw.bits(row) % few).unwrap_or(0)).collect();
            let vectors: Vec<f64> = (0..(ROWS * WIDTH) as u64).map(|at| draw.normal(at)).collect();
            cases.push((classes, vectors, loss, margin));
        }
    }
    let told = |(classes, vectors, loss, margin): &(Vec<u32>, Vec<f64>, PairLoss, Option<f64>)| json!({ "classes": classes, "vectors": vectors.chunks(WIDTH).collect::<Vec<_>>(), "loss": loss, "margin": margin });
    let folder = tempfile::tempdir()?;
    let said = said_of(&python, &cases.iter().map(told).collect::<Vec<_>>(), folder.path())?;
    for (said, (classes, vectors, loss, margin)) in said.iter().zip(&cases) {
        let golden: Vec<Vec<f64>> = serde_json::from_value(said["gradient"].clone())?;
        let expected = said["loss"].as_f64().context("a loss")?;
        for (dtype, slack) in [(DType::F64, 2e-6), (DType::F32, 2e-5)] {
            let vectors_md =
                Tensor::from_vec(vectors.clone(), (ROWS, WIDTH), &Device::Cpu)?.to_dtype(dtype)?;
            let (found, gradient) = ours(&vectors_md, classes, *loss, *margin)?;
            assert!(
                (found - expected).abs() <= slack * (1.0 + expected),
                "{loss:?} {margin:?}: {found} {expected}"
            );
            for (found, golden) in gradient.iter().zip(golden.iter().flatten()) {
                assert!(
                    (found - golden).abs() <= slack * (1.0 + golden.abs()),
                    "{loss:?} {margin:?}: {found} {golden}"
                );
            }
        }
        assert!(expected > 0.0 && golden.iter().flatten().any(|number| *number != 0.0));
    }
    Ok(())
}
