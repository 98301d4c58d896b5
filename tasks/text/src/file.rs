//! Documents of a file of any of the formats.

use std::fs::File;
use std::io::BufRead;
use std::path::Path;

use base::gz;
use base::read::ReadError;
use serde::{Deserialize, Serialize};

use super::reader::TextFormat;
use super::{
    Counts, Document, Labels, annotated_json, bioc, bioc_json, brackets, brat, conll, conllu, i2b2, i2b2_xml,
    jsonl, medquad, mention_list, mimic_notes, parquet, pubmed, pubmedqa, pubtator, share, text, wikisection,
};

/// What a file of a format says of its texts, or where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Has {
    /// Which entities are in them.
    Entities,
    /// Which phrases are in them.
    Phrases,
    /// Its annotations lie in another file, which is not looked for in a packed form.
    FileBeside,
    /// Its texts are patients' notes, given out under an agreement.
    Agreement,
}

/// Makes [`Format`] of the one list of formats: the name that configs call it by (in snake case), its settings, what its files have beside
/// texts, and how their names end. A format without settings has a reader instead.
macro_rules! formats {
    (
        with settings {
            $($(#[$doc:meta])* $name:ident($settings:ty): [$($has:ident),*], [$($extension:literal),*];)*
        }
        without {
            $($(#[$plain_doc:meta])* $plain:ident = $reader:expr, [$($plain_extension:literal),*];)*
        }
    ) => {
        /// What a file looks like.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
        #[serde(rename_all = "snake_case", deny_unknown_fields)]
        pub enum Format {
            $($(#[$doc])* $name($settings),)*
            $($(#[$plain_doc])* $plain,)*
        }

        impl Format {
            fn settings(&self) -> &dyn TextFormat {
                match self {
                    $(Self::$name(settings) => settings,)*
                    $(Self::$plain => &$reader,)*
                }
            }

            fn has(&self) -> &'static [Has] {
                match self {
                    $(Self::$name(_) => &[$(Has::$has),*],)*
                    $(Self::$plain => &[],)*
                }
            }

            /// How the names of its files end.
            #[must_use]
            pub fn extensions(&self) -> &'static [&'static str] {
                match self {
                    $(Self::$name(_) => &[$($extension),*],)*
                    $(Self::$plain => &[$($plain_extension),*],)*
                }
            }
        }
    };
}

formats! {
    with settings {
        /// Plain text, without annotations (`.txt`): a document is a `paragraph`, up to the next blank line, a `line`, or a `file` as it stands.
        Text(text::Unit): [], [".txt", ".txt.gz"];
        /// JSON Lines (`.jsonl`): `{"text", "id", "spans": [{"start", "end", "label"}]}` per line; `id` and `spans` may be missing.
        Jsonl(jsonl::Config): [Entities], [".jsonl", ".jsonl.gz"];
        /// CoNLL (`.conll`): one word and its tag per line, blank lines between sentences.
        Conll(conll::Config): [Entities], [".conll", ".conll.gz"];
        /// Answers of MedQuAD (`.xml`); a pair without one is skipped and counted.
        Medquad(medquad::Config): [], [".xml", ".xml.gz"];
        /// Titles and abstracts of PubMed's XML (`.xml`): baseline, updates, efetch.
        Pubmed(pubmed::Config): [], [".xml", ".xml.gz"];
        /// Contexts of PubMedQA (`.json`), one paragraph each.
        Pubmedqa(pubmedqa::Config): [], [".json", ".json.gz"];
        /// Notes of MIMIC-III, `NOTEEVENTS.csv`; those marked as errors are skipped.
        MimicNotes(mimic_notes::Config): [Agreement], [".csv", ".csv.gz"];
        /// A text column of Parquet files (`.parquet`).
        Parquet(parquet::Config): [], [".parquet"];
        /// Titles and abstracts with mentions, as PubTator prints them (`.PubTator.txt`, `.pubtator`).
        Pubtator(pubtator::Config): [Entities], [".PubTator.txt", ".PubTator.txt.gz", ".pubtator", ".pubtator.gz"];
        /// Documents of passages with mentions, as BioC XML (`.BioC.xml`, `.bioc.xml`).
        Bioc(bioc::Config): [Entities], [".BioC.xml", ".BioC.xml.gz", ".bioc.xml", ".bioc.xml.gz"];
        /// The same as JSON (`.BioC.JSON`, `.bioc.json`, `.biocjson`): collections with `documents` or `PubTator3`, single, concatenated or
        /// in a list, or one document per line.
        BiocJson(bioc_json::Config): [Entities], [".BioC.JSON", ".BioC.JSON.gz", ".bioc.json", ".bioc.json.gz", ".biocjson", ".biocjson.gz"];
        /// brat: a text (`.txt`); its entities are in the `.ann` file next to it.
        Brat(brat::Config): [Entities, FileBeside], [".txt"];
        /// i2b2 2010: a text (`.txt`) with one tokenised sentence per line; its concepts are in the `.con` file next to it or in
        /// `../concept`.
        I2b2Concepts(i2b2::Config): [Entities, FileBeside, Agreement], [".txt"];
        /// A record of i2b2 2012 or 2014 with its entities (`.xml`); `TLINK`, `SECTIME` and annotations without a position are skipped and
        /// counted.
        I2b2Xml(i2b2_xml::Config): [Entities, Agreement], [".xml", ".xml.gz"];
        /// ShARe/CLEF 2013, SemEval 2014: a report (`.txt`, `.text`); its disorders are in `NAME.pipe.txt` or `NAME.pipe`.
        ShareClef(share::Config): [Entities, FileBeside, Agreement], [".txt", ".text"];
        /// Mentions with their concepts, a line each, without their texts (`.concept`, `.txt`, `.tsv`): sets for entity linking, as BioSyn, SapBERT and COMETA lay them out.
        MentionList(mention_list::Layout): [Entities], [".concept", ".txt", ".tsv", ".concept.gz", ".txt.gz", ".tsv.gz"];
        /// Sentences with entities and dependencies, or documents of several, as Stanza and spaCy write CoNLL-U (`.conllu`).
        Conllu(conllu::Config): [Entities, Phrases], [".conllu", ".conllu.gz"];
        /// Sentences from constituency trees in brackets (`.mrg`, `.ptb`), words joined by single spaces.
        Brackets(brackets::Config): [Phrases], [".mrg", ".mrg.gz", ".ptb", ".ptb.gz"];
        /// One document per line (`.jsonl`), as Stanza's `doc.to_dict()` or spaCy's `doc.to_json()`.
        AnnotatedJson(annotated_json::Config): [Entities, Phrases], [".jsonl", ".jsonl.gz"];
    }
    without {
        /// Articles of WikiSection (`.json`), all sections joined.
        Wikisection = wikisection::Articles, [".json", ".json.gz"];
    }
}

impl Format {
    /// Whether files of it say which entities are in them.
    #[must_use]
    pub fn has_spans(&self) -> bool {
        self.has().contains(&Has::Entities)
    }

    /// Whether files of it say which phrases are in them.
    #[must_use]
    pub fn has_phrases(&self) -> bool {
        self.has().contains(&Has::Phrases)
    }

    /// Whether such files are only had under an agreement with their owner, as patients' notes are.
    #[must_use]
    pub fn is_under_agreement(&self) -> bool {
        self.has().contains(&Has::Agreement)
    }

    /// Whether what is read with a file lies in another one.
    #[must_use]
    pub fn is_in_several_files(&self) -> bool {
        self.has().contains(&Has::FileBeside)
    }
}

/// Hands each document of `file` to `each`. What is packed by gzip or Zstandard is unpacked, but for Parquet files, which pack their pages.
///
/// # Errors
/// When the file cannot be opened or is damaged, or `each` fails.
pub fn documents_of<E: From<ReadError>>(
    file: &Path,
    format: &Format,
    labels: &mut Labels,
    each: impl FnMut(&Document) -> Result<(), E>,
) -> Result<Counts, E> {
    let unopened = |source| ReadError::new(file, format!("cannot open the text: {source}"), "", "");
    let bytes = File::open(file).and_then(gz::reader).map_err(unopened)?;
    documents(bytes, file, format, labels, each)
}

/// Hands each document of a file to `each`. `file` names it in messages; of a Parquet file, which is not read from its beginning on,
/// it is what is read, and `reader` is not.
///
/// # Errors
/// When the file is damaged, or `each` fails.
pub fn documents<R: BufRead, E: From<ReadError>>(
    reader: R,
    file: &Path,
    format: &Format,
    labels: &mut Labels,
    mut each: impl FnMut(&Document) -> Result<(), E>,
) -> Result<Counts, E> {
    let mut reader = format.settings().reader(Box::new(reader), file)?;
    let mut document = Document::default();
    while reader.read(&mut document, labels)? {
        each(&document)?;
    }
    Ok(reader.counts())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn format(json: &str) -> Format {
        serde_json::from_str(json).unwrap()
    }

    /// A format as configs have it, a file of it, and the text of its only document.
    const FILES: [(&str, &str, &str); 9] = [
        (r#"{"text":"line"}"#, "Fever.\n", "Fever."),
        (
            r#"{"jsonl":{"unit":"bytes","overlaps":"refuse","other_keys":"refuse"}}"#,
            r#"{"text":"Fever."}"#,
            "Fever.",
        ),
        (r#"{"conll":{"scheme":"bio","separator":"tab"}}"#, "Fever\tO\n.\tO\n", "Fever ."),
        (
            r#"{"medquad":{"questions":"leave"}}"#,
            "<Document source='a'><QAPairs><QAPair><Question qid='1'>b</Question><Answer>Fever.</Answer></QAPair></QAPairs></Document>",
            "Fever.",
        ),
        (
            r#"{"pubmed":{"section_labels":"take"}}"#,
            "<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID>1</PMID><Article><ArticleTitle>Fever.</ArticleTitle></Article>\
             </MedlineCitation></PubmedArticle></PubmedArticleSet>",
            "Fever.",
        ),
        (
            r#"{"i2b2_xml":{"kinds_by":"element","offsets":"from_zero","misfits":"refuse"}}"#,
            "<deIdi2b2><TEXT><![CDATA[Fever.]]></TEXT><TAGS/></deIdi2b2>",
            "Fever.",
        ),
        (r#""wikisection""#, r#"{"id":"1","text":"Fever."}"#, "Fever."),
        (r#"{"pubmedqa":{"long_answers":"leave"}}"#, r#"{"1":{"CONTEXTS":["Fever."]}}"#, "Fever."),
        (
            r#"{"mimic_notes":{"categories":[],"deidentified":"keep"}}"#,
            "ROW_ID,CATEGORY,ISERROR,TEXT\n1,Radiology,,Fever.\n",
            "Fever.",
        ),
    ];

    fn texts(file: &Path, format: &Format) -> Result<Vec<String>, String> {
        let mut texts = Vec::new();
        let each = |document: &Document| -> Result<(), ReadError> {
            texts.push(document.text.clone());
            Ok(())
        };
        let counts = documents_of(file, format, &mut Labels::default(), each).map_err(|e| e.to_string())?;
        assert_eq!(counts.documents.kept, texts.len() as u64);
        Ok(texts)
    }

    #[test]
    fn a_file_of_each_format_is_read_packed_or_not() {
        let folder = tempfile::tempdir().unwrap();
        for (config, contents, expected) in FILES {
            let format = format(config);
            let [plain, packed] = format.extensions() else { panic!("{config}") };
            let (plain, packed) =
                (folder.path().join(format!("a{plain}")), folder.path().join(format!("a{packed}")));
            File::create(&plain).unwrap().write_all(contents.as_bytes()).unwrap();
            let level = flate2::Compression::fast();
            let mut encoder = flate2::write::GzEncoder::new(File::create(&packed).unwrap(), level);
            encoder.write_all(contents.as_bytes()).unwrap();
            encoder.finish().unwrap();
            assert_eq!(texts(&plain, &format).unwrap(), [expected], "{config}");
            assert_eq!(texts(&packed, &format).unwrap(), [expected], "{config}");
            let marks = ["jsonl", "conll", "i2b2"].iter().any(|name| config.contains(name));
            assert_eq!(format.has_spans(), marks, "{config}");
            assert_eq!(
                serde_json::to_value(&format).unwrap(),
                serde_json::from_str::<serde_json::Value>(config)
                    .map(|mut value| {
                        if let Some(conll) = value.get_mut("conll").and_then(|conll| conll.as_object_mut()) {
                            conll.insert("untyped".to_owned(), serde_json::Value::Null);
                            conll.insert("broken_tags".to_owned(), "refuse".into());
                        }
                        value
                    })
                    .unwrap()
            );
        }
    }

    /// A format, the name of a file of it, the file and, of formats that keep entities apart, the ending of the file beside it and that file.
    type Row<'t> = (&'t str, &'t str, &'t str, Option<(&'t str, &'t str)>);

    /// Files with text to their last line.
    const WHOLE: [Row<'_>; 18] = [
        (r#"{"text":"line"}"#, "a.txt", "Fever.\nPain.\n", None),
        (r#"{"text":"paragraph"}"#, "a.txt", "Fever.\n\nPain.\n", None),
        (
            r#"{"jsonl":{"unit":"bytes","overlaps":"refuse","other_keys":"refuse"}}"#,
            "a.jsonl",
            "{\"text\":\"Fever.\"}\n{\"text\":\"Pain.\",\"spans\":[{\"start\":0,\"end\":4,\"label\":\"x\"}]}\n",
            None,
        ),
        (
            r#"{"conll":{"scheme":"bio","separator":"tab"}}"#,
            "a.conll",
            "Fever\tO\n.\tO\n\n0\tO\n.\tO\n64\tB-x\n",
            None,
        ),
        (
            r#"{"medquad":{"questions":"leave"}}"#,
            "a.xml",
            "<Document source='a'><QAPairs><QAPair><Question qid='1'>b</Question><Answer>Fever.</Answer></QAPair></QAPairs></Document>\n",
            None,
        ),
        (
            r#"{"mimic_notes":{"categories":[],"deidentified":"keep"}}"#,
            "a.csv",
            "ROW_ID,CATEGORY,ISERROR,TEXT\n1,Radiology,,Fever.\n2,Radiology,,Pain\n",
            None,
        ),
        (r#""wikisection""#, "a.json", "{\"id\":\"1\",\"text\":\"Fever.\"}\n", None),
        (
            r#"{"mention_list":"biosyn"}"#,
            "a.concept",
            "1||0|5||Sign||Fever||D1\n1||6|10||Sign||Pain||D2\n",
            None,
        ),
        (
            r#"{"pubtator":{"between":"newline","misfits":"refuse"}}"#,
            "a.pubtator",
            "1|t|Fever\n1|a|Pain.\n1\t6\t10\tPain\tSign\tD1\n",
            None,
        ),
        (
            r#"{"bioc":{"concepts":[],"composites":"whole","misfits":"refuse"}}"#,
            "a.BioC.xml",
            "<collection><document><id>1</id><passage><offset>0</offset><text>A . B</text></passage><passage>\
             <sentence><offset>6</offset><text>C . D</text></sentence><sentence><offset>12</offset><text>E . F</text></sentence>\
             </passage></document></collection>\n",
            None,
        ),
        (
            r#"{"brat":{"concepts":"none","misfits":"refuse"}}"#,
            "a.txt",
            "Fever. Pain.\n",
            Some(("ann", "T1\tDISO 0 5\tFever\n")),
        ),
        (
            r#"{"i2b2_concepts":{"misfits":"refuse"}}"#,
            "a.txt",
            "Fever . And\n0 . 64 mg\n",
            Some(("con", "c=\"fever\" 1:0 1:0||t=\"problem\"\n")),
        ),
        (
            r#"{"i2b2_xml":{"kinds_by":"element","offsets":"from_zero","misfits":"refuse"}}"#,
            "a.xml",
            "<deIdi2b2><TEXT><![CDATA[Fever.]]></TEXT><TAGS/></deIdi2b2>\n",
            None,
        ),
        (
            r#"{"share_clef":{"misfits":"refuse"}}"#,
            "a.txt",
            "Fever. Pain.\n",
            Some(("pipe.txt", "a.txt||Disease_Disorder||C1||0||5\n")),
        ),
        (
            r#"{"conllu":{"unit":"newdoc","scheme":"bio","phrases":"none"}}"#,
            "a.conllu",
            "1\t0\t_\t_\t_\t_\t_\t_\t_\t_\n2\t.\t_\t_\t_\t_\t_\t_\t_\t_\n3\t64\t_\t_\t_\t_\t_\t_\t_\t_\n\n\
             1\tB\t_\t_\t_\t_\t_\t_\t_\tner=B-x\n",
            None,
        ),
        (r#"{"brackets":{"level":2}}"#, "a.mrg", "(S (NP (X 0) (X .)) (X 64))\n", None),
        (
            r#"{"annotated_json":{"layout":"stanza","phrases":"none"}}"#,
            "a.jsonl",
            "[[{\"id\":1,\"text\":\"0\",\"start_char\":0,\"end_char\":1},{\"id\":2,\"text\":\".\",\"start_char\":2,\"end_char\":3},\
             {\"id\":3,\"text\":\"64\",\"start_char\":4,\"end_char\":6}],[{\"id\":1,\"text\":\"B\",\"start_char\":7,\"end_char\":8}]]\n",
            None,
        ),
        (
            r#"{"annotated_json":{"layout":"spacy","phrases":"none"}}"#,
            "a.jsonl",
            "{\"text\":\"né . 64 B\",\"sents\":[{\"start\":0,\"end\":7},{\"start\":8,\"end\":9}]}\n",
            None,
        ),
    ];

    fn whole(documents: Row<'_>) -> Result<Vec<Document>, String> {
        let (config, name, contents, beside) = documents;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name);
        base::whole::write_whole(&file, contents.as_bytes()).unwrap();
        if let Some((ending, contents)) = beside {
            base::whole::write_whole(&file.with_extension(ending), contents.as_bytes()).unwrap();
        }
        let mut all = Vec::new();
        let each = |document: &Document| -> Result<(), ReadError> {
            all.push(document.clone());
            Ok(())
        };
        documents_of(&file, &format(config), &mut Labels::default(), each).map_err(|e| e.to_string())?;
        Ok(all)
    }

    #[test]
    fn silent_14_sentences_are_the_files_wherever_a_format_has_them() {
        let mut found = Vec::new();
        for row in WHOLE {
            for document in whole(row).unwrap() {
                let cuts = super::super::sentence::of(&document.text, &document.sentences);
                let mut ends = cuts.to_vec();
                ends.push(document.text.len());
                let mut from = 0;
                let sentences =
                    ends.into_iter().map(|to| document.text[std::mem::replace(&mut from, to)..to].trim());
                found.push((row.0, sentences.map(str::to_owned).collect::<Vec<_>>()));
            }
        }
        let of = |format: &str| -> Vec<&[String]> {
            found
                .iter()
                .filter(|(config, _)| config.contains(format))
                .map(|(_, all)| all.as_slice())
                .collect()
        };
        for (format, expected) in [
            ("\"conll\"", &[&["Fever ."][..], &["0 . 64"]][..]),
            ("\"bioc\"", &[&["A .", "B", "C . D", "E . F"]]),
            ("pubtator", &[&["Fever", "Pain."]]),
            ("i2b2_concepts", &[&["Fever . And", "0 . 64 mg"]]),
            ("\"conllu\"", &[&["0 . 64", "B"]]),
            ("brackets", &[&["0 . 64"]]),
            ("stanza", &[&["0 . 64", "B"]]),
            ("spacy", &[&["né . 64", "B"]]),
            // Whoever says nothing of sentences has them found by rule.
            ("share_clef", &[&["Fever.", "Pain."]]),
        ] {
            assert_eq!(of(format), expected, "{format}");
        }
    }

    #[test]
    fn silent_17_a_missing_last_line_end_is_no_error_in_any_reader() {
        for (config, name, contents, beside) in WHOLE {
            let expected = whole((config, name, contents, beside)).unwrap();
            let cut = |text: &'static str| text.strip_suffix('\n').unwrap();
            let beside = beside.map(|(ending, contents)| (ending, cut(contents)));
            let mut found = whole((config, name, cut(contents), beside)).unwrap();
            // Where a file is a text, its line end is the text's.
            for (document, expected) in found.iter_mut().zip(&expected) {
                let ends = expected.text.ends_with('\n') && !document.text.ends_with('\n');
                document.text.push_str(if ends { "\n" } else { "" });
            }
            assert_eq!(found, expected, "{config}");
        }
    }

    #[test]
    fn silent_17_lines_that_end_with_a_bare_carriage_return_are_named() {
        let lines = [
            "text",
            "jsonl",
            "conll",
            "pubtator",
            "brat",
            "i2b2_concepts",
            "share_clef",
            "conllu",
            "brackets",
        ];
        for (config, name, contents, beside) in WHOLE {
            let [own, of_beside] = [Some(contents), beside.map(|(_, contents)| contents)]
                .map(|text| text.map(|text| text.replace('\n', "\r").repeat(2)));
            let beside = beside.zip(of_beside.as_deref()).map(|((ending, _), contents)| (ending, contents));
            let read = whole((config, name, own.as_deref().unwrap(), beside));
            if lines.iter().any(|name| config.starts_with(&format!("{{\"{name}\""))) {
                let refused = read.unwrap_err();
                assert!(refused.contains("line 1: the lines of the file end with a bare CR"), "{refused}");
            }
        }
    }

    #[test]
    fn a_parquet_file_is_read_where_it_lies() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.parquet");
        let texts: arrow_array::ArrayRef =
            std::sync::Arc::new(arrow_array::StringArray::from(vec!["Fever.", "Pain."]));
        let batch = arrow_array::RecordBatch::try_from_iter([("body", texts)]).unwrap();
        let opened = File::create(&file).unwrap();
        let mut writer = ::parquet::arrow::ArrowWriter::try_new(opened, batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.close().unwrap();
        let format = format(r#"{"parquet":{"column":"body"}}"#);
        assert_eq!(self::texts(&file, &format).unwrap(), ["Fever.", "Pain."]);
        let mut read = Vec::new();
        let each = |document: &Document| -> Result<(), ReadError> {
            read.push(document.id.clone());
            Ok(())
        };
        documents(std::io::empty(), &file, &format, &mut Labels::default(), each).unwrap();
        assert_eq!(read, ["1", "2"]);
        assert_eq!((format.extensions(), format.has_spans()), (&[".parquet"][..], false));
    }

    #[test]
    fn missing_files_damaged_packing_and_unknown_keys_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.xml.gz");
        let medquad = format(r#"{"medquad":{"questions":"take"}}"#);
        let message = texts(&file, &medquad).unwrap_err();
        assert!(message.contains("a.xml.gz: cannot open the text"), "{message}");
        File::create(&file).unwrap().write_all(b"\x1f\x8b\x08\0\0").unwrap();
        let message = texts(&file, &medquad).unwrap_err();
        assert!(
            message.contains("a.xml.gz: line 1, column 1 (byte of the line): cannot read on"),
            "{message}"
        );
        for wrong in [
            r#"{"medquad":{"questions":"take","x":1}}"#,
            r#"{"conll":{"scheme":"bio"}}"#,
            r#"{"mimic":{}}"#,
            r#""medquad""#,
        ] {
            assert!(serde_json::from_str::<Format>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_not_said_is_refused_or_left_as_published() {
        for (short, whole) in [
            (r#"{"medquad":{}}"#, r#"{"medquad":{"questions":"leave"}}"#),
            (r#"{"pubmed":{}}"#, r#"{"pubmed":{"section_labels":"leave"}}"#),
            (r#"{"pubmedqa":{}}"#, r#"{"pubmedqa":{"long_answers":"leave"}}"#),
            (r#"{"mimic_notes":{}}"#, r#"{"mimic_notes":{"categories":[],"deidentified":"keep"}}"#),
            (r#"{"i2b2_concepts":{}}"#, r#"{"i2b2_concepts":{"misfits":"refuse"}}"#),
            (
                r#"{"jsonl":{"unit":"bytes"}}"#,
                r#"{"jsonl":{"unit":"bytes","overlaps":"refuse","other_keys":"refuse"}}"#,
            ),
        ] {
            assert_eq!(format(short), format(whole), "{short}");
        }
    }
}
