//! Damaged files of every published set: what is read of them is whole, what is refused is said.
#![cfg(test)]
#![allow(clippy::disallowed_methods, reason = "thousands of files that nobody misses")]

use std::fs;
use std::ops::Range;
use std::path::Path;

use tasks::maps::hidden::MASK;
use text::attach;
use text::damage::judged;

use super::format::Format;
use super::{Item, Label, Words};
use crate::example::passages::Passage;
use crate::funnel::Step;
use crate::lama::{self, Config, Corpus, Wording};

/// A format, the name of a file, and what may stand in it.
const FILES: [(&str, &str, &str); 20] = [
    (
        "\"cosmos_qa\"",
        "some.csv",
        "id,context,question,answer0,answer1,answer2,answer3,label\na,\"It rained, é.\",Why?,Sun.,Rain.,None.,Snow.,1\nb,C.,Who?,I.,You.,He.,She.,0\n",
    ),
    (
        "{\"squad\": {\"misfits\": \"refuse\"}}",
        "some.json",
        "{\"data\": [{\"paragraphs\": [{\"context\": \"Née in Ghent.\", \"qas\": [\n{\"id\": \"q\", \"question\": \"Where?\", \"answers\": [{\"text\": \"Ghent\", \"answer_start\": 7}]},\n{\"id\": 2, \"question\": \"Why?\", \"answers\": [], \"is_impossible\": true}]}]}]}\n",
    ),
    (
        "{\"squad\": {\"misfits\": \"drop\"}}",
        "some.jsonl",
        "{\"id\": \"q\", \"title\": \"A\", \"context\": \"Née in Ghent\", \"question\": \"Where?\", \"answers\": {\"text\": [\"Ghent\"], \"answer_start\": [7]}}\n",
    ),
    (
        "{\"search_qa\": {}}",
        "some.txt",
        "<s> Née in Ghent . </s>  <s> a city </s> ||| this city ||| ghent\n<s> x </s> ||| y ||| x\n",
    ),
    ("\"cola\"", "some.tsv", "gj04\t1\t\tHe won.\ngj04\t0\t*\tWon he.\nks08\t1\t\tIt is.\n"),
    (
        "\"glue_pairs\"",
        "some.tsv",
        "index\tsentence1\tsentence2\tlabel\n0\tA é.\tB.\tentailment\n1\tC.\tD.\tnot_entailment\n",
    ),
    (
        "{\"glue\": \"qnli\"}",
        "some.tsv",
        "index\tquestion\tsentence\tlabel\n0\tWhen é?\tB.\tentailment\n1\tC?\tD.\tnot_entailment\n",
    ),
    ("\"sst2\"", "some.tsv", "sentence\tlabel\ngood film\t1\nbad \"film\t0\n"),
    ("\"sts_b\"", "some.tsv", "g\tf\t2012\t1\t3.800\tA.\tB.\ng\tf\t2012\t2\t0.000\tC.\tD.\n"),
    (
        "\"biosses\"",
        "some.tsv",
        "sentence_id\tsentence_1\tsentence_2\tannotator_a\tannotator_b\tannotator_c\tannotator_d\tannotator_e\n1\tA.\tB.\t4\t3\t4\t4\t3\n",
    ),
    ("\"clinical_sts\"", "some.txt", "A.\tB.\t2.5\nC.\tD.\t5\n"),
    (
        "\"mednli\"",
        "some.jsonl",
        "{\"pairID\": \"1\", \"sentence1\": \"A é.\", \"sentence2\": \"B.\", \"gold_label\": \"neutral\"}\n{\"pairID\": \"2\", \"sentence1\": \"C.\", \"sentence2\": \"D.\", \"gold_label\": \"entailment\"}\n",
    ),
    (
        "\"medrqe\"",
        "some.xml",
        "<?xml version=\"1.0\"?>\n<RQE-med-train>\n<pair pid=\"1\" value=\"true\">\n<chq>\n Is it?\n</chq>\n<faq>Fever &amp; é?</faq>\n</pair>\n<pair pid=\"2\" value=\"false\"><chq>A?</chq><faq>B?</faq></pair>\n</RQE-med-train>\n",
    ),
    (
        "{\"chemprot\": {\"classes\": \"groups\"}}",
        "some.txt",
        "{\"text\": \"<< A >> stops [[ é ]].\", \"label\": \"INHIBITOR\"}\n{\"text\": \"<< A >> and [[ c ]].\", \"label\": \"SUBSTRATE\"}\n",
    ),
    (
        "{\"ddi\": {\"arguments\": \"marked\"}}",
        "some.xml",
        "<document id=\"d\">\n<sentence id=\"s\" text=\"β: Aspirin and warfarin.\">\n<entity id=\"e0\" charOffset=\"3-9\" type=\"brand\"/>\n<entity id=\"e1\" charOffset=\"15-22\" type=\"drug\"/>\n<pair id=\"p\" e1=\"e0\" e2=\"e1\" ddi=\"true\" type=\"int\"/>\n</sentence></document>\n",
    ),
    (
        "{\"masked_words\": {\"format\": {\"jsonl\": {\"unit\": \"characters\"}}, \"unit\": \"sentence\"}}",
        "some.jsonl",
        "{\"text\": \"Fever é is high. Cough too.\"}\n{\"text\": \"Pain.\"}\n",
    ),
    (
        "{\"trec\": {\"classes\": \"fine\"}}",
        "some.label",
        "DESC:manner How did it begin ?\nNUM:date When ?\n",
    ),
    (
        "{\"tagged\": {\"format\": {\"conll\": {\"scheme\": \"bio\", \"separator\": \"tab\", \"untyped\": null}}, \"kinds\": null, \"unit\": \"document\"}}",
        "some.conll",
        "Low\tB-Disease\nblood\tI-Disease\n,\tO\n\né\tB-Chemical\n",
    ),
    (
        "{\"tagged\": {\"format\": {\"i2b2_xml\": {\"kinds_by\": \"type\", \"offsets\": \"from_zero\", \"misfits\": \"refuse\"}}, \"unit\": \"sentence\"}}",
        "some.xml",
        "<deIdi2b2>\n<TEXT><![CDATA[\nNée seen. Dr. Lee & Co.\n]]></TEXT>\n<TAGS>\n<NAME id=\"P0\" start=\"15\" end=\"18\" text=\"Lee\" TYPE=\"DOCTOR\"/>\n<NAME id=\"P1\" start=\"1\" end=\"4\" text=\"Née\" TYPE=\"PATIENT\"/>\n<TLINK id=\"L\" fromText=\"a & b\"/>\n</TAGS></deIdi2b2>\n",
    ),
    (
        "{\"separated\": {\"between\": \"commas\", \"fields\": {\"text\": \"note\", \"answer\": {\"classes\": {\"field\": \"kinds\", \"between\": \";\"}}}}}",
        "some.csv",
        "note,kinds\n\"one, \"\"two\"\"\nthree\",a;b\nfour,\n",
    ),
];

