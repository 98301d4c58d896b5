//! Attention by maps where its texts come from elsewhere than a set of examples: the pairs of a ranking, and what an annotator says of a benchmark.

use std::path::Path;

use base::whole::write_whole;
use batch::maps::sample::Sample;
use engraft_tests::{Engraft, json, json_lines};
use kg::split::Part;
use serde_json::{Value, json as object};
use tasks::maps::index::Index;
use tasks::maps::read::Maps;

/// The world's passages and pairs of texts, an encoder that begins afresh, and maps.
const CONFIG: &str = r#"version = 5
extends = ["CONFIGS/parts/world-corpus.toml", "world"]

[corpus]

[counts]

[[benchmarks]]
name = "capr"
capr = { train.medquad = "world:medquad", test.share = 0.4, candidates.per_query = 8, held_out = { dev = 0.1, mask_search = 0 } }

[[benchmarks]]
name = "alike"
set = { format = "sts_b", train = ["world:sets/alike.tsv"], drawn = { dev = 0.15, test = 0.25 }, licence = "free" }

[[attentions]]
name = "kam"
knowledge.maps = ["entity", "phrase", "term"]

[finetune]
learning_rate = 1e-3
epochs = 1
max_tokens = 48
max_examples = { train = 16, dev = 8, test = 10 }
ranking = { negatives = 2 }

[encoder]
num_hidden_layers = 2
hidden_size = 32
intermediate_size = 32
num_attention_heads = 4
"#;

fn with(folder: &Path, verb: &[&str], sets: &[&str]) -> Engraft {
    let configs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs");
    let config = folder.join("known.toml");
    write_whole(&config, CONFIG.replace("CONFIGS", configs.to_str().unwrap()).as_bytes()).unwrap();
    let run = Engraft::own(verb, &config, &folder.join("out"));
    sets.iter().fold(run, |run, set| run.set(set))
}

/// The scores of the first test question, as its stage wrote them and as `predict` says them of the same pairs.
fn said_twice(folder: &Path, sets: &[&str]) -> [Vec<f64>; 2] {
    let out = folder.join("out");
    let tried = &json_lines(out.join("finetune-kam-capr-1/test.jsonl"))[0];
    let [queries, passages] =
        ["queries", "passages"].map(|of| json_lines(out.join(format!("benchmark-capr/test/{of}.jsonl"))));
    let text = |query: &Value| {
        format!("{} ; {}", query["entity"].as_str().unwrap(), query["aspect"].as_str().unwrap())
    };
    let query = queries.iter().find(|query| tried["id"] == text(query)).unwrap();
    let passage = |at: &Value| &passages[usize::try_from(at.as_u64().unwrap()).unwrap()]["text"];
    let pairs = query["candidates"].as_array().unwrap().iter();
    let lines: String =
        pairs.map(|at| format!("{}\n", object!({ "text": tried["id"], "pair": passage(at) }))).collect();
    let asked = folder.join("asked.jsonl");
    write_whole(&asked, lines.as_bytes()).unwrap();
    let model = out.join("finetune-kam-capr-1/model");
    let verb = ["predict", model.to_str().unwrap(), asked.to_str().unwrap()];
    let said = with(folder, &verb, sets).ok();
    let said =
        said.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["score"].as_f64().unwrap());
    let written = tried["outputs"].as_array().unwrap().iter().map(|row| row[0].as_f64().unwrap());
    [written.collect(), said.collect()]
}

#[test]
fn rankings_are_attended_by_maps_of_their_pairs_and_of_texts_read_apart() {
    let folder = tempfile::tempdir().unwrap();
    for scorer in ["cross_encoder", "bi_encoder"] {
        let sets = [format!("finetune.ranking.scorer={scorer}"), "finetune.pooling=mean".to_owned()];
        let sets = sets.each_ref().map(String::as_str);
        // All of it: a ranking has no stage of maps.
        with(folder.path(), &["run"], &sets).ok();
        let [written, said] = said_twice(folder.path(), &sets);
        assert!(written.len() > 2 && written.len() == said.len(), "{written:?} {said:?}");
        assert!(
            written.iter().zip(&said).all(|(a, b)| (a - b).abs() < 1e-4),
            "{scorer}: {written:?} {said:?}"
        );
        let model = folder.path().join("out/finetune-kam-capr-1/model");
        assert_eq!(json(model.join("outputs.json"))["outputs"]["knowledge"]["maps"], 3);
    }
}

