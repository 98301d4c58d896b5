//! MT-BERT on BLUE as its authors give it out: tables as Python's csv writes them, words with their offsets, and development parts of its own.

use std::fmt::Write as _;
use std::ops::Range;
use std::path::Path;

use engraft_tests::{json, json_lines};
use serde_json::json as object;

use super::papers::{refined, sentence, word};
use super::put;

const PARTS: [(&str, Range<usize>); 3] = [("train", 0..24), ("dev", 24..32), ("test", 32..40)];

/// A row between tabs; a field with a quote stands in quotes, as `csv.writer` has it.
fn row(fields: &[&str]) -> String {
    let quoted = |field: &&str| {
        if field.contains('"') { format!("\"{}\"", field.replace('"', "\"\"")) } else { (*field).to_owned() }
    };
    fields.iter().map(quoted).collect::<Vec<_>>().join("\t") + "\n"
}

/// Pairs of two kinds of things, which are or are not related.
fn relations(data: &Path, set: &str, [first, second]: [&str; 2], [related, not]: [&str; 2]) {
    for (part, numbers) in PARTS {
        let mut table = row(&["index", "sentence", "label"]);
        for number in numbers {
            let text = format!("{first} \"stops\" {second} {}", word(number));
            table += &row(&[&format!("{number}.T1.T2"), &text, if number % 3 == 0 { not } else { related }]);
        }
        put(data, &format!("blue/{set}/{part}.tsv"), &table);
    }
}

/// Two sentences that are alike to a degree, and two of which one may follow from the other: there the label stands in front.
fn pairs(data: &Path) {
    for (part, numbers) in PARTS {
        let mut alike = row(&[
            "index",
            "genre",
            "filename",
            "year",
            "old_index",
            "source1",
            "source2",
            "sentence1",
            "sentence2",
            "score",
        ]);
        let mut inferred = row(&["label", "index", "sentence1", "sentence2"]);
        for number in numbers {
            let [one, other, third] = [0, 1, 2].map(|more| sentence(number + more));
            let score = format!("{}.5", number % 5);
            alike += &row(&[&number.to_string(), "note", "-", "2018", "-", "-", "-", &one, &other, &score]);
            let label = ["entailment", "neutral", "contradiction"][number % 3];
            inferred += &row(&[label, &number.to_string(), &one, &third]);
        }
        put(data, &format!("blue/clinicalsts/{part}.tsv"), &alike);
        put(data, &format!("blue/mednli/{part}.tsv"), &inferred);
    }
}

/// Words with the document's number, where they begin, and tags without a kind; of every fourth sentence the tag behind a gap goes on.
fn entities(data: &Path, set: &str) {
    for (part, numbers) in PARTS {
        let mut table = String::new();
        for number in numbers {
            let mut offset = 0;
            for (place, of) in sentence(number).split(' ').enumerate() {
                let tag = match place {
                    0 => "B",
                    2 if number % 4 == 0 => "I",
                    _ => "O",
                };
                let document = if place == 0 { number.to_string() } else { "-".to_owned() };
                writeln!(table, "{of}\t{document}\t{offset}\t{tag}").unwrap();
                offset += of.len() + 1;
            }
            table.push('\n');
        }
        put(data, &format!("blue/{set}/{part}.tsv"), &table);
    }
}

#[test]
fn mt_bert_takes_its_eight_sets_as_blue_gives_them_out() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    pairs(&data);
    relations(&data, "i2b2-2010-re", ["@treatment$", "@problem$"], ["TrAP", "false"]);
    relations(&data, "chemprot", ["@CHEMICAL$", "@GENE$"], ["CPR:4", "false"]);
    relations(&data, "ddi2013-type", ["@DRUG$", "@DRUG$"], ["DDI-effect", "DDI-false"]);
    ["shareclefe", "bc5cdr-disease", "bc5cdr-chemical"].iter().for_each(|set| entities(&data, set));
    let (_, out) = refined(folder.path(), "mt-bert-blue");
    let index = |name: &str| json(out.join(format!("benchmark-{name}/index.json")));
    for name in ["i2b2-2010", "chemprot", "ddi"] {
        let said = index(name);
        let nothing = usize::try_from(said["nothing"].as_u64().unwrap()).unwrap();
        assert!(said["classes"][nothing].as_str().unwrap().ends_with("false"), "{said}");
    }
    assert_eq!(index("ddi")["measure"], "macro_f1");
    assert_eq!(index("chemprot")["measure"], "micro_f1");
    let chemprot = json_lines(out.join("benchmark-chemprot/examples.jsonl"));
    assert_eq!(chemprot[0]["text"], "@CHEMICAL$ \"stops\" @GENE$ a");
    // The parts are BLUE's own.
    let parts = |part: &str| chemprot.iter().filter(|row| row["part"] == part).count();
    assert_eq!(["train", "dev", "test"].map(parts), [24, 8, 8]);
    // A tag behind a gap begins an entity, as conlleval counts it, and a sentence with one is counted.
    let chemicals = index("bc5cdr-chem");
    assert_eq!(chemicals["classes"], object!(["O", "B-Chemical", "I-Chemical"]));
    assert_eq!(
        chemicals["funnel"][0]["mended"],
        object!({ "tags that break the scheme": 10 }),
        "{chemicals}"
    );
}