/// Files of one name, the text in front, and what may stand in them.
type Beside = &'static [(&'static str, &'static str)];

const REPORT: &str = "Née has rest .\n Rest for fever\n";
const CONCEPTS: &str = "c=\"rest\" 2:1 2:1||t=\"treatment\"\nc=\"fever\" 2:3 2:3||t=\"problem\"\nc=\"née\" 1:0 1:0||t=\"test\"\n";

/// A format whose texts are read with other files, and such files.
const BESIDE: [(&str, Beside); 8] = [
    (
        "{\"quasar_t\": {\"contexts\": \"short\"}}",
        &[
            (
                "questions/some_questions.json",
                "{\"uid\": \"1\", \"question\": \"Where ?\", \"answer\": \"née\"}\n{\"uid\": \"2\", \"question\": \"Who ?\", \"answer\": \"x\"}\n",
            ),
            (
                "contexts/short/some_contexts.json",
                "{\"uid\": \"1\", \"contexts\": [[1.5, \"Née , née .\"]]}\n{\"uid\": \"2\", \"contexts\": []}\n",
            ),
        ],
    ),
    (
        "{\"chemprot_track\": {}}",
        &[
            ("some_abstracts.tsv", "1\tÉA stops B.\tA binds C.\n2\tNothing.\tNo more.\n"),
            (
                "some_entities.tsv",
                "1\tT1\tCHEMICAL\t0\t2\tÉA\n1\tT2\tGENE-Y\t9\t10\tB\n1\tT3\tCHEMICAL\t12\t13\tA\n1\tT4\tGENE-N\t20\t21\tC\n",
            ),
            ("some_gold_standard.tsv", "1\tCPR:4\tArg1:T1\tArg2:T2\n1\tCPR:9\tArg1:T3\tArg2:T4\n"),
        ],
    ),
    (
        "{\"tagged\": {\"format\": {\"i2b2_concepts\": {\"misfits\": \"refuse\"}}, \"unit\": \"sentence\"}}",
        &[("some.txt", REPORT), ("some.con", CONCEPTS)],
    ),
    (
        "{\"tagged\": {\"format\": {\"share_clef\": {\"misfits\": \"refuse\"}}, \"unit\": \"document\", \"discontinuous\": \"outside\"}}",
        &[
            ("some.txt", "Née: atrium is\ndilated, fever."),
            (
                "some.pipe.txt",
                "some.txt||Disease_Disorder||C0344720||5||11||15||22\nsome.txt||Disease_Disorder||CUI-less||24||29\n",
            ),
        ],
    ),
    (
        "{\"tagged\": {\"format\": {\"brat\": {\"concepts\": \"cui\", \"misfits\": \"refuse\"}}, \"unit\": \"sentence\"}}",
        &[
            ("some.txt", "Née: fever. Pain.\n"),
            ("some.ann", "T1\tDISO 5 10\tfever\nT2\tDISO 12 16\tPain\n#1\tAnnotatorNotes T1\tC0015967\n"),
        ],
    ),
    (
        "{\"i2b2_relations\": {\"arguments\": \"replaced\", \"misfits\": \"refuse\"}}",
        &[
            ("some.txt", REPORT),
            ("some.con", CONCEPTS),
            ("some.rel", "c=\"rest\" 2:1 2:1||r=\"TrAP\"||c=\"fever\" 2:3 2:3\n"),
        ],
    ),
    (
        "{\"i2b2_relations\": {\"arguments\": \"marked\", \"misfits\": \"drop\"}}",
        &[
            ("some.txt", REPORT),
            ("some.con", CONCEPTS),
            (
                "some.rel",
                "c=\"rest\" 2:1 2:1||r=\"TrAP\"||c=\"fever\" 2:3 2:3\nc=\"fever\" 2:3 2:3||r=\"TrWP\"||c=\"rest\" 2:1 2:1\n",
            ),
        ],
    ),
    (
        "{\"n2c2_relations\": {\"arguments\": \"marked\", \"sentences\": 2, \"misfits\": \"drop\"}}",
        &[
            ("some.txt", "Née: aspirin 81 mg. For fever.\nNo rash.\n"),
            (
                "some.ann",
                "T1\tDrug 5 12\taspirin\nT2\tStrength 13 18\t81 mg\nT3\tReason 24 29\tfever\nT4\tADE 31 33;34 38\tNo rash\nR1\tStrength-Drug Arg1:T2 Arg2:T1\nR2\tReason-Drug Arg1:T3 Arg2:T1\n",
            ),
        ],
    ),
];

