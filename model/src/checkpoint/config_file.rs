//! `config.json` of a model of BERT's or RoBERTa's as `transformers` writes and reads it.

use std::path::Path;

use base::read::ReadError;
use batch::family::Family;
use serde_json::{Map, Value, json};

use super::classifier::Classifier;
use super::published::{self, FAMILIES};
use super::{error, whole};
use crate::Error;
use crate::encoder::config::Config;

/// Fields that change what is computed, with the one value that this encoder computes; a file may leave them out.
const FIXED: [(&str, &str); 3] =
    [("hidden_act", "\"gelu\""), ("position_embedding_type", "\"absolute\""), ("is_decoder", "false")];

/// Fields of [`Config`] that a file may leave out, with the values that `transformers` documents.
fn documented(family: Family) -> [(&'static str, Value); 4] {
    [
        ("type_vocab_size", json!(2)),
        ("initializer_range", json!(0.02)),
        ("layer_norm_eps", json!(1e-12)),
        ("pad_token_id", json!(published::of(family).pad_token_id)),
    ]
}

/// The fields of [`Config`].
const FIELDS: [&str; 12] = [
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "initializer_range",
    "layer_norm_eps",
    "pad_token_id",
];

pub(crate) fn read(path: &Path) -> Result<Config, Error> {
    let json = |source: serde_json::Error| error::json(path, &source);
    if !path.exists() {
        let expected = "the folder of a BERT or RoBERTa model: config.json, weights and a vocabulary";
        return Err(ReadError::new(path, "it is not there", expected, "give such a folder").into());
    }
    let fields: Map<String, Value> = serde_json::from_slice(&whole::read_settings(path)?).map_err(json)?;
    let family = family(path, &fields)?;
    let mut ours: Map<String, Value> = fields
        .into_iter()
        .filter(|(name, value)| FIELDS.contains(&name.as_str()) && !value.is_null())
        .collect();
    for (name, value) in documented(family) {
        ours.entry(name).or_insert(value);
    }
    let mut config: Config = serde_json::from_value(Value::Object(ours)).map_err(json)?;
    config.family = family;
    // None is left where there are only those that no token has.
    config.max_position_embeddings =
        config.max_position_embeddings.saturating_sub(published::unused_positions(&config));
    config.check().map_err(|source| error::in_file(path, source))?;
    Ok(config)
}

/// Whose model a file is of; of another family, or one that computes otherwise, none.
fn family(path: &Path, fields: &Map<String, Value>) -> Result<Family, Error> {
    let refuse =
        |field, found: String, expected: String| Err(error::architecture(path, field, found, expected));
    let said = fields.get("model_type").map(Value::to_string);
    let quoted = FAMILIES.map(|family| format!("{:?}", published::of(family).model_type));
    let Some(place) = quoted.iter().position(|of| Some(of) == said.as_ref()) else {
        return refuse("model_type", said.unwrap_or_else(|| "missing".to_owned()), quoted.join(" or "));
    };
    let family = FAMILIES[place];
    let architectures = published::of(family).architectures;
    if let Some(found) = fields.get("architectures").filter(|value| !value.is_null()) {
        let known = |name: &Value| name.as_str().is_some_and(|name| architectures.contains(&name));
        if !found.as_array().is_some_and(|names| names.iter().any(known)) {
            return refuse(
                "architectures",
                found.to_string(),
                format!("one of {}", architectures.join(", ")),
            );
        }
    }
    for (field, expected) in FIXED {
        if let Some(found) = fields.get(field).map(Value::to_string).filter(|found| found != expected) {
            return refuse(field, found, expected.to_owned());
        }
    }
    Ok(family)
}

/// `classifier` is the output that the file of weights has besides the encoder.
pub(crate) fn write(path: &Path, config: &Config, classifier: Option<&Classifier>) -> Result<(), Error> {
    let json = |source: serde_json::Error| error::json(path, &source);
    let mut fields = Map::new();
    let published = published::of(config.family);
    let architecture = classifier.map_or(published.architectures[0], |of| &of.architecture);
    fields.insert("architectures".to_owned(), json!([architecture]));
    fields.insert("model_type".to_owned(), published.model_type.into());
    for (field, value) in FIXED {
        fields.insert(field.to_owned(), serde_json::from_str(value).map_err(json)?);
    }
    if let Value::Object(ours) = serde_json::to_value(config).map_err(json)? {
        fields.extend(ours.into_iter().filter(|(name, _)| FIELDS.contains(&name.as_str())));
    }
    let positions = config.max_position_embeddings + published::unused_positions(config);
    fields.insert("max_position_embeddings".to_owned(), positions.into());
    if let Some(dropout) = classifier.and_then(|classifier| classifier.dropout) {
        fields.insert("classifier_dropout".to_owned(), dropout.into());
    }
    let mut text = serde_json::to_vec_pretty(&fields).map_err(json)?;
    text.push(b'\n');
    whole::write(path, &text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoder::config::tests::tiny;

    #[test]
    fn the_list_of_fields_is_that_of_the_struct() {
        let Value::Object(fields) = serde_json::to_value(tiny()).unwrap() else { panic!("an object") };
        assert_eq!(fields.keys().collect::<Vec<_>>(), FIELDS);
    }

    #[test]
    fn fields_left_out_have_their_documented_values() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("config.json");
        write(&path, &tiny(), None).unwrap();
        let mut fields: Map<String, Value> = serde_json::from_slice(&whole::read(&path).unwrap()).unwrap();
        for name in ["layer_norm_eps", "initializer_range", "position_embedding_type", "architectures"] {
            fields.remove(name);
        }
        whole::write(&path, &serde_json::to_vec(&fields).unwrap()).unwrap();
        assert_eq!(read(&path).unwrap(), Config { initializer_range: 0.02, layer_norm_eps: 1e-12, ..tiny() });
    }
}
