//! KAM-BERT's attention against golden numbers computed with PyTorch (part g).
//!
//! The folder is `ENGRAFT_GOLDENS`, or `tests/fixtures/golden`.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use batch::task::Task;
use batch::{Batch, Targets};
use candle_core::{DType, Device, Tensor};
use engraft_tests::golden::{self, Golden, folder, json};
use model::attention::kam::{Auxiliary, Kam, Merge, Settings, Skip};
use model::attention::{Composed, Sibling};
use model::checkpoint;
use model::encoder::config::Config;
use model::encoder::tokens::{Knowledge, Span, Tokens};
use model::encoder::{Encoder, Pass};
use model::nn::gradients::gradients;
use model::params::Params;

/// What a variant's name says.
pub(crate) fn settings(variant: &str, alpha: f64) -> Result<(Settings, &'static str)> {
    let of = |alpha, skip, auxiliary| Settings { maps: 3, alpha, skip, auxiliary, merge: Merge::Convolution };
    if variant == "vanilla_alpha0" {
        return Ok((of(0.0, Skip::None, Auxiliary::Qk), "inputs_noaux"));
    }
    let (kind, skip) = variant.split_once(".skip_").context("a variant is KIND.skip_SKIP")?;
    let skip = match skip {
        "none" => Skip::None,
        "post_add" => Skip::PostAdd,
        "pre_add" => Skip::PreAdd,
        _ => bail!("{variant}: skip {skip}"),
    };
    Ok(match kind {
        "noaux" => (of(alpha, skip, Auxiliary::Qk), "inputs_noaux"),
        "aux_zero_pad" => (of(alpha, skip, Auxiliary::ZeroPad), "inputs_aux"),
        "aux_qk" => (of(alpha, skip, Auxiliary::Qk), "inputs_aux"),
        _ => bail!("{variant}: {kind}"),
    })
}

/// The samples of a set of inputs.
struct Samples {
    tokens: Tokens,
    own: Vec<Span>,
    real: Vec<usize>,
}

impl Samples {
    fn new(golden: &Golden, inputs: &str, config: &Config, maps: usize) -> Result<Self> {
        let count = |name: &str| golden.integers::<usize>(&format!("{inputs}.{name}"));
        let (real, auxiliary) = (count("n_real")?, count("n_aux")?);
        let lengths: Vec<usize> = real.iter().zip(&auxiliary).map(|(real, aux)| real + aux).collect();
        let (rows, width) = golden.get(&format!("{inputs}.input_ids"))?.dims2()?;
        let cells = lengths.iter().flat_map(|len| (0..width).map(move |at| u32::from(at < *len)));
        let batch = Batch {
            task: Task::Relation,
            rows,
            width,
            input_ids: golden.integers(&format!("{inputs}.input_ids"))?,
            attention_mask: cells.collect(),
            token_type_ids: vec![0; rows * width],
            position_ids: vec![],
            segment_ids: vec![],
            samples: vec![],
            targets: Targets::Classes(vec![]),
        };
        let mut tokens = golden::tokens(&[&batch.one_per_row()], config)?;
        let stored = golden.get(&format!("{inputs}.maps"))?;
        let mut numbers = vec![];
        for (row, len) in lengths.iter().enumerate() {
            let of = stored.get(row)?.narrow(1, 0, *len)?.narrow(2, 0, *len)?;
            numbers.extend(of.flatten_all()?.to_vec1::<f32>()?);
        }
        let knowledge = Knowledge::new(numbers, maps, real.clone(), &tokens.spans, &Device::Cpu)?;
        let own = knowledge.real(&tokens.spans);
        tokens.knowledge = Some(knowledge);
        Ok(Samples { tokens, own, real })
    }
}

/// The squares of a sample in a golden `[b, h, t, t]`, rows and columns as far as asked.
fn square(golden: &Tensor, row: usize, [rows, columns]: [usize; 2]) -> Result<Tensor> {
    Ok(golden.get(row)?.narrow(1, 0, rows)?.narrow(2, 0, columns)?)
}