/// The maps that a stage on a benchmark made, text after text.
fn samples(folder: &Path) -> Vec<Sample> {
    let index = Index::read(folder).unwrap();
    let files = &index.part(Part::Train).unwrap().files;
    let groups = files.iter().flat_map(|file| {
        let file = Maps::open(folder, file).unwrap();
        (0..file.groups()).map(|group| file.group(group).unwrap()).collect::<Vec<_>>()
    });
    groups.flat_map(|group| group.rows().map(|row| row.to_sample()).collect::<Vec<_>>()).collect()
}

/// A document of CoNLL-U: the first word is an entity, and goes with the second, on which all others depend.
fn parsed(id: &str, text: &str) -> String {
    let mut said = format!("# newdoc id = {id}\n# text = {text}\n");
    for (at, word) in text.split_whitespace().enumerate() {
        let (head, tag) = (if at == 1 { 0 } else { 2 }, if at == 0 { "B-SIGN" } else { "O" });
        said += &format!("{}\t{word}\t_\t_\t_\t_\t{head}\tdep\t_\tner={tag}\n", at + 1);
    }
    said + "\n"
}

const MARKED: [&str; 5] = [
    "finetune.on=[\"alike\"]",
    "maps.entities=marked",
    "maps.phrases=marked",
    "maps.graph=none",
    "benchmarks.alike.parsed={ paths = [\"alike.conllu\"], format.conllu = { unit = \"newdoc\", scheme = \"bio\", phrases.dependency = 2 } }",
];

#[test]
fn what_an_annotator_says_of_a_benchmarks_texts_becomes_their_maps() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    with(root, &["run", "benchmark-alike"], &[]).ok();
    let examples = json_lines(root.join("out/benchmark-alike/examples.jsonl"));
    let of = |example: &Value| {
        let [id, text, pair] = ["id", "text", "pair"].map(|key| example[key].as_str().unwrap().to_owned());
        parsed(&id, &text) + &parsed(&format!("{id}/pair"), &pair)
    };
    // Of the second half nothing is said.
    let half = &examples[..examples.len() / 2];
    let write = |text: &str| write_whole(&root.join("alike.conllu"), text.as_bytes()).unwrap();
    let whole: String = half.iter().map(of).collect();
    write(&whole);
    with(root, &["run", "finetune-kam-alike-1"], &MARKED).ok();
    let samples = samples(&root.join("out/maps-alike"));
    assert_eq!(samples.len(), examples.len());
    for (at, sample) in samples.iter().enumerate() {
        let last = sample.entities.iter().copied().max().unwrap();
        assert_eq!((sample.document as usize, last), (at, if at < half.len() { 2 } else { 0 }), "{sample:?}");
        assert!(at >= half.len() || sample.entities[0] == 1, "{sample:?}");
    }
    let scores = json(root.join("out/finetune-kam-alike-1/scores.json"));
    assert!(scores["test"]["value"].is_f64(), "{scores}");

    let model = root.join("out/finetune-kam-alike-1/model");
    let asked = with(root, &["predict", model.to_str().unwrap()], &MARKED).output().text();
    assert!(asked.contains("a line is all that is known of it"), "{asked}");
    let refused = |text: &str| {
        write(text);
        with(root, &["run", "maps-alike"], &MARKED).output().text()
    };
    let first = half[0]["id"].as_str().unwrap();
    let other = refused(&parsed(first, "other words than those"));
    assert!(
        other.contains(&format!("the annotated text of example {first} is not the benchmark's")),
        "{other}"
    );
    let unknown = refused(&parsed("nobody", "a text"));
    assert!(
        unknown.contains("none of its 1 documents has the id of an example (the first is \"nobody\")"),
        "{unknown}"
    );
    let twice = refused(&[whole.as_str(), &of(&half[0])].concat());
    assert!(twice.contains("is there twice"), "{twice}");
    marks_that_nothing_reads_are_refused(root);
}

