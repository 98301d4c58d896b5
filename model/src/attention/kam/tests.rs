//! The attention on slices against the composed one and against differences. Layers around it are the business of the layer's own tests.

use base::rng::CounterRng;
use candle_core::{DType, Device, Var};

use super::super::Heads;
use super::super::check::{Alone, attend};
use super::super::plain::Plain;
use super::*;
use crate::encoder::config::tests::tiny;
use crate::encoder::tokens::Tokens;
use crate::encoder::tokens::tests;
use crate::nn::check::{distance, gradients, numbers, randn};
use crate::nn::dropout::Dropout;
use crate::nn::gradients::gradients as all_gradients;

const HEADS: usize = 2;
const MAPS: usize = 3;
/// Tokens of each sample, and how many of them are real.
const LENGTHS: [(usize, usize); 3] = [(5, 3), (1, 1), (4, 4)];

fn tokens() -> Tokens {
    let rows: Vec<Vec<u32>> = LENGTHS.iter().map(|(len, _)| vec![1; *len]).collect();
    let rows: Vec<&[u32]> = rows.iter().map(Vec::as_slice).collect();
    let mut tokens = tests::tokens(&rows, &tiny(), &Device::Cpu);
    let cells: usize = LENGTHS.iter().map(|(len, _)| MAPS * len * len).sum();
    let maps = randn(77, &[cells]).abs().unwrap().to_vec1().unwrap();
    let real = LENGTHS.iter().map(|(_, real)| *real).collect();
    tokens.knowledge = Some(Knowledge::new(maps, MAPS, real, &tokens.spans, &Device::Cpu).unwrap());
    tokens
}

fn settings(skip: Skip, auxiliary: Auxiliary, merge: Merge) -> Settings {
    Settings { maps: MAPS, alpha: 0.3, skip, auxiliary, merge }
}

fn every() -> Vec<Settings> {
    let mut all = vec![];
    for skip in [Skip::PostAdd, Skip::PreAdd, Skip::None] {
        for auxiliary in [Auxiliary::ZeroPad, Auxiliary::Qk] {
            for merge in [Merge::Convolution, Merge::Mean] {
                all.push(settings(skip, auxiliary, merge));
            }
        }
    }
    all
}

/// The attention with one convolution for the layers that are asked.
fn kam(settings: &Settings, convolution: Option<[Tensor; 2]>) -> Kam {
    let convolutions =
        convolution.into_iter().cycle().take(if settings.merge == Merge::Convolution { 2 } else { 0 });
    Kam { settings: settings.clone(), convolutions: convolutions.collect() }
}

fn heads(dropout: Option<Dropout>) -> Heads {
    Heads { count: HEADS, dropout, seen: None }
}

/// The contexts of two layers, of which the second takes up the map of the first and looks at what comes out of it; arguments: queries, keys and
/// values of both, weights and bias.
fn both(settings: &Settings, dropout: Option<Dropout>, a: &[Tensor]) -> Result<Tensor> {
    let (heads, tokens) = (heads(dropout), tokens());
    let kam = kam(settings, Some([a[2].clone(), a[3].clone()]));
    let mut pass = kam.begin(&a[0], &tokens)?;
    let mut layer = |layer: usize, qkv: &Tensor| {
        attend(&mut *pass, &Alone { layer, heads: &heads, spans: &tokens.spans }, qkv)
    };
    let first = layer(0, &a[0])?;
    let between = (Tensor::cat(&[&first, &first, &first], 1)? * 0.5)?;
    let second = layer(1, &(&a[1] + between)?)?;
    first + second
}

fn arguments() -> [Tensor; 4] {
    let weight = (randn(3, &[HEADS, HEADS + MAPS, 3, 3]) * 0.4).unwrap();
    [randn(1, &[10, 12]), randn(2, &[10, 12]), weight, randn(4, &[HEADS])]
}

#[test]
fn both_forms_agree_in_values_gradients_and_dropout() {
    for settings in every() {
        for dropout in [None, Some(Dropout::new(CounterRng::new(1), 0.3))] {
            let run = |dtype| {
                let vars = arguments().map(|t| Var::from_tensor(&t.to_dtype(dtype).unwrap()).unwrap());
                let y = both(&settings, dropout, &vars.each_ref().map(|v| v.as_tensor().clone())).unwrap();
                let grads = all_gradients(&y.sin().unwrap().sum_all().unwrap()).unwrap();
                (y, vars.map(|var| grads.get(&var).cloned()))
            };
            let ((a, ga), (b, gb)) = (run(DType::F32), run(DType::F64));
            assert!(distance(&a, &b) < 2e-5, "{settings:?}: {}", distance(&a, &b));
            for (which, (a, b)) in ga.iter().zip(&gb).enumerate() {
                assert_eq!(a.is_some(), b.is_some(), "{settings:?} {which}");
                if let (Some(a), Some(b)) = (a, b) {
                    let size = numbers(b).iter().fold(1.0_f64, |top, x| top.max(x.abs()));
                    assert!(distance(a, b) < 3e-5 * size, "{settings:?} {which}: {}", distance(a, b));
                }
            }
        }
    }
}

#[test]
fn gradients_are_the_numerical_ones() {
    for settings in every() {
        let arguments = arguments();
        // Without a convolution there is nothing of it to learn.
        let given = if settings.merge == Merge::Convolution { 4 } else { 2 };
        let all = |a: &[Tensor]| [a, &arguments[given..]].concat();
        gradients(|a| both(&settings, None, &all(a)), &arguments[..given], 3e-3, 2e-2);
    }
}

