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
    assert_eq!(config.shards.seed, 77);
    assert_eq!(config.vocabulary.case, tasks::token::encode::Case::Cased);
    assert_eq!(config.shards.tasks, [batch::task::Task::Triplet]);
}

#[test]
fn sets_are_applied_together_and_infinity_is_refused() {
    let together = ["encoder.hidden_size=64", "encoder.num_attention_heads=2"];
    assert_eq!(sets(&together).unwrap().encoder.unwrap().fresh().unwrap().hidden_size, 64);
    for value in ["inf", "nan", "-inf"] {
        let error = sets(&[&format!("sources.hsdn.min_tfidf={value}")]).unwrap_err().to_string();
        assert!(error.contains("sources.hsdn.min_tfidf is infinite"), "{error}");
    }
}

#[test]
fn sets_reach_items_of_lists_by_name_or_place() {
    let text = "version = 5\n[[recipes]]\nname = \"a\"\n[[recipes]]\nname = \"b\"\ntasks = [\"x\", \"y\"]\n";
    let mut config = toml::Value::Table(text.parse().unwrap());
    let mut put = |set: &str| {
        let (key, value) = set::split(set)?;
        set::put(&mut config, &key, value)
    };
    put("recipes.b.epochs=3").unwrap();
    put("recipes.0.tasks=[]").unwrap();
    put("recipes.b.tasks.1=z").unwrap();
    let wanted = "version = 5\n[[recipes]]\nname = \"a\"\ntasks = []\n[[recipes]]\nname = \"b\"\ntasks = [\"x\", \"z\"]\nepochs = 3\n";
    let wrong = put("recipes.c.tasks=[]").unwrap_err();
    assert!(wrong.contains("no item `c` among 2, whose names are: a, b"), "{wrong}");
    let wrong = put("version.of.what=1").unwrap_err();
    assert!(wrong.contains("`of` cannot be below") && wrong.contains("integer"), "{wrong}");
    assert!(put("recipes.2=1").is_err() && put("=1").is_err());
    assert_eq!(config, toml::Value::Table(wanted.parse().unwrap()));
}

/// A config and those that it may extend, by name; the first is loaded.
fn written(files: &[(&str, &str)], sets: &[&str]) -> anyhow::Result<Config> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        base::whole::write_whole(&folder.path().join(name), text.as_bytes()).unwrap();
    }
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let said = |error: anyhow::Error| {
        let folder = format!("{}/", folder.path().display());
        anyhow::anyhow!(format!("{error:#}").replace(&folder, ""))
    };
    load(Some(&folder.path().join(files[0].0)), &sets).map_err(said)
}

fn refused(text: &str) -> String {
    written(&[("x.toml", text)], &[]).unwrap_err().to_string()
}

#[test]
fn a_signed_url_is_in_no_error() {
    for line in [
        "version = 5\nurl = \"https://h/x?sig=secret\" more",
        "version = 5\nurl = \"https://h/x?sig=secret\"",
        "version = 5\nretrain = \"https://h/x?sig=secret\"",
        "version = 5\nretrain = { epochs = \"https://h/x?sig=secret\" }",
        "version = 5\nextends = \"https://h/x?sig=secret\"",
    ] {
        let told = refused(line);
        assert!(told.contains("x.toml") && !told.contains("secret"), "{told}");
    }
}

#[test]
fn another_name_of_a_word_is_told_as_that_word() {
    for (name, word) in [("iob2", "bio"), ("BIO2", "bio"), ("bioes", "bilou"), ("iob", "iob1")] {
        let texts = format!(
            "corpus.texts=[{{ name=\"a\", paths=[\"x\"], format.conll = {{ scheme = \"{name}\", separator = \"tab\" }} }}]"
        );
        let error = sets(&[&texts]).unwrap_err().to_string();
        assert!(error.contains(&format!("did you mean \"{word}\"?")), "{name}: {error}");
    }
}

