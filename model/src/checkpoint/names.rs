//! The names under which published files keep what this encoder needs.

use super::classifier::OWN;
use super::published::{self, FAMILIES};

/// Endings of TensorFlow's layer norms, and the usual ones.
const ENDINGS: [(&str, &str); 2] =
    [(".LayerNorm.gamma", ".LayerNorm.weight"), (".LayerNorm.beta", ".LayerNorm.bias")];

/// Outputs of published models; an encoder leaves them out.
const OUTPUTS: [&str; 4] = ["cls.", "classifier.", "lm_head.", "qa_outputs."];

/// A table 0, 1, 2, ... that old versions of transformers stored.
const POSITION_IDS: &str = "embeddings.position_ids";

/// The encoder's name of a parameter in a file, `None` for what belongs to an output.
pub(crate) fn encoder_name(name: &str) -> Option<String> {
    let prefixes = FAMILIES.map(|family| published::of(family).prefix);
    let prefixes = prefixes.into_iter().chain([OWN]);
    let inner = prefixes.into_iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    if inner == POSITION_IDS || OUTPUTS.iter().any(|output| name.starts_with(output)) {
        return None;
    }
    let known = ENDINGS.iter().find_map(|(old, new)| Some(format!("{}{new}", inner.strip_suffix(old)?)));
    Some(known.unwrap_or_else(|| inner.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_and_prefixed_names_are_mapped() {
        let mapped = |name| encoder_name(name);
        assert_eq!(mapped("bert.pooler.dense.bias").as_deref(), Some("pooler.dense.bias"));
        let norm = "bert.encoder.layer.0.output.LayerNorm.gamma";
        assert_eq!(mapped(norm).as_deref(), Some("encoder.layer.0.output.LayerNorm.weight"));
        assert_eq!(mapped("embeddings.LayerNorm.beta").as_deref(), Some("embeddings.LayerNorm.bias"));
        assert_eq!(mapped("engraft.pooler.dense.bias").as_deref(), Some("pooler.dense.bias"));
        assert_eq!(mapped("roberta.pooler.dense.bias").as_deref(), Some("pooler.dense.bias"));
        assert_eq!(mapped("cls.predictions.bias").or(mapped("lm_head.layer_norm.bias")), None);
        assert_eq!(mapped("bert.embeddings.position_ids"), None);
    }
}
