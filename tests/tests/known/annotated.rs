//! What an annotator says of the texts of a benchmark becomes their maps.

use std::path::Path;

use base::whole::write_whole;
use batch::maps::sample::Sample;
use engraft_tests::{json, json_lines};
use kg::split::Part;
use serde_json::{Value, json as object};
use tasks::maps::index::Index;
use tasks::maps::read::Maps;

use super::with;

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
