//! Tests of head importances on a small encoder: against one sample alone, against differences, and the normalisations by hand.

use candle_core::Device;

use super::*;
use crate::attention::plain::Plain;
use crate::encoder::config::tests::tiny;
use crate::encoder::tokens::tests;
use crate::nn::check::{distance, numbers, randn};
use crate::params::Params;

const SHAPE: [usize; 2] = [2, 4];

fn encoder() -> Encoder {
    let params = Params::fresh(&Encoder::specs(&tiny()), 3, &Device::Cpu).unwrap();
    Encoder::new(&tiny(), &params.freeze(|_| true)).unwrap()
}

fn read(rows: &[&[u32]]) -> Tokens {
    tests::tokens(rows, &tiny(), &Device::Cpu)
}

/// A loss that is a sum over samples, each of its first token.
fn loss(tokens: &Tokens) -> impl Fn(&Tensor) -> TensorResult<Tensor> + '_ {
    |x_nd| {
        let starts: Vec<u32> = tokens.spans.iter().map(|span| u32::try_from(span.start).unwrap()).collect();
        let x_sd = x_nd.index_select(&Tensor::new(starts, x_nd.device())?, 0)?;
        x_sd.broadcast_mul(&randn(5, &[1, 16]))?.sin()?.sum_all()
    }
}

fn soft() -> Mask {
    Mask::new(SHAPE, vec![1.0, 0.5, 0.0, 1.0, 0.2, 1.0, 1.0, 0.0]).unwrap()
}

fn gradients(tokens: &Tokens, each: Each) -> Tensor {
    let (encoder, config, mask) = (encoder(), tiny(), soft());
    let probe = Probe { encoder: &encoder, config: &config, attention: &Plain, mask: &mask, read: Read::All };
    probe.gradients(tokens, each, loss(tokens)).unwrap().unwrap()
}

const ROWS: [&[u32]; 3] = [&[2, 9, 8, 3], &[2, 3], &[2, 7, 7, 11, 3]];

#[test]
fn a_sample_has_the_gradient_that_it_has_alone() {
    let together = gradients(&read(&ROWS), Each::Sample);
    assert_eq!(together.dims(), [3, 2, 4]);
    for (i, row) in ROWS.iter().enumerate() {
        let alone = gradients(&read(&[row]), Each::Sample);
        assert!(distance(&together.narrow(0, i, 1).unwrap(), &alone) < 1e-5, "sample {i}");
    }
}

#[test]
fn gradients_of_tokens_add_up_to_those_of_samples_and_to_differences() {
    let tokens = read(&ROWS);
    let (samples, tokens_nlh) = (gradients(&tokens, Each::Sample), gradients(&tokens, Each::Token));
    for (i, span) in tokens.spans.iter().enumerate() {
        let sum = tokens_nlh.narrow(0, span.start, span.len).unwrap().sum_keepdim(0).unwrap();
        assert!(distance(&sum, &samples.narrow(0, i, 1).unwrap()) < 1e-5, "sample {i}");
    }
    let (encoder, config) = (encoder(), tiny());
    let at = |place: usize, by: f32| {
        let mut gates = soft().values().to_vec();
        gates[place] += by;
        let gates = Tensor::from_vec(gates, (2, 4), &Device::Cpu).unwrap();
        let pass = Pass { gates: Gates::Shared(&gates), ..Pass::PLAIN };
        let hidden = encoder.forward(&config, &tokens, &pass).unwrap();
        numbers(&loss(&tokens)(hidden.last().unwrap()).unwrap())[0]
    };
    let total = numbers(&samples.sum(0).unwrap());
    for (place, exact) in total.iter().enumerate() {
        let estimate = (at(place, 1e-2) - at(place, -1e-2)) / 2e-2;
        assert!(
            (estimate - exact).abs() < 5e-3 * (1.0 + exact.abs()),
            "head {place}: {exact}, differences {estimate}"
        );
    }
}

/// Importances of given gradients, batches of one row each but for the last, of two.
fn folded(method: Method, mask: &Mask) -> Importance {
    let mut importance = Importance::new(method, [2, 2]);
    for rows in [vec![vec![1.0, -2.0, 0.0, 4.0]], vec![vec![-3.0, 2.0, 1.0, 0.0], vec![1.0, 2.0, -2.0, 0.0]]]
    {
        importance.batches += 1;
        importance.samples += rows.len() as u64;
        importance.tokens += 4;
        importance.fold(&rows, rows.len() as f64, mask);
    }
    importance
}

