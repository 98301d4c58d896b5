//! Tests of model folders: what is saved is loaded, what others published is understood, what is damaged or lies is refused.

use super::*;
use crate::encoder::config::tests::tiny;
use crate::nn::check::distance;
use batch::family::Family;

fn saved(dir: &Path) -> Params {
    let params = Params::fresh(&Encoder::specs(&tiny()), 3, &Device::Cpu).unwrap();
    save(dir, &tiny(), params.iter()).unwrap();
    params
}

#[test]
fn a_checkpoint_without_pooler_gets_a_fresh_one_and_says_so() {
    let dir = tempfile::tempdir().unwrap();
    let params = saved(dir.path());
    let rest = params.iter().filter(|(name, _)| !name.starts_with("pooler."));
    whole::write_tensors(&dir.path().join(WEIGHTS_FILE), rest).unwrap();
    let loaded = load(dir.path(), &Device::Cpu).unwrap();
    assert_eq!(loaded.fresh, ["pooler.dense.bias", "pooler.dense.weight"]);
    assert_eq!(loaded.params.iter().count(), params.iter().count());
    let half = params.iter().filter(|(name, _)| *name != "pooler.dense.bias");
    whole::write_tensors(&dir.path().join(WEIGHTS_FILE), half).unwrap();
    assert!(load(dir.path(), &Device::Cpu).unwrap_err().to_string().contains("pooler.dense.bias"));
}

/// Writes the weights again with other names.
fn rename(dir: &Path, params: &Params, with: impl Fn(&str) -> Option<String>) {
    let renamed: BTreeMap<String, Tensor> =
        params.iter().filter_map(|(n, t)| Some((with(n)?, t.clone()))).collect();
    whole::write_tensors(&dir.join(WEIGHTS_FILE), renamed.iter().map(|(n, t)| (n.as_str(), t))).unwrap();
}

#[test]
fn what_is_saved_is_loaded_and_no_temporary_file_stays() {
    let dir = tempfile::tempdir().unwrap();
    let params = saved(dir.path());
    let loaded = load(dir.path(), &Device::Cpu).unwrap();
    assert_eq!(loaded.config, tiny());
    for ((a, x), (b, y)) in params.iter().zip(loaded.params.iter()) {
        assert_eq!(a, b);
        assert_eq!(distance(x, y), 0.0, "{a}");
    }
    let mut files: Vec<_> = std::fs::read_dir(dir.path()).unwrap().map(|f| f.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, [CONFIG_FILE, WEIGHTS_FILE]);
}

#[test]
fn published_names_are_understood_and_others_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let params = saved(dir.path());
    let legacy = |n: &str| match n.strip_suffix("LayerNorm.weight") {
        Some(stem) => format!("bert.{stem}LayerNorm.gamma"),
        None => format!("bert.{}", n.replace("LayerNorm.bias", "LayerNorm.beta")),
    };
    rename(dir.path(), &params, |n| Some(legacy(n)));
    assert_eq!(load(dir.path(), &Device::Cpu).unwrap().params.count(), params.count());
    rename(dir.path(), &params, |n| {
        (n != "pooler.dense.bias").then(|| n.replace("layer.1.output", "layer.9.x"))
    });
    let text = load(dir.path(), &Device::Cpu).unwrap_err().to_string();
    assert!(text.contains("missing [encoder.layer.1.output.dense.weight"), "{text}");
    assert!(text.contains("pooler.dense.bias]") && text.contains("unexpected [encoder.layer.9.x"), "{text}");
    rename(dir.path(), &params, |n| Some(n.replace("pooler.dense", "cls.predictions")));
    let loaded = load(dir.path(), &Device::Cpu).unwrap();
    assert_eq!(loaded.left_out, ["cls.predictions.bias", "cls.predictions.weight"]);
}