#[test]
fn what_is_wrong_is_said_at_once_with_place_and_remedy() {
    let told = refused(
        "[retrain]\nepohcs = 3\nclip_norm = \"one\"\nstream.schedule = \"kimara\"\n[encoder]\nfrom = \"here\"\n\
         [[benchmarks]]\nset = { train = [\"x\"] }\n[finetune]\nseeds = 3\n",
    );
    let lines: Vec<&str> = told.lines().collect();
    let wanted = [
        "x.toml:6:1: encoder.from is \"here\", expected \"checkpoint\" or \"fresh\"",
        "x.toml:2:1: retrain.epohcs is no key of [retrain]; did you mean `epochs`?",
        "x.toml:3:1: retrain.clip_norm is \"one\", expected a number",
        "retrain.stream.schedule is \"kimara\", expected \"kimera\", \"merged\", ",
        "did you mean \"kimera\"?",
        "benchmarks.0 misses `name`",
        "benchmarks.0.set misses `format` (The file format",
        "x.toml:10:1: finetune.seeds is 3, expected a list of whole numbers",
    ];
    for part in wanted {
        assert!(told.contains(part), "{part} in\n{told}");
    }
    assert_eq!(lines.len(), 7, "{told}");
    let error = sets(&["shards.sede=7"]).unwrap_err().to_string();
    assert!(error.contains("--set shards.sede=7") && error.contains("did you mean `seed`?"), "{error}");
    assert!(sets(&["shards.seed"]).unwrap_err().to_string().contains("expected KEY=VALUE"));
    assert!(sets(&["vocabulary.train.size.x=1"]).unwrap_err().to_string().contains("no table"));
    for (set, instead) in
        [("out=x", "use --out FOLDER"), ("data=x", "use --data"), ("extends=kimera", "in a config file")]
    {
        let error = sets(&[set]).unwrap_err().to_string();
        assert!(error.contains(instead), "{error}");
    }
    assert!(sets(&["version=9"]).unwrap_err().to_string().contains("version 9"));
    let folder = tempfile::tempdir().unwrap();
    assert!(load(Some(&folder.path().join("none.toml")), &[]).unwrap_err().to_string().contains("none.toml"));
}

#[test]
fn a_key_that_stands_deeper_and_the_words_of_a_missing_one_are_said() {
    let of = |format: &str| {
        refused(&format!(
            "[[benchmarks]]\nname = \"x\"\nset = {{ format.{format}, train = [\"t\"] }}\n[finetune]\n"
        ))
    };
    for (format, part) in [
        ("conll = {}", "benchmarks.0.set.format is a table of conll, expected "),
        ("conll = {}", "; did you mean `tagged.format.conll`?"),
        (
            "tagged.conll = {}",
            "format.tagged.conll is no key of [benchmarks.0.set.format.tagged]; did you mean `format.conll`?",
        ),
        (
            "tagged.format.conll = {}",
            "misses `scheme` (How tags mark entities: \"iob1\", \"bio\" or \"bilou\") and `separator` (What separates columns: \"tab\" or \"spaces\")",
        ),
    ] {
        let told = of(format);
        assert!(told.contains(part), "{part} in\n{told}");
    }
    let told = refused("[retrain]\ntokens = 512\n");
    assert!(
        told.contains("retrain.tokens is no key of [retrain]; did you mean `stream.batching.tokens`?"),
        "{told}"
    );
}

#[test]
fn of_alternatives_one_is_given_and_the_one_above_takes_the_place_of_the_one_below() {
    let told = refused(
        "[vocabulary]\nfile = \"v\"\ntrain = {}\n[[benchmarks]]\nname = \"x\"\n[[attentions]]\nname = \"y\"\nlabels = {}\nknowledge = {}\n\
         [sources.triples.z]\nlevel = 1\n",
    );
    for part in [
        "x.toml:3:1: vocabulary.train is given beside `file`, expected only one of `file` and `train`: leave the other out",
        "x.toml:4:1: benchmarks.0 misses one of `capr`, `cop` and `set`: add it to [benchmarks.0]",
        "x.toml:9:1: attentions.0.knowledge is given beside `labels`, expected only one of `labels` and `knowledge`",
        "x.toml:10:18: sources.triples.z misses one of `kg_bert`, `table` and `parquet`",
    ] {
        assert!(told.contains(part), "{part} in\n{told}");
    }
    // What a preset trains, a config reads.
    let config = written(&[("x.toml", "extends = \"world\"\nvocabulary.file = \"v.txt\"\n")], &[]).unwrap();
    assert!(config.vocabulary.train().is_none(), "{:?}", config.vocabulary);
    let train = "[vocabulary]\ntrain = { size = 0.5 }\n";
    assert!(refused(train).contains("x.toml:2:11: vocabulary.train.size is 0.5, expected a whole number"));
}