/// Settings with which what is marked would go nowhere.
fn marks_that_nothing_reads_are_refused(root: &Path) {
    let without = &MARKED[..MARKED.len() - 1];
    let planned = |sets: &[&str]| with(root, &["plan"], sets).output().text();
    let ranking = planned(&[&MARKED[1..], &["finetune.on=[\"capr\"]"]].concat());
    assert!(ranking.contains("nothing marks entities here: bring what an annotator says"), "{ranking}");
    let masked = "benchmarks=[{ name = \"words\", set = { format.masked_words = { format.text = \"paragraph\" }, train = [\"world:text\"], licence = \"free\" }, parsed = { paths = [\"x\"], format.conllu = { unit = \"newdoc\", scheme = \"bio\", phrases.dependency = 2 } } }]";
    let masked = planned(&[&MARKED[1..4], &[masked]].concat());
    assert!(masked.contains("an annotator saw the masked words: set it to dictionary or none"), "{masked}");
    let unread = planned(&[&MARKED[..1], &MARKED[3..]].concat());
    assert!(unread.contains("benchmarks.alike.parsed is read by nothing: maps.entities or"), "{unread}");
    let graph = planned(
        &[
            &MARKED[..],
            &[
                "attentions.kam.knowledge.maps=[\"graph\"]",
                "maps.graph=adjacent",
                "benchmarks.alike.parsed={ paths = [\"x\"], format.text = \"line\" }",
            ],
        ]
        .concat(),
    );
    assert!(graph.contains("marks"), "{graph}");
    let unmarked = with(root, &["plan"], without).output().text();
    assert!(unmarked.contains("no format of [[corpus.texts]] or of benchmarks.parsed marks"), "{unmarked}");
}

/// Settings with which annotations of a benchmark, in a file of its name, make its maps.
fn annotated(benchmark: &str) -> Vec<String> {
    let parsed = MARKED[4].replace("alike", benchmark);
    let on = format!("finetune.on=[{benchmark:?}]");
    [on.as_str(), MARKED[1], MARKED[2], MARKED[3], parsed.as_str()].map(str::to_owned).to_vec()
}

/// The losses and gradients of a fine-tuning, and the fact of how many of its texts are annotated.
fn learnt(root: &Path, benchmark: &str, more: &[String]) -> (String, Value) {
    let stage = format!("finetune-kam-{benchmark}-1");
    let sets = annotated(benchmark);
    // What begins anew comes first, what goes over others last.
    let (first, last): (Vec<String>, Vec<String>) =
        more.iter().cloned().partition(|set| set.starts_with("benchmarks=["));
    let sets: Vec<String> = [first, sets, last].concat();
    with(root, &["run", &stage], &sets.iter().map(String::as_str).collect::<Vec<_>>()).ok();
    let steps = std::fs::read_to_string(root.join("out").join(&stage).join("metrics.jsonl")).unwrap();
    let ledger = json_lines(root.join("out/ledger.jsonl"));
    let facts = ledger.iter().rfind(|line| line["stage"] == stage.as_str()).unwrap()["facts"].clone();
    (steps, facts[format!("annotated.{benchmark}")].clone())
}