/// The items of a file of this content; messages begin with its name.
fn read(format: &Format, file: &Path, content: &[u8]) -> Result<Vec<Item>, String> {
    fs::write(file, content).unwrap();
    items(format, file)
}

/// The items of a file; messages begin with the name of the file that they speak of.
fn items(format: &Format, file: &Path) -> Result<Vec<Item>, String> {
    let mut items = vec![];
    let steps = format.set().read(file, &mut |item| items.push(item)).map_err(|error| {
        let folder = format!("{}/", file.parent().unwrap().display());
        error.to_string().replace(&folder, "").replace("../contexts/short/", "")
    })?;
    assert!(steps.iter().all(Step::adds_up), "{steps:?}");
    assert_eq!(steps.last().unwrap().kept, items.len() as u64);
    Ok(items)
}

/// Has damaged copies of a file of a published set read: each gives items that are whole, or is refused with the line.
fn assert_items_or_refuses(whole: &[u8], read: impl FnMut(&[u8]) -> Result<Vec<Item>, String>) {
    let whole_items = |items: &Vec<Item>, file: &str| {
        for item in items {
            let blank = |text: &str| text.trim().is_empty();
            assert!(!blank(&item.text) && !item.pair.as_deref().is_some_and(blank), "{item:?}\n{file}");
            match &item.label {
                Label::Class(class) => assert!(!class.is_empty(), "{file}"),
                Label::Classes(classes) => assert!(classes.iter().all(|class| !class.is_empty()), "{file}"),
                Label::Score(score) => assert!(score.is_finite(), "{file}"),
                Label::MaskedWords => assert!(item.pair.is_none(), "{file}"),
                Label::Passages(of) => {
                    let stands = |passage: &Passage, span: &Range<usize>| {
                        passage.text.get(span.clone()).is_some_and(|found| !blank(found))
                    };
                    let whole = of.passages.iter().all(|passage| {
                        !blank(&passage.text) && passage.spans.iter().all(|span| stands(passage, span))
                    });
                    assert!(whole && !of.passages.is_empty(), "{item:?}\n{file}");
                }
                Label::Choice(of) => {
                    let named = of.choices.iter().all(|choice| !blank(choice));
                    assert!(named && of.choices.len() > 1 && of.right < of.choices.len(), "{item:?}\n{file}");
                }
                Label::Entities(Words { words, entities, further }) => {
                    assert!(attach::words(&item.text, words).is_ok(), "{item:?}\n{file}");
                    let apart = entities.windows(2).all(|pair| pair[0].1 <= pair[1].0);
                    let within = entities.iter().all(|(from, to, _)| from < to && *to <= words.len());
                    let known = further.iter().all(|place| *place < entities.len());
                    assert!(apart && within && known, "{item:?}\n{file}");
                }
            }
        }
    };
    judged(whole, read, whole_items, |message| message.contains("line "));
}