#[test]
fn each_method_adds_up_what_it_says() {
    let ones = Mask::all_kept([2, 2]);
    let raw = |method| folded(method, &ones).finish(WithinLayer::Raw, AcrossLayers::Raw).unwrap();
    assert_eq!(raw(Method::PerSample), [5.0, 6.0, 3.0, 4.0]);
    assert_eq!(raw(Method::PerBatch), [2.0, 4.0, 0.5, 4.0]);
    // 1 + |1 - 1|, 2 + |-2 + 2|, 0 + |0 - 0.5|, 4 + |4 + 0|, over 8 tokens.
    assert_eq!(raw(Method::Accumulated), [1.0 / 8.0, 2.0 / 8.0, 0.5 / 8.0, 8.0 / 8.0]);
    // 8 tokens, and 3 samples in the last layer.
    assert_eq!(raw(Method::TokenLevel), [3.0 / 8.0, 4.0 / 8.0, 1.5 / 3.0, 4.0 / 3.0]);
    let gated = folded(Method::TokenLevel, &Mask::new([2, 2], vec![0.5, 0.0, 1.0, 1.0]).unwrap());
    assert_eq!(
        gated.finish(WithinLayer::Raw, AcrossLayers::Raw).unwrap(),
        [1.5 / 8.0, 0.0, 1.5 / 3.0, 4.0 / 3.0]
    );
}

#[test]
fn normalising_a_layer_comes_before_normalising_all() {
    let found = folded(Method::PerSample, &Mask::all_kept([2, 2]));
    let l2 = [5.0 / 61.0_f64.sqrt(), 6.0 / 61.0_f64.sqrt(), 0.6, 0.8];
    let close = |a: Vec<f64>, b: &[f64]| a.iter().zip(b).all(|(x, y)| (x - y).abs() < 1e-12);
    assert!(close(found.finish(WithinLayer::L2, AcrossLayers::Raw).unwrap(), &l2));
    let spread: Vec<f64> = l2.iter().map(|x| (x - 0.6) / (0.8 - 0.6)).collect();
    assert!(close(found.finish(WithinLayer::L2, AcrossLayers::MinMax).unwrap(), &spread));
    assert!(close(
        found.finish(WithinLayer::Raw, AcrossLayers::MinMax).unwrap(),
        &[2.0 / 3.0, 1.0, 0.0, 1.0 / 3.0]
    ));
}

#[test]
fn what_measures_nothing_is_said() {
    let (encoder, config) = (encoder(), tiny());
    let tokens = read(&ROWS);
    let measured = |mask: &Mask, loss: &dyn Fn(&Tensor) -> TensorResult<Tensor>| {
        let mut importance = Importance::new(Method::PerSample, SHAPE);
        importance.add(
            &Probe { encoder: &encoder, config: &config, attention: &Plain, mask, read: Read::All },
            &tokens,
            loss,
        )?;
        importance.finish(WithinLayer::L2, AcrossLayers::MinMax)
    };
    let text = |mask: &Mask, loss: &dyn Fn(&Tensor) -> TensorResult<Tensor>| {
        measured(mask, loss).unwrap_err().to_string()
    };
    let ones = Mask::all_kept(SHAPE);
    assert!(text(&Mask::all_kept([1, 4]), &loss(&tokens)).contains("for 1 layers of 4 heads"));
    assert!(
        text(&ones, &|x| x.detach().sum_all()).contains("batch 1: the loss does not depend on the heads")
    );
    assert!(text(&ones, &|x| x.sum_all()? * 0.0).contains("does not depend on the heads"));
    assert!(
        text(&ones, &|x| x.sum_all()? * f64::NAN)
            .contains("batch 1: the gate's gradient of layer 0, head 0 (from 0) is NaN")
    );
    let none = Importance::new(Method::PerBatch, SHAPE).finish(WithinLayer::Raw, AcrossLayers::Raw);
    assert!(none.unwrap_err().to_string().contains("no batch was measured"));
    let mut flat = Importance::new(Method::PerBatch, [1, 2]);
    flat.batches = 1;
    assert!(
        flat.finish(WithinLayer::Raw, AcrossLayers::MinMax)
            .unwrap_err()
            .to_string()
            .contains("same importance, 0")
    );
}

