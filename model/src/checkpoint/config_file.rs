//! `config.json` of a BERT model as `transformers` writes and reads it.

use std::path::Path;

use base::read::ReadError;
use serde_json::{Map, Value, json};

use super::{error, whole};
use crate::Error;
use crate::encoder::config::Config;

/// Models whose encoder this is.
const ARCHITECTURES: [&str; 7] = [
    "BertModel",
    "BertForPreTraining",
    "BertForMaskedLM",
    "BertForNextSentencePrediction",
    "BertForSequenceClassification",
    "BertForTokenClassification",
    "BertForQuestionAnswering",
];

/// Fields that change what is computed, with the one value that this encoder computes; a file may leave out all but
/// the first.
const FIXED: [(&str, &str); 4] = [
    ("model_type", "\"bert\""),
    ("hidden_act", "\"gelu\""),
    ("position_embedding_type", "\"absolute\""),
    ("is_decoder", "false"),
];

/// Fields of [`Config`] that a file may leave out, with the values that `transformers.BertConfig` documents.
fn documented() -> [(&'static str, Value); 4] {
    [
        ("type_vocab_size", json!(2)),
        ("initializer_range", json!(0.02)),
        ("layer_norm_eps", json!(1e-12)),
        ("pad_token_id", json!(0)),
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
        let expected = "the folder of a BERT model: config.json, weights and a vocabulary";
        return Err(ReadError::new(path, "it is not there", expected, "give such a folder").into());
    }
    let fields: Map<String, Value> = serde_json::from_slice(&whole::read_settings(path)?).map_err(json)?;
    check_kind(path, &fields)?;
    let mut ours: Map<String, Value> = fields
        .into_iter()
        .filter(|(name, value)| FIELDS.contains(&name.as_str()) && !value.is_null())
        .collect();
    for (name, value) in documented() {
        ours.entry(name).or_insert(value);
    }
    let config: Config = serde_json::from_value(Value::Object(ours)).map_err(json)?;
    config.check().map_err(|source| error::in_file(path, source))?;
    Ok(config)
}

fn check_kind(path: &Path, fields: &Map<String, Value>) -> Result<(), Error> {
    let refuse =
        |field, found: String, expected: String| Err(error::architecture(path, field, found, expected));
    if let Some(found) = fields.get("architectures").filter(|value| !value.is_null()) {
        let known = |name: &Value| name.as_str().is_some_and(|name| ARCHITECTURES.contains(&name));
        if !found.as_array().is_some_and(|names| names.iter().any(known)) {
            return refuse(
                "architectures",
                found.to_string(),
                format!("one of {}", ARCHITECTURES.join(", ")),
            );
        }
    }
    for (i, (field, expected)) in FIXED.into_iter().enumerate() {
        match fields.get(field).map(Value::to_string) {
            Some(found) if found != expected => return refuse(field, found, expected.to_owned()),
            None if i == 0 => return refuse(field, "missing".to_owned(), expected.to_owned()),
            _ => {}
        }
    }
    Ok(())
}

pub(crate) fn write(path: &Path, config: &Config) -> Result<(), Error> {
    let json = |source: serde_json::Error| error::json(path, &source);
    let mut fields = Map::new();
    fields.insert("architectures".to_owned(), json!([ARCHITECTURES[0]]));
    for (field, value) in FIXED {
        fields.insert(field.to_owned(), serde_json::from_str(value).map_err(json)?);
    }
    if let Value::Object(ours) = serde_json::to_value(config).map_err(json)? {
        fields.extend(ours);
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
        write(&path, &tiny()).unwrap();
        let mut fields: Map<String, Value> = serde_json::from_slice(&whole::read(&path).unwrap()).unwrap();
        for name in ["layer_norm_eps", "initializer_range", "position_embedding_type", "architectures"] {
            fields.remove(name);
        }
        whole::write(&path, &serde_json::to_vec(&fields).unwrap()).unwrap();
        assert_eq!(read(&path).unwrap(), Config { initializer_range: 0.02, layer_norm_eps: 1e-12, ..tiny() });
    }
}
