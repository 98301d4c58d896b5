//! Tests of reading configs.

use super::*;

fn sets(sets: &[&str]) -> anyhow::Result<Config> {
    // As the command line shows it, with every cause.
    load(None, &sets.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>())
        .map_err(|error| anyhow::anyhow!("{error:#}"))
}

#[test]
fn sets_change_values_of_every_kind() {
    let config = sets(&["shards.seed=77", "vocabulary.case=cased", "shards.tasks=[\"triplet\"]"]).unwrap();
    assert_eq!(config.shards.as_ref().unwrap().seed, 77);
    assert_eq!(config.vocabulary.case, tasks::token::encode::Case::Cased);
    assert_eq!(config.shards.unwrap().tasks, [batch::task::Task::Triplet]);
}

#[test]
fn sets_are_applied_together_and_infinity_is_refused() {
    let together = ["encoder.fresh.hidden_size=64", "encoder.fresh.num_attention_heads=2"];
    assert_eq!(sets(&together).unwrap().encoder.unwrap().fresh.unwrap().hidden_size, 64);
    for value in ["inf", "nan", "-inf"] {
        let error = sets(&[&format!("sources.hsdn.min_tfidf={value}")]).unwrap_err().to_string();
        assert!(error.contains("sources.hsdn.min_tfidf is infinite"), "{error}");
    }
}

#[test]
fn sets_reach_items_of_lists_by_name_or_place() {
    let text = "version = 4\n[[recipes]]\nname = \"a\"\n[[recipes]]\nname = \"b\"\ntasks = [\"x\", \"y\"]\n";
    let mut config = toml::Value::Table(text.parse().unwrap());
    let mut put = |set: &str| {
        let (key, value) = set::split(set)?;
        set::put(&mut config, &key, value)
    };
    put("recipes.b.settings.epochs=3").unwrap();
    put("recipes.0.tasks=[]").unwrap();
    put("recipes.b.tasks.1=z").unwrap();
    let wanted = "version = 4\n[[recipes]]\nname = \"a\"\ntasks = []\n[[recipes]]\nname = \"b\"\ntasks = [\"x\", \"z\"]\n\
                  settings = { epochs = 3 }";
    let wrong = put("recipes.c.tasks=[]").unwrap_err();
    assert!(wrong.contains("no item `c` among 2, whose names are: a, b"), "{wrong}");
    let wrong = put("version.of.what=1").unwrap_err();
    assert!(wrong.contains("`of` cannot be below") && wrong.contains("integer"), "{wrong}");
    assert!(put("recipes.2=1").is_err() && put("=1").is_err());
    assert_eq!(config, toml::Value::Table(wanted.parse().unwrap()));
}

#[test]
fn a_signed_url_is_in_no_error() {
    for line in [
        "version = 4\nurl = \"https://h/x?sig=secret\" more",
        "version = 4\nurl = \"https://h/x?sig=secret\"",
    ] {
        let error = toml::from_str::<Config>(line).unwrap_err();
        let told = told(line, &error);
        assert!(told.contains("line 2") && !told.contains("secret"), "{told}");
    }
}

#[test]
fn an_unknown_key_is_named_with_the_keys_there_are() {
    let error = sets(&["shards.sede=7"]).unwrap_err().to_string();
    assert!(error.contains("--set shards.sede=7") && error.contains("`seed`"), "{error}");
    assert!(sets(&["shards.seed"]).unwrap_err().to_string().contains("expected KEY=VALUE"));
    assert!(sets(&["shards.seed.x=1"]).unwrap_err().to_string().contains("no table"));
}

#[test]
fn a_bad_file_is_named_with_line_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.toml");
    let broken = DEFAULT.replace("[shards]", "[shards]\nspeed = 3");
    base::whole::write_whole(&path, broken.as_bytes()).unwrap();
    let error = load(Some(&path), &[]).unwrap_err().to_string();
    assert!(error.contains("x.toml") && error.contains("line") && error.contains("speed"), "{error}");
    assert!(load(Some(&folder.path().join("none.toml")), &[]).unwrap_err().to_string().contains("none.toml"));
    assert!(sets(&["version=9"]).unwrap_err().to_string().contains("version 9"));
}

#[test]
fn silent_18_keys_of_many_parts_and_deep_values_are_refused() {
    let deep = vec!["a"; 60_000].join(".");
    let text = sets(&[&format!("{deep}=1")]).unwrap_err().to_string();
    assert!(text.contains("the key has 60000 parts, expected at most 32") && text.len() < 1_000, "{text}");
    let (mut value, key) = ("1".to_owned(), vec!["a"; 79].join("."));
    for _ in 0..70 {
        value = format!("{{ {key} = {value} }}");
    }
    let text = sets(&[&format!("shards.seed={value}")]).unwrap_err().to_string();
    assert!(text.contains("more than 80 deep") && text.len() < 1_000, "{text}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep.toml");
    for text in [
        format!("deep = {value}"),
        format!("{deep} = 1"),
        format!("[{deep}]"),
        format!("deep = {}", "[".repeat(60_000)),
    ] {
        base::whole::write_whole(&path, format!("version = 4\n{text}\n").as_bytes()).unwrap();
        assert!(load(Some(&path), &[]).is_err());
    }
    let text = sets(&["shards.seed=1\nworld.scale=2.0"]).unwrap_err().to_string();
    assert!(text.contains("the value is followed by another key, `world`"), "{text}");
}

#[test]
fn silent_18_a_vocabulary_beyond_any_memory_is_refused() {
    let text = sets(&["vocabulary.train.size=9223372036854775807"]).unwrap_err().to_string();
    assert!(
        text.contains("vocabulary.train.size is 9223372036854775807, expected from 6 to 1000000"),
        "{text}"
    );
}

#[test]
fn silent_20_no_refusal_of_a_set_shows_credentials() {
    for set in [
        "sources.hsdn.paht=s3://AKIA:hunter2@b/x",
        "s3://AKIA:hunter2@b/x=1",
        "shards.seed= https://me:hunter2@h/x",
        "s3://AKIA:hunter2@b/x",
    ] {
        let error = sets(&[set]).unwrap_err();
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
    }
}
