//! What is written is what was found, and what the readers of the same forms read back.

use base::read::ReadError;
use base::whole::write_whole;

use super::*;
use crate::file::{Format, documents};
use crate::ner::annotate::{Annotator, Settings};
use crate::ner::context::{Context, ENGLISH};
use crate::ner::{Dictionary, Entry, Filters, Names};
use crate::word::{Case, Words};
use crate::{Document, Labels, sentence};

/// Characters of one to four bytes, marks that are combined, line ends of two characters, a name over two lines.
const TEXT: &str = "\u{1f912} No fièvre aiguë\r\nor Me\u{301}nie\u{300}re <disease> & \"more\".\nHeart\r\nfailure (HF): HF, HF\u{2013}x.";

fn entities() -> Vec<Entity> {
    let kind = |code: Option<&str>, name: &str| SemanticType {
        code: code.map(str::to_owned),
        name: name.to_owned(),
    };
    [
        ("mesh:D5334", "Fièvre Aiguë", vec![kind(Some("T184"), "Sign or Symptom"), kind(None, "symptom")]),
        ("name:ménière 100%", "Ménière", vec![]),
        ("mesh:D6333", "Heart Failure", vec![kind(Some("T047"), "Disease & Syndrome")]),
        ("x:1", "Heart Failure", vec![]),
    ]
    .into_iter()
    .map(|(key, text, types)| Entity {
        key: key.to_owned(),
        text: text.to_owned(),
        level: None,
        types,
        same_as: Vec::new(),
        origins: Vec::new(),
    })
    .collect()
}

fn tagged(text: &str) -> Tagged {
    let entities = entities();
    let entries = entities.iter().zip(0..);
    let entries =
        entries.map(|(entity, id)| Entry { text: &entity.text, entity: kg::table::EntityId(id), types: &[] });
    let settings = Settings { dictionary: Filters::as_written(), ..Settings::default() };
    let dictionary = Dictionary::build(entries, &settings.dictionary).unwrap();
    let names =
        Names::new(dictionary, entities.iter().map(|entity| entity.text.as_str()), &settings).unwrap();
    let context = Context::read(ENGLISH, std::path::Path::new("english.txt")).unwrap();
    let document = Document { id: "note 1.txt".to_owned(), text: text.to_owned(), ..Document::default() };
    Tagged {
        file: None,
        id: document.id.clone(),
        text: text.to_owned(),
        sentences: Vec::new(),
        mentions: Annotator::new(&names, Some(&context)).annotate(&document),
    }
}

/// What a mention is, of a document that a reader of ours read: its pieces, and what is said of it.
fn read(bytes: &[u8], format: &str, file: &std::path::Path) -> (Document, Labels) {
    let format: Format = serde_json::from_str(format).unwrap();
    let (mut labels, mut found) = (Labels::default(), None);
    let each = |document: &Document| -> Result<(), ReadError> {
        assert!(found.replace(document.clone()).is_none());
        Ok(())
    };
    documents(bytes, file, &format, &mut labels, each).unwrap();
    (found.unwrap(), labels)
}

const FOUND: [&str; 5] = ["fièvre aiguë", "Me\u{301}nie\u{300}re", "Heart\r\nfailure", "HF", "HF"];

#[test]
fn json_has_places_in_characters_and_in_bytes() {
    let (tagged, entities) = (tagged(TEXT), entities());
    let line = json::line(&tagged, &entities);
    let row: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert!(
        !line.contains('\n') && row["id"] == "note 1.txt" && row["text"] == TEXT && row.get("file").is_none()
    );
    let characters: Vec<char> = TEXT.chars().collect();
    let mentions = row["mentions"].as_array().unwrap();
    let place =
        |mention: &serde_json::Value, key: &str| usize::try_from(mention[key].as_u64().unwrap()).unwrap();
    let texts: Vec<String> = mentions
        .iter()
        .map(|mention| {
            let by_character: String =
                characters[place(mention, "start")..place(mention, "end")].iter().collect();
            assert_eq!(by_character, TEXT[place(mention, "byte_start")..place(mention, "byte_end")]);
            assert_eq!(mention["text"], by_character);
            by_character
        })
        .collect();
    assert_eq!(texts[..4], FOUND[..4]);
    assert_eq!(
        (&mentions[0]["entity"], &mentions[0]["modifiers"][0]),
        (&"mesh:D5334".into(), &"negated".into())
    );
    assert_eq!(mentions[0]["types"][0], serde_json::json!({"code": "T184", "name": "Sign or Symptom"}));
    assert_eq!(
        (mentions[2]["candidates"].as_array().unwrap().len(), &mentions[3]["how"]),
        (2, &"abbreviation".into())
    );
}