#[test]
fn what_an_annotator_says_of_passages_and_questions_is_found_by_their_texts() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    with(root, &["run", "benchmark-capr"], &[]).ok();
    let mut all = vec![];
    for part in ["train", "test"] {
        let of = |file: &str| json_lines(root.join(format!("out/benchmark-capr/{part}/{file}.jsonl")));
        let question = |query: &Value| {
            format!("{} ; {}", query["entity"].as_str().unwrap(), query["aspect"].as_str().unwrap())
        };
        all.extend(of("queries").iter().map(question));
        all.extend(of("passages").iter().map(|passage| passage["text"].as_str().unwrap().to_owned()));
    }
    all.sort();
    all.dedup();
    let is_a_line = |text: &&String| text.split_whitespace().collect::<Vec<_>>().join(" ") == **text;
    let half: std::collections::BTreeSet<&String> =
        all.iter().filter(is_a_line).take(all.len() / 2).collect();
    let write = |of: &dyn Fn(&str) -> String| {
        let whole: String = half.iter().map(|text| of(text)).collect();
        write_whole(&root.join("capr.conllu"), whole.as_bytes()).unwrap();
    };
    // Documents may be called anything.
    let named = |text: &str| {
        parsed(&format!("{:x}", text.len() * 31 + text.bytes().map(usize::from).sum::<usize>()), text)
    };
    write(&named);
    let (steps, facts) = learnt(root, "capr", &[]);
    let annotated = all.iter().filter(|text| half.contains(text)).count();
    assert_eq!(facts, object!({ "texts": all.len(), "annotated": annotated }));
    // What they say is what is attended by.
    write(&|text| named(text).replacen("ner=O", "ner=I-SIGN", 1));
    let (others, _) = learnt(root, "capr", &[]);
    assert!(steps.lines().count() == others.lines().count() && steps != others);
    write_whole(&root.join("capr.conllu"), parsed("x", "words of nobody").as_bytes()).unwrap();
    let sets = self::annotated("capr");
    let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
    let refused = with(root, &["run", "finetune-kam-capr-1"], &sets).output().text();
    assert!(
        refused.contains("benchmarks.capr.parsed: none of its documents has a text of the benchmark"),
        "{refused}"
    );
}

#[test]
fn what_an_annotator_says_of_tagged_words_is_found_by_them_whatever_rows_they_are_cut_into() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    // More words than a row has tokens.
    let words = |n: usize| {
        let mut words = vec!["then".to_owned(); 60];
        words.extend(["patient", "has", "fever"].map(str::to_owned));
        words.push(n.to_string());
        words
    };
    let tagged = |n: usize| {
        let tag = |word: &String| format!("{word}\t{}\n", if word == "fever" { "B-Sign" } else { "O" });
        words(n).iter().map(tag).collect::<String>() + "\n"
    };
    let write = |name: &str, whole: String| write_whole(&root.join(name), whole.as_bytes()).unwrap();
    write("signs.tsv", (0..24).map(tagged).collect());
    write("more.tsv", (24..30).map(tagged).collect());
    let set = "benchmarks=[{ name = \"signs\", set = { format.tagged.format.conll = { scheme = \"bio\", separator = \"tab\" }, train = [\"signs.tsv\"], drawn = { dev = 0.3, test = 0.3 }, licence = \"free\" } }, \
        { name = \"more\", trained_on = \"signs\", set = { format.tagged.format.conll = { scheme = \"bio\", separator = \"tab\" }, test = [\"more.tsv\"], licence = \"free\" }, \
        parsed = { paths = [\"more.conllu\"], format.conllu = { unit = \"newdoc\", scheme = \"bio\", phrases.dependency = 2 } } }]".to_owned();
    // Behind the first row each two words are an entity, or none is.
    let said = |n: usize, [one, two]: [&str; 2]| {
        let said = parsed(&format!("row {n}"), &words(n).join(" "));
        let line = |(at, line): (usize, &str)| {
            let tag = if at % 2 == 0 { one } else { two };
            if at < 48 { format!("{line}\n") } else { line.replace("ner=O", &format!("ner={tag}")) + "\n" }
        };
        said.lines().enumerate().map(line).collect::<String>()
    };
    let (entity, none) = (["B-SIGN", "I-SIGN"], ["O", "O"]);
    write("signs.conllu", (0..12).map(|n| said(n, entity)).collect());
    write("more.conllu", (24..27).map(|n| said(n, entity)).collect());
    let sets = [set, "finetune.on=[\"signs\", \"more\"]".to_owned()];
    let (steps, facts) = learnt(root, "signs", &sets);
    assert_eq!(facts, object!({ "texts": 24, "annotated": 12 }));
    write("signs.conllu", (0..12).map(|n| said(n, none)).collect());
    let (others, _) = learnt(root, "signs", &sets);
    assert!(steps.lines().count() == others.lines().count() && steps != others);
    // Models are tried on another benchmark by what is said of its own texts.
    let [set, on] = sets;
    let sets = [vec![set], annotated("signs"), vec![on]].concat();
    with(root, &["run", "finetune-kam-more-1"], &sets.iter().map(String::as_str).collect::<Vec<_>>()).ok();
    let ledger = json_lines(root.join("out/ledger.jsonl"));
    let facts = &ledger.iter().rfind(|line| line["stage"] == "finetune-kam-more-1").unwrap()["facts"];
    assert_eq!(facts["annotated.more"], object!({ "texts": 6, "annotated": 3 }), "{facts}");
}