#[test]
fn without_a_share_of_the_merged_attention_is_plain() {
    let none = Settings { alpha: 0.0, ..settings(Skip::None, Auxiliary::Qk, Merge::Convolution) };
    let [qkv, ..] = arguments();
    let (heads, tokens) = (heads(None), tokens());
    let kam = kam(&none, Some([arguments()[2].clone(), arguments()[3].clone()]));
    let alone = Alone::new(&heads, &tokens.spans);
    let found = attend(&mut *kam.begin(&qkv, &tokens).unwrap(), &alone, &qkv).unwrap();
    assert!(distance(&found, &attend(&mut Plain, &alone, &qkv).unwrap()) < 1e-6);
}

#[test]
fn the_number_of_threads_changes_no_bit_and_backward_can_be_repeated() {
    let settings = settings(Skip::PostAdd, Auxiliary::ZeroPad, Merge::Convolution);
    let bits = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let vars = arguments().map(|t| Var::from_tensor(&t).unwrap());
            let y = both(&settings, None, &vars.each_ref().map(|v| v.as_tensor().clone())).unwrap();
            let loss = y.sin().unwrap().sum_all().unwrap();
            let [first, second] = [0, 1].map(|_| {
                let grads = all_gradients(&loss).unwrap();
                vars.iter().flat_map(|var| numbers(grads.get(var).unwrap())).collect::<Vec<_>>()
            });
            assert_eq!(first, second);
            (numbers(&y), second)
        })
    };
    assert_eq!(bits(1), bits(3));
}

#[test]
fn an_attention_that_does_not_fit_is_an_error() {
    let settings = settings(Skip::None, Auxiliary::Qk, Merge::Convolution);
    // Knowledge of other maps or other samples than those of the pass.
    let [qkv, _, weight, bias] = arguments();
    let text = |maps: usize, order: [usize; 3]| {
        let kam = kam(&Settings { maps, ..settings.clone() }, Some([weight.clone(), bias.clone()]));
        let mut tokens = tokens();
        tokens.spans = order.map(|at| tokens.spans[at]).into();
        wrong(kam.begin(&randn(1, &[10, 4]), &tokens).map(|_| ()))
    };
    assert!(text(2, [0, 1, 2]).contains("3 maps a sample for an attention that merges 2"));
    assert!(text(3, [2, 1, 0]).contains("knowledge of samples of [5, 1, 4] tokens"));
    let none = Settings { alpha: f64::NAN, ..settings.clone() };
    let text = Kam::new(&none, &tiny(), &Params::from_vars(std::collections::BTreeMap::new())).unwrap_err();
    assert!(text.to_string().contains("alpha is NaN, expected a share from 0 to 1"), "{text}");
    let (heads, tokens, fewer) = (heads(None), tokens(), kam(&settings, None));
    let alone = Alone::new(&heads, &tokens.spans);
    let text = wrong(attend(&mut *fewer.begin(&qkv, &tokens).unwrap(), &alone, &qkv));
    assert!(text.contains("made for fewer layers"), "{text}");
}

/// What is said of something that must not be.
fn wrong<T: std::fmt::Debug>(found: Result<T>) -> String {
    found.unwrap_err().to_string()
}

#[test]
fn a_map_that_is_not_there_is_an_error() {
    let settings = settings(Skip::PostAdd, Auxiliary::Qk, Merge::Mean);
    let (kam, heads, tokens, qkv) = (kam(&settings, None), heads(None), tokens(), randn(1, &[10, 12]));
    let alone = Alone::new(&heads, &tokens.spans);
    let mut pass = kam.begin(&qkv, &tokens).unwrap();
    let [first, second] = [0, 1].map(|_| alone.at(&qkv, |at| pass.on_numbers(at)).unwrap().attention);
    let text = wrong(second.context(&[0.0; 120]).map(|_| ()));
    assert!(text.contains("the map of a layer without its forward pass"), "{text}");
    let text = wrong(first.gradient(&[0.0; 120], &[0.0; 40]).map(|_| ()));
    assert!(text.contains("the map of a layer without its forward pass"), "{text}");
    // One form behind the other.
    let text = wrong(alone.composed(&mut *pass, &qkv));
    assert!(text.contains("a composed layer behind one that is one operation"), "{text}");
    let mut pass = kam.begin(&qkv, &tokens).unwrap();
    alone.composed(&mut *pass, &qkv).unwrap();
    let text = wrong(attend(&mut *pass, &alone, &qkv));
    assert!(text.contains("a layer that is one operation behind a composed one"), "{text}");
}

#[test]
fn knowledge_that_does_not_fit_is_an_error() {
    let text = |maps: usize, real: &[usize]| {
        Knowledge::new(vec![0.0; maps], MAPS, real.to_vec(), &tokens().spans, &Device::Cpu)
            .unwrap_err()
            .to_string()
    };
    assert!(text(7, &[3, 1, 4]).contains("7 numbers of maps, 3 maps of these samples have 126"));
    assert!(text(126, &[3, 1]).contains("2 numbers of real tokens for 3 samples"));
    assert!(text(126, &[3, 1, 5]).contains("sample 2: 5 real tokens of 4"));
    let settings = settings(Skip::None, Auxiliary::Qk, Merge::Convolution);
    let [a, b, _, bias] = arguments();
    let wrong = [a, b, randn(1, &[2, 4, 3, 3]), bias];
    let text = both(&settings, None, &wrong).unwrap_err().to_string();
    assert!(text.contains("a convolution of shape [2, 4, 3, 3] for 2 heads and 3 maps"), "{text}");
}