#[test]
fn the_form_of_spacy_is_read_back() {
    let (tagged, entities) = (tagged(TEXT), entities());
    let line = spacy::line(&tagged, &entities);
    let said: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        (&said["spans"]["engraft"], said["ents"][0]["kb_id"].as_str()),
        (&said["ents"], Some("mesh:D5334"))
    );
    // What spaCy has no place for is beside it.
    let known: serde_json::Value = serde_json::from_str(&json::line(&tagged, &entities)).unwrap();
    assert_eq!(said["mentions"], known["mentions"]);
    let (document, labels) = read(
        line.as_bytes(),
        r#"{"annotated_json":{"layout":"spacy","phrases":"none"}}"#,
        std::path::Path::new("a.jsonl"),
    );
    let mut words = Words::new(Case::Uncased);
    words.split(TEXT);
    let words: Vec<_> = words.iter().map(|word| word.bytes).collect();
    assert_eq!((&document.text, &document.words), (&tagged.text, &words));
    let of = |one: &crate::Entity| (TEXT[one.pieces[0].clone()].to_owned(), one.concepts.clone());
    assert_eq!(of(&document.entities[0]), ("fièvre aiguë".to_owned(), vec!["mesh:D5334".to_owned()]));
    assert_eq!(document.entities.len(), tagged.mentions.len());
    assert_eq!(labels.names(), ["Sign or Symptom", "entity", "Disease & Syndrome"]);
    assert_eq!(document.sentences.len(), sentence::starts(TEXT).len() + 1);
}

#[test]
fn bioc_is_read_back_and_refuses_what_xml_cannot_hold() {
    let (tagged, entities) = (tagged(TEXT), entities());
    let xml = [bioc::BEGINNING, &bioc::document(&tagged, &entities).unwrap(), bioc::END].concat();
    let format = r#"{"bioc":{"concepts":["identifier","candidates"],"composites":"whole"}}"#;
    let (document, _) = read(xml.as_bytes(), format, std::path::Path::new("a.bioc.xml"));
    assert_eq!(document.text, tagged.text);
    let pieces: Vec<_> = document.entities.iter().map(|one| one.pieces[0].clone()).collect();
    assert_eq!(pieces, tagged.mentions.iter().map(|one| one.bytes.clone()).collect::<Vec<_>>());
    assert_eq!(document.entities[2].concepts, ["mesh:D6333", "x:1"]);
    let place = tagged.mentions[2].bytes.clone();
    for (key, value) in [
        ("candidate_scores", "1".to_owned()),
        ("byte_start", place.start.to_string()),
        ("byte_end", place.end.to_string()),
    ] {
        assert!(xml.contains(&format!("<infon key=\"{key}\">{value}</infon>")), "{key}: {xml}");
    }
    let refused = bioc::document(&self::tagged("a \u{1} b"), &entities).unwrap_err().to_string();
    assert_eq!(
        refused,
        "document \"note 1.txt\" has the character U+0001, which BioC's XML cannot hold; write another form"
    );
}