/// Importances of [`ROWS`] in samples of one or several rows.
fn measured(method: Method, samples: Samples<'_>) -> Result<Vec<f64>, Error> {
    let (encoder, config, mask, tokens) = (encoder(), tiny(), soft(), read(&ROWS));
    let mut importance = Importance::new(method, SHAPE);
    let probe = Probe { encoder: &encoder, config: &config, attention: &Plain, mask: &mask, read: Read::All };
    importance.add_samples(&probe, &tokens, samples, loss(&tokens))?;
    assert_eq!(
        importance.samples,
        if let Samples::Groups(groups) = samples { groups.len() as u64 } else { 3 }
    );
    importance.finish(WithinLayer::Raw, AcrossLayers::Raw)
}

#[test]
fn gradients_of_a_group_are_added_up_before_their_absolute_value() {
    let slh = gradients(&read(&ROWS), Each::Sample).to_dtype(DType::F64).unwrap();
    let rows = slh.flatten(1, 2).unwrap().to_vec2::<f64>().unwrap();
    let close = |found: Vec<f64>, expected: &dyn Fn(usize) -> f64| {
        for (at, x) in found.into_iter().enumerate() {
            assert!((x - expected(at)).abs() < 1e-9, "head {at}: {x}, expected {}", expected(at));
        }
    };
    let two = Samples::Groups(&[1, 2]);
    close(measured(Method::PerSample, two).unwrap(), &|at| {
        rows[0][at].abs() + (rows[1][at] + rows[2][at]).abs()
    });
    // All the same, but there are two samples instead of three.
    let mean = |samples: f64, divisor: f64| {
        let rows = &rows;
        move |at: usize| (rows[0][at] + rows[1][at] + rows[2][at]).abs() / samples / divisor
    };
    close(measured(Method::PerBatch, two).unwrap(), &mean(2.0, 1.0));
    close(measured(Method::PerBatch, Samples::Spans).unwrap(), &mean(3.0, 1.0));
    close(measured(Method::Accumulated, two).unwrap(), &mean(2.0, 11.0));
    // Tokens count by themselves; in the last layer the sum is divided by the samples once more.
    let (by_two, by_three) =
        (measured(Method::TokenLevel, two).unwrap(), measured(Method::TokenLevel, Samples::Spans).unwrap());
    close(by_two, &|at| by_three[at] * if at < 4 { 1.5 } else { 2.25 });
    for method in [Method::PerSample, Method::PerBatch, Method::Accumulated, Method::TokenLevel] {
        let one_each = measured(method, Samples::Groups(&[1, 1, 1])).unwrap();
        assert_eq!(one_each, measured(method, Samples::Spans).unwrap());
    }
}

#[test]
fn groups_of_another_batch_are_refused() {
    let text =
        |groups: &[usize]| measured(Method::PerSample, Samples::Groups(groups)).unwrap_err().to_string();
    assert!(text(&[1, 1]).contains("batch 1: groups of [1, 1] spans are 2 together, the batch has 3"));
    assert!(text(&[3, 0]).contains("at least 1"));
    assert!(text(&[1; 20]).contains("[1, 1, 1, 1, 1, 1, 1, 1] and more spans are 20 together"));
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let measured = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let (encoder, config, mask, tokens) = (encoder(), tiny(), soft(), read(&ROWS));
            let mut importance = Importance::new(Method::TokenLevel, SHAPE);
            let probe =
                Probe { encoder: &encoder, config: &config, attention: &Plain, mask: &mask, read: Read::All };
            importance.add(&probe, &tokens, loss(&tokens)).unwrap();
            importance.finish(WithinLayer::L2, AcrossLayers::MinMax).unwrap()
        })
    };
    assert_eq!(measured(1), measured(3));
}

#[test]
fn gates_of_another_shape_are_refused() {
    let (tokens, config) = (read(&ROWS), tiny());
    let refused = |gates: Gates<'_>| {
        encoder().forward(&config, &tokens, &Pass { gates, ..Pass::PLAIN }).unwrap_err().to_string()
    };
    // Two heads would gate the four in pairs, and of four layers the first two would count.
    for shape in [&[2, 2][..], &[4, 4], &[2, 4, 1]] {
        let text = refused(Gates::Shared(&randn(1, shape)));
        assert!(text.contains("need [2, 4]") && text.contains("searched on this encoder"), "{text}");
    }
    assert!(refused(Gates::PerToken(&randn(1, &[1, 2, 4]))).contains("need [11, 2, 4]"));
    assert!(refused(Gates::PerSample(&randn(1, &[4, 2, 4]))).contains("need [3, 2, 4]"));
}