fn compare(golden: &mut Golden, variant: &str, alpha: f64) -> Result<()> {
    let (settings, inputs) = settings(variant, alpha)?;
    let checkpoint::Checkpoint { config, params, .. } =
        checkpoint::load(&folder().join("model"), &Device::Cpu)?;
    let specs = settings.specs(&config);
    let stored = |name: &str| name.replace("outputs.knowledge.layer.", "kam.").replace("convolution", "conv");
    let tensors: BTreeMap<String, Tensor> = specs
        .iter()
        .map(|s| Ok((s.name.clone(), golden.get(&stored(&s.name))?.clone())))
        .collect::<Result<_>>()?;
    let params = params.with(Params::from_tensors(&specs, tensors)?);
    let (encoder, kam) = (Encoder::new(&config, &params)?, Kam::new(&settings, &config, &params)?);
    let Samples { tokens, own, real } = Samples::new(golden, inputs, &config, settings.maps)?;
    let hidden = encoder.forward(&config, &tokens, &Pass { attention: &kam, ..Pass::PLAIN })?;
    let last_nd = hidden.last().context("an encoder has hidden states")?;

    let (mut losses, name) = (vec![], format!("{variant}.last_hidden_real_rows"));
    let (golden_btd, weights_btd) = (golden.get(&name)?.clone(), golden.get("loss_weights")?.clone());
    for (row, Span { start, len }) in own.into_iter().enumerate() {
        let found = last_nd.narrow(0, start, len)?;
        golden.compare(&name, &found, &golden_btd.get(row)?.narrow(0, 0, len)?)?;
        losses.push((found * weights_btd.get(row)?.narrow(0, 0, len)?)?.sum_all()?);
    }
    let loss = (Tensor::stack(&losses, 0)?.sum_all()? / real.iter().sum::<usize>() as f64)?;
    golden.compare_all(&format!("{variant}.loss"), &loss)?;

    let inside = encoder.inspect(&hidden[..config.num_hidden_layers], &tokens, &kam)?;
    for (l, Composed { probs_bhtt, .. }) in inside.iter().enumerate() {
        let name = format!("{variant}.attention.{l}");
        let expected = golden.get(&name)?.clone();
        for (row, span) in tokens.spans.iter().enumerate() {
            let cells = [real[row], span.len];
            golden.compare(&name, &square(probs_bhtt, row, cells)?, &square(&expected, row, cells)?)?;
        }
    }
    for (l, Composed { merged_bhtt, .. }) in inside.iter().enumerate() {
        let found = merged_bhtt.as_ref().context("KAM-BERT merges")?;
        let name = format!("{variant}.A_sem_valid.{l}");
        let Ok(expected) = golden.get(&name).cloned() else { continue };
        for (row, span) in tokens.spans.iter().enumerate() {
            let cells = [span.len; 2];
            golden.compare(&name, &square(found, row, cells)?, &square(&expected, row, cells)?)?;
        }
    }
    let found = gradients(&loss)?;
    for (name, param) in params.iter() {
        let stored = format!("{variant}.grad.{}", stored(name));
        match (golden.get(&stored).is_ok(), found.get(param)) {
            (true, Some(grad)) => golden.compare_all(&stored, &grad.to_dtype(DType::F32)?)?,
            (true, None) => golden.compare_all(&stored, &param.zeros_like()?)?,
            (false, _) => {}
        }
    }
    Ok(())
}

#[test]
fn states_maps_losses_and_gradients_of_every_variant() -> Result<()> {
    let mut golden = Golden::open("g_kam")?;
    let all = json("g_kam")?;
    let alpha = all["alpha"].as_f64().context("alpha is a number")?;
    let variants: Vec<String> =
        all["runs"].as_object().context("runs is an object")?.keys().cloned().collect();
    for variant in &variants {
        compare(&mut golden, variant, alpha).context(variant.clone())?;
    }
    golden.complete(|name| variants.iter().any(|variant| name.starts_with(variant.as_str())));
    Ok(())
}