#[test]
fn a_roberta_keeps_its_files_and_leaves_out_positions_that_no_token_has() {
    let dir = tempfile::tempdir().unwrap();
    let config = Config { family: Family::Roberta, pad_token_id: 1, type_vocab_size: 1, ..tiny() };
    let params = Params::fresh(&Encoder::specs(&config), 3, &Device::Cpu).unwrap();
    save(dir.path(), &config, params.iter()).unwrap();
    let written: Value =
        serde_json::from_slice(&whole::read(&dir.path().join(CONFIG_FILE)).unwrap()).unwrap();
    assert_eq!(
        (&written["model_type"], &written["max_position_embeddings"]),
        (&"roberta".into(), &14.into())
    );
    assert_eq!((&written["architectures"][0], &written["family"]), (&"RobertaModel".into(), &Value::Null));
    let stored = Stored::open(&dir.path().join(WEIGHTS_FILE)).unwrap();
    assert_eq!(stored.shape(POSITION).unwrap(), [14, 16]);
    let table = stored.read(POSITION, &Device::Cpu).unwrap().narrow(0, 0, 2).unwrap();
    assert!(table.flatten_all().unwrap().to_vec1::<f32>().unwrap().iter().all(|x| *x == 0.0));
    let loaded = load(dir.path(), &Device::Cpu).unwrap();
    assert_eq!((&loaded.config, sizes(dir.path()).unwrap()), (&config, config.clone()));
    for ((a, x), (b, y)) in params.iter().zip(loaded.params.iter()) {
        assert!(a == b && distance(x, y) == 0.0, "{a}");
    }
    let names = |name: &str| Some(format!("roberta.{name}"));
    rename(dir.path(), &params, names);
    let text = refused(dir.path());
    assert!(text.contains("has shape [12, 16], the model needs [14, 16]"), "{text}");
    for positions in [0, 1, 2] {
        reconfigure(dir.path(), &[("max_position_embeddings", positions.into())]);
        assert!(refused(dir.path()).contains("max_position_embeddings"));
    }
}

#[test]
fn foreign_models_and_damaged_files_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    saved(dir.path());
    let config = std::fs::read_to_string(dir.path().join(CONFIG_FILE)).unwrap();
    let refused = |from: &str, to: &str| {
        assert!(config.contains(from), "{config}");
        whole::write(&dir.path().join(CONFIG_FILE), config.replace(from, to).as_bytes()).unwrap();
        load(dir.path(), &Device::Cpu).unwrap_err().to_string()
    };
    assert!(refused("BertModel", "LlamaModel").contains("architectures is [\"LlamaModel\"], expected"));
    assert!(
        refused("\"model_type\": \"bert\"", "\"model_type\": \"xlnet\"")
            .contains("model_type is \"xlnet\", expected \"bert\" or \"roberta\"")
    );
    assert!(refused("\"gelu\"", "\"relu\"").contains("hidden_act is \"relu\", expected \"gelu\""));
    assert!(refused("\"vocab_size\": 50", "\"vocab_size\": true").contains("expected usize"));
    assert!(refused("{", "[").contains("line"));
    whole::write(&dir.path().join(CONFIG_FILE), config.as_bytes()).unwrap();
    let weights = std::fs::read(dir.path().join(WEIGHTS_FILE)).unwrap();
    whole::write(&dir.path().join(WEIGHTS_FILE), &weights[..weights.len() - 9]).unwrap();
    let text = load(dir.path(), &Device::Cpu).unwrap_err().to_string();
    assert!(
        text.contains("model.safetensors") && text.contains("expected a whole safetensors file"),
        "{text}"
    );
    std::fs::remove_file(dir.path().join(WEIGHTS_FILE)).unwrap();
    assert!(load(dir.path(), &Device::Cpu).unwrap_err().to_string().contains("model.safetensors"));
}

/// Why the folder is refused.
fn refused(dir: &Path) -> String {
    load(dir, &Device::Cpu).unwrap_err().to_string()
}

/// Writes the configuration again with other values of some fields.
fn reconfigure(dir: &Path, fields: &[(&str, Value)]) {
    let path = dir.join(CONFIG_FILE);
    let mut config: Value = serde_json::from_slice(&whole::read(&path).unwrap()).unwrap();
    fields.iter().for_each(|(field, value)| config[field] = value.clone());
    whole::write_json(&path, &config).unwrap();
}