#[test]
fn what_an_annotator_says_of_passages_is_kept_in_each_window() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let passage =
        |n: usize| format!("{}the patient of bed {n} has fever {n} and nothing else", "then ".repeat(40));
    let question = |n: usize| format!("what has patient {n}");
    let asked = |n: usize| {
        let (context, answer) = (passage(n), format!("fever {n}"));
        let start = context.find(&answer).unwrap();
        let qas = object!([{ "id": n.to_string(), "question": question(n), "answers": [{ "text": answer, "answer_start": start }] }]);
        object!({ "title": n.to_string(), "paragraphs": [{ "context": context, "qas": qas }] })
    };
    let squad = object!({ "version": "1.1", "data": (0..20).map(asked).collect::<Vec<_>>() });
    write_whole(&root.join("squad.json"), squad.to_string().as_bytes()).unwrap();
    let set = "benchmarks=[{ name = \"asked\", set = { format.squad.misfits = \"refuse\", train = [\"squad.json\"], drawn = { dev = 0.2, test = 0.2 }, licence = \"free\" } }]".to_owned();
    let write = |of: &dyn Fn(String) -> String| {
        let whole: String = (0..20).flat_map(|n| [of(passage(n)), of(question(n))]).collect();
        write_whole(&root.join("asked.conllu"), whole.as_bytes()).unwrap();
    };
    let named = |text: &str| parsed(&format!("{:x}", text.bytes().map(usize::from).sum::<usize>()), text);
    // Windows behind the first one: the last three words are one entity, or they are none.
    let ends = |text: &str, tags: [&str; 3]| {
        let count = text.split(' ').count();
        let lines = named(text).lines().map(str::to_owned).collect::<Vec<_>>();
        let line = |(at, line): (usize, &String)| match (at + 1).checked_sub(count) {
            Some(from) if from < 3 => line.replace("ner=O", &format!("ner={}", tags[from])) + "\n",
            _ => format!("{line}\n"),
        };
        lines.iter().enumerate().map(line).collect::<String>()
    };
    write(&|text| ends(&text, ["B-SIGN", "I-SIGN", "I-SIGN"]));
    let (steps, facts) = learnt(root, "asked", std::slice::from_ref(&set));
    assert_eq!(facts, object!({ "texts": 40, "annotated": 40 }));
    write(&|text| ends(&text, ["O", "O", "O"]));
    let (others, _) = learnt(root, "asked", &[set]);
    assert!(steps.lines().count() == others.lines().count() && steps != others);
}