#[test]
fn damaged_files_are_read_whole_or_refused() {
    for (format, name, content) in FILES {
        let folder = tempfile::tempdir().unwrap();
        let format: Format = serde_json::from_str(format).unwrap();
        let file = folder.path().join(name);
        assert_items_or_refuses(content.as_bytes(), |damaged| read(&format, &file, damaged));
    }
}

#[test]
fn damaged_files_beside_each_other_are_read_whole_or_refused() {
    for (format, files) in BESIDE {
        let folder = tempfile::tempdir().unwrap();
        let format: Format = serde_json::from_str(format).unwrap();
        let [text, ..] = files else { panic!("no text") };
        for (name, content) in files {
            for (name, whole) in files {
                let path = folder.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, whole).unwrap();
            }
            assert_items_or_refuses(content.as_bytes(), |damaged| {
                fs::write(folder.path().join(name), damaged).unwrap();
                items(&format, &folder.path().join(text.0))
            });
        }
    }
}

#[test]
fn damaged_facts_are_read_whole_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [facts, relations] = ["TREx/some.jsonl", "relations.jsonl"].map(|name| folder.path().join(name));
    fs::create_dir(facts.parent().unwrap()).unwrap();
    let of_facts = "{\"uuid\": \"1\", \"sub_label\": \"Née\", \"obj_label\": \"Ghent\", \"evidences\": [{\"masked_sentence\": \"In [MASK].\"}]}\n{\"uuid\": \"2\", \"sub_label\": \"B\", \"obj_label\": \"C\"}\n";
    let of_relations = "{\"relation\": \"other\", \"template\": \"[X] is [Y] .\"}\n{\"relation\": \"some\", \"template\": \"[X] was in [Y] .\"}\n";
    let config = Config { corpora: vec![Corpus::Trex], wording: Wording::Templates };
    for (path, whole) in [(&facts, of_facts), (&relations, of_relations)] {
        fs::write(&facts, of_facts).unwrap();
        fs::write(&relations, of_relations).unwrap();
        assert_items_or_refuses(whole.as_bytes(), |damaged| {
            fs::write(path, damaged).unwrap();
            let mut items = vec![];
            let read = lama::read(folder.path(), &config, &mut |fact| {
                assert!(fact.sentence.contains(MASK));
                let (group, label) = (fact.relation, Label::Class(fact.object));
                items.push(Item { id: fact.id, group, text: fact.sentence, pair: None, label });
            });
            let folder = format!("{}/", folder.path().display());
            let said = |error: tasks::Error| error.to_string().replace(&folder, "").replace("TREx/", "");
            let steps = read.map_err(|error| said(error).replace("relations.jsonl: ", "some.relations: "))?;
            assert!(steps.iter().all(Step::adds_up), "{steps:?}");
            Ok(items)
        });
    }
}

#[test]
fn damaged_labels_beside_texts_are_read_whole_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [texts, labels] = ["text", "labels"].map(|name| folder.path().join(name));
    for path in [&texts, &labels] {
        fs::create_dir(path).unwrap();
    }
    fs::write(texts.join("some.txt"), "One .\nTwo .\nThree .\n").unwrap();
    let format: Format = serde_json::from_str("{\"hoc\": {\"of\": \"sentences\"}}").unwrap();
    let whole = b"< <Inducing angiogenesis--x--y ANDResisting cell death<NULL";
    assert_items_or_refuses(whole, |damaged| {
        fs::write(labels.join("some.txt"), damaged).unwrap();
        let mut items = vec![];
        let read = format.set().read(&texts.join("some.txt"), &mut |item| items.push(item));
        let beside = format!("{}/", labels.display());
        read.map(|_| items).map_err(|error| error.to_string().replace(&beside, ""))
    });
}

#[test]
fn damaged_reviews_in_folders_are_read_whole_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pos/some.txt");
    fs::create_dir(file.parent().unwrap()).unwrap();
    let format: Format = serde_json::from_str("\"imdb\"").unwrap();
    let whole = "Née in Ghent: a café.<br />\nIt was é.\n";
    assert_items_or_refuses(whole.as_bytes(), |damaged| {
        fs::write(&file, damaged).unwrap();
        items(&format, &file)
    });
}