#[test]
fn silent_05_a_finished_training_carries_digests_that_loading_checks() {
    let dir = tempfile::tempdir().unwrap();
    let params = Params::fresh(&Encoder::specs(&tiny()), 3, &Device::Cpu).unwrap();
    let model = dir.path().join("model");
    let save = |seed: u64| {
        let index = serde_json::json!({ "seed": seed });
        let (config, params) = (tiny(), params.clone());
        Finished { config, params, classifier: None, adapters: None, index }.save(&model).unwrap();
    };
    save(1);
    load(&model, &Device::Cpu).unwrap();
    whole::write(&model.join("vocab.txt"), b"[PAD]\n").unwrap();
    assert!(refused(&model).contains("vocab.txt: it was not there when the folder was finished"));
    digests::seal(&model).unwrap();
    load(&model, &Device::Cpu).unwrap();
    // Another takes its place, with the vocabulary and without the old digests.
    save(2);
    load(&model, &Device::Cpu).unwrap();
    let path = model.join(WEIGHTS_FILE);
    let mut bytes = whole::read(&path).unwrap();
    let last = bytes.len() - 2;
    bytes[last] ^= 1;
    whole::write(&path, &bytes).unwrap();
    assert!(refused(&model).contains("model.safetensors: its contents are not what was written"));
}

#[test]
fn silent_05_weights_that_are_no_numbers_are_named_with_the_first_place() {
    let dir = tempfile::tempdir().unwrap();
    let params = saved(dir.path());
    for (wild, shown) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf"), (f32::NEG_INFINITY, "-inf")] {
        let mut tensors: BTreeMap<&str, Tensor> = params.iter().map(|(n, t)| (n, t.clone())).collect();
        let name = "encoder.layer.1.intermediate.dense.weight";
        let mut values = tensors[name].flatten_all().unwrap().to_vec1::<f32>().unwrap();
        (values[2 * 16 + 5], values[3 * 16]) = (wild, wild);
        tensors.insert(name, Tensor::from_vec(values, (24, 16), &Device::Cpu).unwrap());
        whole::write_tensors(&dir.path().join(WEIGHTS_FILE), tensors.iter().map(|(n, t)| (*n, t))).unwrap();
        let text = refused(dir.path());
        assert!(text.contains(&format!("{name}: [2, 5] is {shown}, expected finite numbers")), "{text}");
    }
}

/// Writes the weights in two files with the list of them, and gives the list.
fn shard(dir: &Path, params: &Params) -> BTreeMap<String, String> {
    let names = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];
    let mut list = BTreeMap::new();
    for (number, file) in names.into_iter().enumerate() {
        let part = || params.iter().enumerate().filter(|(place, _)| place % 2 == number).map(|(_, of)| of);
        list.extend(part().map(|(name, _)| (name.to_owned(), file.to_owned())));
        whole::write_tensors(&dir.join(file), part()).unwrap();
    }
    std::fs::remove_file(dir.join(WEIGHTS_FILE)).unwrap();
    list
}

#[test]
fn silent_17_weights_in_several_files_are_read_by_their_list() {
    let dir = tempfile::tempdir().unwrap();
    let params = saved(dir.path());
    let list = shard(dir.path(), &params);
    let write = |list: &BTreeMap<String, String>| {
        let index = serde_json::json!({"metadata": {"total_size": 1}, "weight_map": list});
        whole::write_json(&dir.path().join(SHARDS_FILE), &index).unwrap();
    };
    write(&list);
    let loaded = load(dir.path(), &Device::Cpu).unwrap();
    for ((a, x), (b, y)) in params.iter().zip(loaded.params.iter()) {
        assert!(a == b && distance(x, y) == 0.0, "{a}");
    }
    let (name, file) = list.first_key_value().unwrap();
    let with = |name: &str, file: &str| {
        let mut list = list.clone();
        list.insert(name.to_owned(), file.to_owned());
        write(&list);
        refused(dir.path())
    };
    let other = list.values().find(|other| *other != file).unwrap();
    assert!(with(name, other).contains("which it does not say"));
    assert!(with("x", file).contains(&format!("{file} has no x")));
    for outside in ["../model-00001-of-00002.safetensors", "/etc/passwd", "..", ""] {
        assert!(with(name, outside).contains("is no name of a file beside it"), "{outside}");
    }
    assert!(with("x", "model-00003.safetensors").contains("model-00003.safetensors"));
    let mut less = list.clone();
    less.remove(name);
    write(&less);
    assert!(refused(dir.path()).contains(&format!("{name} is in {file}, which it does not say")));
}