#[test]
fn a_model_that_reads_pairs_together_and_apart_answers_each_line_by_its_own_maps() {
    let folder = tempfile::tempdir().unwrap();
    let sets = [
        "finetune.ranking.scorer=bi_encoder",
        "finetune.pooling=mean",
        "recipes=[{ name = \"both\", attention = \"kam\", tasks = [\"capr\", \"alike\"] }]",
    ];
    with(folder.path(), &["run", "recipe-both-1"], &sets).ok();
    let model = folder.path().join("out/recipe-both-1/model");
    let asked = folder.path().join("asked.jsonl");
    let said = |pairs: &[[&str; 2]]| -> Vec<[f64; 2]> {
        let line = |[text, pair]: &[&str; 2]| format!("{}\n", object!({ "text": text, "pair": pair }));
        write_whole(&asked, pairs.iter().map(line).collect::<String>().as_bytes()).unwrap();
        let said =
            with(folder.path(), &["predict", model.to_str().unwrap(), asked.to_str().unwrap()], &sets).ok();
        let of = |line: &str| {
            let said: Value = serde_json::from_str(line).unwrap();
            ["capr", "alike"].map(|task| said["tasks"][task]["score"].as_f64().unwrap())
        };
        said.lines().map(of).collect()
    };
    let pairs = [["fever", "a cough and pain"], ["pain of the chest", "fever"], ["cough", "cough"]];
    let together = said(&pairs);
    for (at, pair) in pairs.iter().enumerate() {
        let alone = said(&[*pair])[0];
        let near = alone.iter().zip(together[at]).all(|(a, b)| (a - b).abs() < 1e-5);
        assert!(near, "{pair:?}: {alone:?} {:?}", together[at]);
    }
    assert!((together[2][0] - 1.0).abs() < 1e-5, "a text is nearest to itself: {together:?}");
}

#[test]
fn tagged_words_are_attended_by_maps_row_by_row() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let mut tagged = String::new();
    for number in 0..60 {
        let sign = ["fever", "cough", "pain"][number % 3];
        tagged += &format!("the\tO\n{sign}\tB-Sign\nand\tO\na\u{200b}\tO\nsevere\tO\n{sign}\tB-Sign\n\n");
    }
    write_whole(&root.join("signs.tsv"), tagged.as_bytes()).unwrap();
    let set = "benchmarks=[{ name = \"signs\", set = { format.tagged = { format.conll = { scheme = \"bio\", separator = \"tab\" }, unit = \"sentence\" }, \
        train = [\"signs.tsv\"], drawn = { dev = 0.2, test = 0.2 }, licence = \"free\" } }]";
    let sets = [set, "finetune.epochs=6", "finetune.max_examples={}", "finetune.max_tokens=12"];
    with(root, &["run", "finetune-kam-signs-1"], &sets).ok();
    let out = root.join("out/finetune-kam-signs-1");
    let tried = json_lines(out.join("test.jsonl"));
    let scores = json(out.join("scores.json"));
    assert!(scores["test"]["value"].as_f64().unwrap() > 0.9, "{scores}");
    // What `predict` finds in a test's text is what was found when it was tried; words that share no token with the text's are without maps.
    let examples = json_lines(root.join("out/benchmark-signs/examples.jsonl"));
    let example = examples.iter().find(|of| of["id"] == tried[0]["id"]).unwrap();
    let asked = root.join("asked.jsonl");
    write_whole(&asked, format!("{}\n", object!({ "text": example["text"] })).as_bytes()).unwrap();
    let verb = ["predict", &out.join("model").display().to_string(), &asked.display().to_string()];
    let said: Value = serde_json::from_str(&with(root, &verb, &sets).ok()).unwrap();
    assert_eq!(said["entities"].as_array().unwrap().len(), 2, "{said}");
    let ledger = std::fs::read_to_string(root.join("out/ledger.jsonl")).unwrap();
    let line: Value = serde_json::from_str(ledger.lines().last().unwrap()).unwrap();
    let known = &line["facts"]["known.signs"];
    assert!(known["rows"].as_u64().unwrap() >= 60 && known["rows_without_maps"].is_u64(), "{known}");
    let padded = with(root, &["run", "finetune-kam-signs-1"], &sets);
    let refused = padded.set("finetune.quirks={ padding = \"trained\" }").output().text();
    assert!(refused.contains("padding that is trained on has no maps"), "{refused}");
}