#[test]
fn brat_is_read_back() {
    let (tagged, entities) = (tagged(TEXT), entities());
    assert_eq!(brat::name(&tagged), "note_1");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.txt");
    write_whole(&file, tagged.text.as_bytes()).unwrap();
    write_whole(&folder.path().join("a.ann"), brat::annotations(&tagged, &entities).as_bytes()).unwrap();
    let annotations = brat::annotations(&tagged, &entities);
    let place = tagged.mentions[2].bytes.clone();
    let note = format!("\tMatch T3\thow=name score=1|1 bytes={}-{}", place.start, place.end);
    assert!(annotations.lines().any(|line| line.ends_with(&note)), "{annotations}");
    let (document, labels) = read(TEXT.as_bytes(), r#"{"brat":{"concepts":"any"}}"#, &file);
    assert_eq!(document.text, tagged.text);
    let of = |one: &crate::Entity| {
        let lines: Vec<&str> = one.pieces.iter().map(|piece| &TEXT[piece.clone()]).collect();
        (lines.join("\n"), one.concepts.clone())
    };
    let all: Vec<_> = document.entities.iter().map(of).collect();
    assert_eq!(all.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>()[..4], FOUND[..4]);
    assert_eq!(all[1].1, ["name:ménière%20100%25"]);
    assert_eq!(all[2].1, ["mesh:D6333", "x:1"]);
    assert_eq!(labels.names(), ["Sign_or_Symptom", "entity", "Disease___Syndrome"]);
    let hidden = Tagged { id: "../a/b".to_owned(), file: Some("x.txt".to_owned()), ..tagged };
    assert_eq!(brat::name(&hidden), "x.txt-.._a_b");
}

#[test]
fn tables_have_a_row_for_each_candidate() {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float32Type, Int32Type};
    use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

    let (tagged, entities, folder) = (tagged(TEXT), entities(), tempfile::tempdir().unwrap());
    let file = folder.path().join("mentions.parquet");
    let mut writer = table::Writer::create(&file).unwrap();
    writer.push(&tagged, &entities).unwrap();
    writer.push(&self::tagged(""), &entities).unwrap();
    writer.finish().unwrap();
    let read = ParquetRecordBatchReaderBuilder::try_new(std::fs::File::open(&file).unwrap()).unwrap();
    let batch = read.build().unwrap().next().unwrap().unwrap();
    let told: Vec<_> = tagged.told(&entities).collect();
    let rows: Vec<_> =
        told.iter().flat_map(|told| told.candidates.iter().map(move |one| (told, one))).collect();
    assert_eq!(batch.num_rows(), rows.len());
    let numbers = |name: &str| batch.column_by_name(name).unwrap().as_primitive::<Int32Type>().clone();
    let texts = |name: &str| batch.column_by_name(name).unwrap().as_string::<i32>().clone();
    for (row, (told, (entity, score))) in rows.iter().enumerate() {
        assert_eq!(texts("document").value(row), "note 1.txt");
        assert_eq!((texts("entity").value(row), texts("text").value(row)), (entity.key.as_str(), told.text));
        let places = ["start", "end", "byte_start", "byte_end"].map(|name| numbers(name).value(row));
        let expected = [told.characters.start, told.characters.end, told.bytes.start, told.bytes.end];
        assert_eq!(places.map(|place| usize::try_from(place).unwrap()), expected);
        let scores = batch.column_by_name("score").unwrap().as_primitive::<Float32Type>().clone();
        assert_eq!(scores.value(row).to_bits(), score.to_bits());
        let negated = batch.column_by_name("negated").unwrap().as_boolean().value(row);
        assert_eq!(negated, told.modifiers.has(crate::ner::context::Modifier::Negated));
    }
    assert!(batch.column_by_name("file").unwrap().null_count() == rows.len());
}

#[test]
fn files_of_parts_make_the_file_of_the_whole() {
    let (tagged, entities, folder) = (tagged(TEXT), entities(), tempfile::tempdir().unwrap());
    let rows = tagged.told(&entities).map(|told| told.candidates.len()).sum::<usize>();
    // More than what is turned into columns at a time, and than a group of rows.
    let documents = (300_000 / rows + 1) as u64;
    let write = |name: &str, numbers: Range<u64>| {
        let file = folder.path().join(name);
        let mut writer = table::Writer::create(&file).unwrap();
        for number in numbers {
            let file = (number % 3 > 0).then(|| format!("{}.txt", number / 1000));
            let document = Tagged { id: number.to_string(), file, ..tagged.clone() };
            writer.push(&document, &entities).unwrap();
        }
        writer.finish().unwrap();
        file
    };
    let whole = write("whole", 0..documents);
    let parts = [
        write("a", 0..1),
        write("b", 1..documents / 3),
        write("none", 1..1),
        write("c", documents / 3..documents),
    ];
    let joined = folder.path().join("joined");
    let mut seen = 0;
    let found = table::join(&parts, &joined, &mut |rows| {
        seen += rows;
        Ok::<(), Box<dyn std::error::Error>>(())
    });
    let best: std::collections::BTreeSet<&str> =
        tagged.told(&entities).filter_map(|told| Some(told.candidates.first()?.0.key.as_str())).collect();
    assert_eq!((found.unwrap(), seen), (best.len() as u64, documents * rows as u64));
    assert!(std::fs::read(&whole).unwrap() == std::fs::read(&joined).unwrap());
    write_whole(&parts[1], b"PAR1").unwrap();
    let text = table::join(&parts, &joined, &mut |_| Ok::<(), Box<dyn std::error::Error>>(()))
        .unwrap_err()
        .to_string();
    assert!(text.contains("/b") && text.contains("tag the part again"), "{text}");
    assert!(std::fs::read(&whole).unwrap() == std::fs::read(&joined).unwrap(), "nothing was written");
}