#[test]
fn silent_17_a_padded_table_keeps_its_rows_and_another_models_table_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let params = saved(dir.path());
    let table = |rows: usize| {
        let more = Tensor::zeros((rows - 50, 16), candle_core::DType::F32, &Device::Cpu).unwrap();
        let tensors = params.iter().map(|(name, tensor)| {
            let padded = name == TOKEN;
            (name, if padded { Tensor::cat(&[tensor, &more], 0).unwrap() } else { tensor.clone() })
        });
        let tensors: Vec<(&str, Tensor)> = tensors.collect();
        whole::write_tensors(&dir.path().join(WEIGHTS_FILE), tensors.iter().map(|(n, t)| (*n, t))).unwrap();
    };
    for said in [50, 56] {
        table(56);
        reconfigure(dir.path(), &[("vocab_size", said.into())]);
        let loaded = load(dir.path(), &Device::Cpu).unwrap();
        assert_eq!(loaded.config.vocab_size, 56);
        // What is written again has the rows too, and says so.
        let again = tempfile::tempdir().unwrap();
        save(again.path(), &loaded.config, loaded.params.iter()).unwrap();
        assert_eq!(sizes(again.path()).unwrap().vocab_size, 56);
        assert_eq!(load(again.path(), &Device::Cpu).unwrap().params.get(TOKEN).unwrap().dims(), [56, 16]);
    }
    reconfigure(dir.path(), &[("vocab_size", 50.into())]);
    table(50 + PADDING);
    assert!(refused(dir.path()).contains("has shape [178, 16], the model needs [50, 16]"));
    reconfigure(dir.path(), &[("vocab_size", 57.into())]);
    table(56);
    assert!(refused(dir.path()).contains("has shape [56, 16], the model needs [57, 16]"));
}

#[test]
fn silent_18_sizes_that_no_encoder_has_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    saved(dir.path());
    let config = whole::read(&dir.path().join(CONFIG_FILE)).unwrap();
    let sizes = [
        "vocab_size",
        "hidden_size",
        "num_hidden_layers",
        "num_attention_heads",
        "intermediate_size",
        "max_position_embeddings",
        "type_vocab_size",
    ];
    let values = [
        "0",
        "-1",
        "2147483648",
        "1099511627776",
        "18446744073709551615",
        "1e300",
        "\"7\"",
        "null",
        "true",
        "0.5",
    ];
    for (field, value) in sizes.iter().flat_map(|field| values.map(|value| (*field, value))) {
        if (field, value) == ("type_vocab_size", "null") {
            // Left out it is 2, as documented.
            continue;
        }
        reconfigure(dir.path(), &[(field, serde_json::from_str(value).unwrap())]);
        let text = refused(dir.path());
        assert!(text.contains("config.json") && text.len() < 600, "{field} = {value}: {text}");
        whole::write(&dir.path().join(CONFIG_FILE), &config).unwrap();
    }
    for (field, value) in [
        ("layer_norm_eps", "1e308"),
        ("initializer_range", "-1"),
        ("pad_token_id", "50"),
        ("pad_token_id", "-5"),
    ] {
        reconfigure(dir.path(), &[(field, serde_json::from_str(value).unwrap())]);
        assert!(refused(dir.path()).contains("config.json"), "{field}");
        whole::write(&dir.path().join(CONFIG_FILE), &config).unwrap();
    }
    // As many layers as may be, of which the file has two.
    reconfigure(dir.path(), &[("num_hidden_layers", 1024.into())]);
    let text = refused(dir.path());
    assert!(text.contains("and 16344 more") && text.len() < 2000, "{text}");
    whole::write(&dir.path().join(CONFIG_FILE), "{\"a\":".repeat(100_000).as_bytes()).unwrap();
    assert!(refused(dir.path()).contains("recursion limit"));
}

