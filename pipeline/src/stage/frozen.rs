//! Names that `frozen` lists, before there is a model to look for them in.

use model::encoder::Encoder;
use model::encoder::config::Config as Sizes;

/// What the names of an encoder's parameters begin with.
const ENCODER: [&str; 3] = ["embeddings.", "encoder.layer.", "pooler."];

/// Refuses a prefix with which no parameter begins. `sizes` are the encoder's, if they are known; names of task heads begin with `outputs`.
///
/// # Errors
/// Names it, by `key`.
pub(super) fn check(
    key: &str,
    frozen: &[String],
    sizes: Option<&Sizes>,
    outputs: &[&str],
) -> anyhow::Result<()> {
    let names: Option<Vec<String>> =
        sizes.map(|sizes| Encoder::specs(sizes).into_iter().map(|spec| spec.name).collect());
    let meet = |one: &str, other: &str| one.starts_with(other) || other.starts_with(one);
    for prefix in frozen {
        let of_encoder = match &names {
            Some(names) => names.iter().any(|name| name.starts_with(prefix)),
            None => ENCODER.iter().any(|name| meet(name, prefix)),
        };
        let of_outputs = match outputs {
            [] => String::new(),
            names => format!(", those of task heads with {}", names.join(", ")),
        };
        anyhow::ensure!(
            of_encoder || outputs.iter().any(|name| meet(name, prefix)),
            "{key} has {prefix:?}, with which no parameter begins: the encoder's begin with embeddings., encoder.layer.{} or pooler.{of_outputs}",
            sizes.map_or_else(String::new, |sizes| format!(
                "0. to encoder.layer.{}.",
                sizes.num_hidden_layers - 1
            ))
        );
    }
    Ok(())
}