#[test]
fn configs_extend_presets_and_files_key_by_key_and_name_by_name() {
    let under = "extends = \"world\"\n[encoder]\nhidden_size = 64\n[[recipes]]\nname = \"a\"\nbatch = 4\n[[recipes]]\nname = \"b\"\n";
    let own = "version = 5\nextends = [\"under.toml\"]\n[[recipes]]\nname = \"a\"\nepochs = 2\n[[recipes]]\nname = \"c\"\ntasks = [\"y\"]\n\
               [[benchmarks]]\nname = \"x\"\nset = { format = \"cola\", train = [\"t\"] }\n[finetune]\nlearning_rate = 0.5\n";
    let files = [("own.toml", own), ("under.toml", under)];
    let config = written(&files, &["finetune.batch=3"]).unwrap();
    let fresh = config.encoder.as_ref().unwrap().fresh().unwrap().clone();
    assert_eq!((fresh.hidden_size, fresh.num_hidden_layers, fresh.seed), (64, 3, 1), "file, preset, default");
    let recipes: Vec<_> =
        config.recipes.iter().map(|of| (of.name.as_str(), of.settings.batch, of.settings.epochs)).collect();
    assert_eq!(
        recipes,
        [("a", 4, 2), ("b", 3, 5), ("c", 3, 5)],
        "own, then those of [finetune], then defaults"
    );
    assert_eq!(
        (&config.recipes[1].tasks, &config.recipes[2].tasks),
        (&vec!["x".to_owned()], &vec!["y".to_owned()])
    );
    assert_eq!(config.recipes[0].settings.learning_rate, 0.5);
    let folder = Path::new(config.origin.name()).parent().unwrap().display().to_string() + "/";
    let text = config.resolved(resolved::Origins::Said).replace(&folder, "");
    for line in [
        "hidden_size = 64  # under.toml:3",
        "num_hidden_layers = 3  # preset world:",
        "seed = 1  # default",
        "batch = 3  # --set finetune.batch=3",
        "epochs = 2  # own.toml:5",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    let none = "version = 5\nextends = [\"under.toml\"]\nrecipes = []\n[retrain]\n";
    let config = written(&[("own.toml", none), ("under.toml", under)], &[]).unwrap();
    assert!(config.recipes.is_empty(), "an empty list leaves nothing of those below");
    // Another alternative takes the place of one, and nothing of that is left.
    let other = [
        ("own.toml", "extends = \"under.toml\"\n[encoder]\nfrom = \"checkpoint\"\npath = \"p\"\n"),
        files[1],
    ];
    assert!(written(&other, &[]).unwrap().encoder.unwrap().fresh().is_none());
    let circle = [("a.toml", "extends = \"b.toml\""), ("b.toml", "extends = \"a.toml\"")];
    assert!(
        written(&circle, &[]).unwrap_err().to_string().contains("in a circle: a.toml -> b.toml -> a.toml")
    );
    assert!(
        refused("extends = \"kimmera\"")
            .contains("there is no preset \"kimmera\", expected one of world, kimera")
    );
    assert!(
        refused("extends = \"none.toml\"").contains("none.toml: cannot read the config that x.toml extends")
    );
    assert!(refused("extends = 3").contains("extends is 3, expected the name of a preset"));
    let error =
        written(&[("own.toml", "extends = \"under.toml\""), ("under.toml", "[world]\nscale = 0.0\n")], &[]);
    assert!(error.unwrap_err().to_string().starts_with("under.toml:2:1: world.scale is 0"));
}

/// Every default that the schema tells is the one that is used, and what is printed is a config.
#[test]
fn a_config_with_every_setting_stated_means_the_same() {
    let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs");
    let files = std::fs::read_dir(configs).unwrap().map(|entry| entry.unwrap().path());
    let mut seen = 0;
    for file in files.filter(|file| file.is_file()) {
        let config = load(Some(&file), &[]).unwrap();
        let text = config.resolved(resolved::Origins::Said);
        let mut again =
            of_text("resolved", &text, None, &[]).unwrap_or_else(|error| panic!("{error:#}\n{text}"));
        again.origin = config.origin.clone();
        assert_eq!(again, config, "{}", file.display());
        seen += 1;
    }
    assert!(seen > 10);
    for (name, text) in layer::PRESETS {
        let config = of_text(name, text, None, &[]).unwrap_or_else(|error| panic!("{name}: {error:#}"));
        let whole = config.resolved(resolved::Origins::Unsaid);
        let again = of_text("resolved", &whole, None, &[]).unwrap();
        assert_eq!(again.graph().is_ok(), config.graph().is_ok(), "{name}: {whole}");
        let json: serde_json::Value = serde_json::from_str(&config.resolved_json().unwrap()).unwrap();
        assert_eq!(json, serde_json::to_value(whole.parse::<toml::Table>().unwrap()).unwrap(), "{name}");
    }
}

#[test]
fn the_shipped_configs_say_what_differs_and_no_more() {
    let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs");
    let mut lines = 0;
    for folder in [configs.clone(), configs.join("parts"), configs.join("presets")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() {
                lines += std::fs::read_to_string(path).unwrap().lines().count();
            }
        }
    }
    assert!(lines <= 640, "{lines} lines");
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
        base::whole::write_whole(&path, format!("version = 5\n{text}\n").as_bytes()).unwrap();
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