#[test]
fn silent_18_headers_that_lie_are_refused_in_few_words() {
    let dir = tempfile::tempdir().unwrap();
    saved(dir.path());
    let path = dir.path().join(WEIGHTS_FILE);
    let whole = whole::read(&path).unwrap();
    let length = usize::try_from(u64::from_le_bytes(*whole.first_chunk().unwrap())).unwrap();
    let (header, body) = whole[8..].split_at(length);
    let header: Value = serde_json::from_slice(header).unwrap();
    let with = |header: &[u8], says: u64| {
        whole::write(&path, &[&says.to_le_bytes(), header, body].concat()).unwrap();
        let text = refused(dir.path());
        assert!(text.contains("model.safetensors") && text.len() < 2500, "{} bytes: {text}", text.len());
        text
    };
    let text = header.to_string();
    for says in [0, 1, 1 << 40, u64::MAX] {
        with(text.as_bytes(), says);
    }
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut header = header.clone();
        change(&mut header);
        let text = header.to_string();
        with(text.as_bytes(), text.len() as u64)
    };
    let entry =
        |field: &str, value: Value| changed(&|header: &mut Value| header[TOKEN][field] = value.clone());
    let number = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    entry("shape", number("[8589934592, 8589934592]"));
    entry("shape", number("[-1, 16]"));
    entry("data_offsets", number("[4611686018427387904, 4611686018427391104]"));
    entry("dtype", "X".into());
    assert!(entry("dtype", "I32".into()).contains("its numbers are I32, expected F32"));
    let long = entry("shape", Value::from([vec![50, 16], vec![1; 1000]].concat()));
    assert!(long.contains("has shape [50, 16, 1, 1"), "{long}");
    let many = changed(&|header: &mut Value| {
        for i in 0..100_000 {
            header[format!("x{i}")] =
                serde_json::json!({"dtype": "F32", "shape": [0], "data_offsets": [0, 0]});
        }
    });
    assert!(many.contains("unexpected [x0, x1, x10, ") && many.contains("and 99992 more"), "{many}");
    let evil = changed(&|header: &mut Value| {
        let table = header[TOKEN].take();
        header.as_object_mut().unwrap().remove(TOKEN);
        header["\u{1b}[31mevil\u{7}"] = table;
    });
    assert!(evil.contains("\\u001b[31mevil\\u0007") && !evil.contains('\u{1b}'), "{evil}");
    let twice = format!("{}, {:?}: {}}}", &text[..text.len() - 1], TOKEN, header[TOKEN]);
    assert!(with(twice.as_bytes(), twice.len() as u64).contains("stands there twice"));
    let deep = "{\"a\":".repeat(200_000);
    with(deep.as_bytes(), deep.len() as u64);
}

#[cfg(unix)]
#[test]
fn silent_18_what_has_no_end_is_not_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    saved(dir.path());
    for name in [WEIGHTS_FILE, CONFIG_FILE] {
        let path = dir.path().join(name);
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert!(refused(dir.path()).contains("no regular file"));
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(refused(dir.path()).contains("no regular file"));
        std::fs::remove_dir(&path).unwrap();
        saved(dir.path());
    }
    // A file of 3 GiB with nothing in it is not read.
    let file = std::fs::OpenOptions::new().write(true).open(dir.path().join(WEIGHTS_FILE)).unwrap();
    file.set_len(3 << 30).unwrap();
    assert!(refused(dir.path()).contains("the file 32212"), "{}", refused(dir.path()));
}
