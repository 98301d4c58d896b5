//! The output of masked words as published checkpoints have it (`BertForMaskedLM`, `RobertaForMaskedLM`), in and out.

use std::collections::BTreeMap;

use batch::family::Family;
use candle_core::{Device, Tensor};

use super::stored::Stored;
use crate::Error;

/// The name of its layer among the outputs.
pub(crate) const NAME: &str = "masked_lm";

/// Its parameters behind the name of the layer, and as `transformers` calls them: BERT's, RoBERTa's, and other names of either. The decoder is the
/// table of token embeddings.
const PUBLISHED: [(&str, &[&str]); 5] = [
    ("dense.weight", &["cls.predictions.transform.dense.weight", "lm_head.dense.weight"]),
    ("dense.bias", &["cls.predictions.transform.dense.bias", "lm_head.dense.bias"]),
    (
        "LayerNorm.weight",
        &[
            "cls.predictions.transform.LayerNorm.weight",
            "lm_head.layer_norm.weight",
            "cls.predictions.transform.LayerNorm.gamma",
        ],
    ),
    (
        "LayerNorm.bias",
        &[
            "cls.predictions.transform.LayerNorm.bias",
            "lm_head.layer_norm.bias",
            "cls.predictions.transform.LayerNorm.beta",
        ],
    ),
    (
        "decoder.bias",
        &["cls.predictions.bias", "lm_head.bias", "cls.predictions.decoder.bias", "lm_head.decoder.bias"],
    ),
];

/// The name under which `transformers` keeps a parameter of the output, given its name among the outputs.
pub(crate) fn published_name(name: &str, family: Family) -> Option<&'static str> {
    let inner = name.strip_prefix(NAME)?.strip_prefix('.')?;
    let place = usize::from(!family.is_bert());
    PUBLISHED.iter().find(|(own, _)| *own == inner).map(|(_, published)| published[place])
}

/// Those among the names of a checkpoint's tensors that the output is read from; none unless it is whole.
#[must_use]
pub fn published(names: &[String]) -> Vec<String> {
    let find = |of: &[&str]| names.iter().find(|name| of.contains(&name.as_str())).cloned();
    PUBLISHED.iter().map(|(_, of)| find(of)).collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// The first parameter that a file lacks, under its name among the outputs and under published ones.
pub(crate) fn lacking(stored: &Stored) -> Option<String> {
    let names = PUBLISHED.iter().map(|(inner, published)| (format!("{NAME}.{inner}"), published));
    let has = |own: &str, published: &[&str]| {
        std::iter::once(own).chain(published.iter().copied()).any(|name| stored.shape(name).is_some())
    };
    names.into_iter().find(|(own, published)| !has(own, published)).map(|(own, _)| own)
}

/// The tensors of the output in a file that lacks none, by their names among the outputs.
pub(crate) fn read(stored: &Stored, device: &Device) -> Result<BTreeMap<String, Tensor>, Error> {
    let each = PUBLISHED.iter().map(|(inner, published)| {
        let own = format!("{NAME}.{inner}");
        let mut names = std::iter::once(own.as_str()).chain(published.iter().copied());
        let found = names.find(|name| stored.shape(name).is_some()).unwrap_or(&own);
        let tensor = stored.read(found, device)?;
        Ok((own, tensor))
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_published_output_is_found_where_it_is_whole() {
        let all = |without: usize| {
            let names = PUBLISHED.iter().enumerate().filter(|(at, _)| *at != without);
            names.map(|(_, (_, names))| names[names.len() - 1].to_owned()).collect::<Vec<String>>()
        };
        let whole = [vec!["cls.seq_relationship.bias".to_owned()], all(9)].concat();
        assert_eq!(published(&whole), all(9));
        assert!(published(&all(2)).is_empty());
        let named = |name| [Family::Bert, Family::Roberta].map(|family| published_name(name, family));
        assert_eq!(named("masked_lm.decoder.bias"), [Some("cls.predictions.bias"), Some("lm_head.bias")]);
        assert_eq!(named("masked_lm.decoder.weight"), [None, None]);
        assert_eq!(named("relation.bias"), [None, None]);
    }
}
