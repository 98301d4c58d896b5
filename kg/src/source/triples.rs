//! Triples of any origin: tables of text or Parquet, with files of names beside them.
//!
//! An id becomes the key `<name of the source>:<id>`, unless it is a CURIE with one of the listed prefixes: then the key is that of
//! other sources (`UMLS:C0000005` is `umls:C0000005`). Relations keep their ids, since `may_treat` is `may_treat` everywhere. White
//! space around an id does not count. A text comes from the files of texts, or from the id, its underscores read as spaces.

mod columns;
mod fit;
pub mod kg_bert;
mod layout;
mod names;
mod options;
mod parquet;
mod row;
mod statements;
mod tables;

use base::funnel::Tally;
use base::read::ReadError;
use base::setting::InvalidSetting;
use serde_json::json;

pub use self::layout::{Columns, Layout, TextColumns, TextLayout};
pub use self::names::{Names, Things};
pub use self::options::{Options, Parquet, Piece, Rows, Table, Texts};
pub use self::parquet::Fields;
pub use self::statements::Statements;
use super::files::{Files, Slot};
use super::funnel::Funnel;
use super::naming::Naming;
pub use super::separated::{Column, FirstLine, Quotes, Separator};
use super::{Source, SourceReport};
use crate::table::{self, Builder};

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stated {
    /// All tables together; `supporting` has the files of names.
    pub funnel: Funnel,
    /// Each table.
    pub tables: Vec<Tally>,
    /// Entities of triples for which no file has a text.
    pub entities_without_text: u64,
    /// Relations of triples for which no file has a text.
    pub relations_without_text: u64,
    /// Whether texts and ids fit each other.
    pub naming: Naming,
    /// What its user should be told, though nothing failed.
    pub warnings: Vec<String>,
}

impl Source for Options {
    fn check(&self, name: &str) -> Result<(), InvalidSetting> {
        self.check_name(name)?;
        self.check_files()?;
        self.check_columns()
    }

    fn slots(&self) -> Vec<Slot<'_>> {
        let folder = match &self.rows {
            Rows::KgBert(location) => {
                Some(Slot { key: "kg_bert".to_owned(), location, members: &kg_bert::MEMBERS })
            }
            Rows::Table(_) | Rows::Parquet(_) => None,
        };
        let pieces = self.pieces().map(|piece| Slot::file(piece.key, &piece.of.path));
        let texts = self.texts().map(|(key, texts)| Slot::file(key, &texts.path));
        folder.into_iter().chain(pieces).chain(texts).collect()
    }

    fn inverses(&self) -> &[[String; 2]] {
        &self.inverses
    }

    fn read(&self, name: &str, files: &Files<'_>, builder: &mut Builder) -> Result<SourceReport, ReadError> {
        let stated = match self.rows {
            Rows::KgBert(_) => kg_bert::read(kg_bert::Files::open(files)?, name, self, builder)?,
            Rows::Table(_) | Rows::Parquet(_) => self.statements(name, files, builder)?,
        };
        let mut report = SourceReport::new(stated.funnel);
        report.naming = Some(stated.naming);
        report.warnings = stated.warnings;
        if let Some(rows) = report.funnel.triples.dropped.get(statements::NEGATIVE) {
            let kept = json!({"rows": rows, "kept_in": table::schema::Table::Negatives.file()});
            report.note("published_negatives", kept);
        }
        report.note("tables", json!(stated.tables));
        report.note("entities_without_text", json!(stated.entities_without_text));
        report.note("relations_without_text", json!(stated.relations_without_text));
        Ok(report)
    }
}

impl Options {
    /// Files of names first, then the tables.
    fn statements(&self, name: &str, files: &Files<'_>, builder: &mut Builder) -> Result<Stated, ReadError> {
        let mut statements = Statements::new(name, self, builder);
        for (key, texts) in self.texts() {
            let of = match key {
                "relation_texts" => Names::Texts(Things::Relations),
                "definitions" => Names::Definitions,
                _ => Names::Texts(Things::Entities),
            };
            statements.names(of, files.open(key)?, texts.layout.as_ref())?;
        }
        for piece in self.pieces() {
            let part = piece.of.part.as_deref();
            match piece.from {
                options::From::Table(layout) => {
                    statements.table(files.open(&piece.key)?, layout, part, builder)?;
                }
                options::From::Parquet(fields) => {
                    statements.parquet(files.seekable(&piece.key)?, fields, part, builder)?;
                }
            }
        }
        Ok(statements.finish(name))
    }
}

/// The beginning of what stands somewhere, for messages.
fn start(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use ::parquet::arrow::ArrowWriter;
    use arrow_array::types::Int32Type;
    use arrow_array::{
        ArrayRef, DictionaryArray, Float32Array, Int64Array, LargeStringArray, RecordBatch, StringArray,
    };
    use bytes::Bytes;

    use super::*;
    use crate::canon::{Canon, Policy};
    use crate::source::Inactive;
    use crate::source::files::Input;
    use crate::source::naming::Allowed;
    use crate::table::{Builder, Graph, read};
    use base::share::Share;

    fn options() -> Options {
        Options { curies: BTreeSet::from(["UMLS".to_owned(), "mesh".to_owned()]), ..Options::default() }
    }

    fn layout(separator: Separator, first_line: FirstLine) -> Layout {
        Layout { separator, first_line, ..Layout::three() }
    }

    fn weighted(separator: Separator) -> Layout {
        let columns = Columns {
            subject: Column::Name("from".to_owned()),
            relation: Column::Position(3),
            object: Column::Name("to".to_owned()),
            weight: Some(Column::Name("p".to_owned())),
            active: None,
        };
        Layout { separator, first_line: FirstLine::Names, columns, ..Layout::three() }
    }

    fn parse(text: &[u8], layout: &Layout, options: &Options) -> Result<(Stated, Graph), String> {
        let mut builder = Builder::new();
        let read = |builder: &mut Builder| -> Result<Stated, ReadError> {
            let mut statements = Statements::new("mine", options, builder);
            statements.table(Input::new(text, "data/t.tsv"), layout, None, builder)?;
            Ok(statements.finish("data"))
        };
        let stated = read(&mut builder).map_err(|e| e.to_string())?;
        Ok((stated, graph(builder)))
    }

    fn graph(builder: Builder) -> Graph {
        crate::canon::merge(builder, &Policy::standard()).unwrap().graph().unwrap()
    }

    fn sentences(graph: &Graph) -> Vec<String> {
        let entity = |id: table::EntityId| graph.entities()[id.index()].key.as_str();
        let sentence = |row: usize| {
            let triple = graph.triples()[row];
            let relation = &graph.relations()[triple.relation.index()].key;
            let weights: Vec<String> =
                graph.origins(row).map(|origin| format!("{:?}", origin.weight)).collect();
            format!("{} {relation} {} {}", entity(triple.subject), entity(triple.object), weights.join(" "))
        };
        (0..graph.triples().len()).map(sentence).collect()
    }

    #[test]
    fn ids_get_the_name_of_the_source_and_curies_do_not() {
        let text = b"UMLS:C0000001\tmay_treat\tMesh:D1\nflu x\tmay_treat\tGO:1\n \tr\tx\n";
        let (stated, graph) =
            parse(&text[..text.len() - 6], &layout(Separator::Tab, FirstLine::Row), &options()).unwrap();
        let expected = ["mine:flu x may_treat mine:GO:1 None", "umls:C0000001 may_treat mesh:D1 None"];
        assert_eq!(sentences(&graph), expected);
        assert_eq!(graph.relations()[0].text, "may treat");
        assert_eq!((stated.entities_without_text, stated.relations_without_text), (4, 1));
        let triples = &stated.funnel.triples;
        assert_eq!((triples.read, triples.kept, triples.lines, triples.file.as_str()), (2, 2, 2, "t.tsv"));
        assert_eq!(stated.funnel.relations["may_treat"], 2);
        assert_eq!((stated.funnel.subjects, stated.funnel.objects), (2, 2));
    }

    #[test]
    fn columns_may_stand_anywhere_and_weights_may_be_missing() {
        let tabs = "\u{feff}p\tfrom\trel\tmore\tto\r\n0.5\ta\tr\t\"\tb\r\n\tb\tr\tx\tc\r\n";
        let expected = ["mine:a r mine:b Some(0.5)", "mine:b r mine:c None"];
        let (_, graph) = parse(tabs.as_bytes(), &weighted(Separator::Tab), &options()).unwrap();
        assert_eq!(sentences(&graph), expected);
        let commas = "\u{feff}p,from,rel,more,to\n0.5,a,r,\"x, \"\"y\"\"\nz\",b\n,\"b\",r,,c";
        let (stated, graph) = parse(commas.as_bytes(), &weighted(Separator::Comma), &options()).unwrap();
        assert_eq!(sentences(&graph), expected);
        assert_eq!((stated.funnel.triples.bytes, stated.funnel.triples.lines), (commas.len() as u64, 4));
    }

    #[test]
    fn texts_definitions_levels_and_inverses_are_stated() {
        let options = Options {
            level: Some(3),
            inverses: vec![["treats".to_owned(), "treated_by".to_owned()]],
            ..options()
        };
        let mut builder = Builder::new();
        let mut statements = Statements::new("mine", &options, &mut builder);
        let file = |text: &'static str| Input::new(text.as_bytes(), "some.txt");
        statements
            .names(
                Names::Texts(Things::Entities),
                file("a\tAspirin\nb\tFlu\nb\t Flu \nx\tunused\ny\t\n"),
                None,
            )
            .unwrap();
        statements.names(Names::Definitions, file("a\tA pill.  Really."), None).unwrap();
        statements.names(Names::Texts(Things::Relations), file("treats\ttreats well"), None).unwrap();
        let layout = layout(Separator::Tab, FirstLine::Row);
        statements
            .table(file("a\ttreats\tb\nb\ttreated_by\ta\nb\ttreats\tc\n"), &layout, None, &mut builder)
            .unwrap();
        let stated = statements.finish("folder");
        assert_eq!((stated.entities_without_text, stated.relations_without_text), (1, 1));
        let texts = &stated.funnel.supporting[0];
        assert_eq!((texts.read, texts.kept, texts.dropped["repeated"]), (5, 2, 1));
        assert_eq!((texts.dropped["no_text"], texts.dropped["in_no_triple"]), (1, 1));
        let folder = tempfile::tempdir().unwrap();
        let canon: Canon = crate::canon::merge(builder, &Policy::standard()).unwrap();
        canon.write(folder.path()).unwrap();
        let mut terms = Vec::new();
        read::terms(folder.path(), |term| {
            terms.push(format!(
                "{} {} {} {:?}",
                term.entity.0,
                term.kind.name(),
                term.text,
                term.origin.level
            ));
            Ok(())
        })
        .unwrap();
        terms.sort();
        let expected = [
            "0 definition A pill. Really. Some(3)",
            "0 preferred Aspirin Some(3)",
            "1 preferred Flu Some(3)",
        ];
        assert_eq!(terms, expected);
        let graph = canon.graph().unwrap();
        assert_eq!((graph.triples().len(), graph.relations().len()), (2, 1), "one relation stays of two");
        assert!(graph.entities().iter().all(|entity| entity.level == Some(3)));
        assert!((0..2).all(|row| graph.origins(row).all(|origin| origin.level == Some(3))));
        assert_eq!(graph.entities()[0].text, "Aspirin");
    }

    /// What a source comes to: `triples` as a table of tabs, `texts` and `relations` as given.
    fn named(
        [triples, texts, relations]: [&str; 3],
        layout: Option<&TextLayout>,
        allowed: Allowed,
    ) -> Result<(Funnel, Vec<String>, Vec<String>), String> {
        let options = allowing(allowed);
        let mut builder = Builder::new();
        let read = |builder: &mut Builder| -> Result<Stated, ReadError> {
            let mut statements = Statements::new("mine", &options, builder);
            statements.names(
                Names::Texts(Things::Entities),
                Input::new(texts.as_bytes(), "data/texts.tsv"),
                layout,
            )?;
            if !relations.is_empty() {
                statements.names(
                    Names::Texts(Things::Relations),
                    Input::new(relations.as_bytes(), "data/rel.tsv"),
                    None,
                )?;
            }
            statements.table(
                Input::new(triples.as_bytes(), "data/t.tsv"),
                &Layout::three(),
                None,
                builder,
            )?;
            Ok(statements.finish("data"))
        };
        let stated = read(&mut builder).map_err(|e| e.to_string())?;
        let canon = crate::canon::merge(builder, &Policy::standard()).unwrap();
        let told = stated.naming.settle(&canon).map_err(|e| e.to_string())?;
        let texts = canon.graph().unwrap().entities().iter().map(|entity| entity.text.clone()).collect();
        Ok((stated.funnel, told, texts))
    }

    fn allowing(allowed: Allowed) -> Options {
        let Allowed { max_untexted, max_unused_texts, max_unfit } = allowed;
        Options { max_untexted, max_unused_texts, max_unfit, ..options() }
    }

    fn share(share: f64) -> Share {
        Share::try_from(share).unwrap()
    }

    #[test]
    fn silent_02_ids_without_text_are_refused_unless_a_share_of_them_is_allowed() {
        let triples = "22298006\tr\t2\n22298006\tr\t3\n";
        // No text fits: what a wrong column, or the file of another release, gives.
        let message =
            named([triples, "H1\tHeart attack\nH2\tPain\n", ""], None, Allowed::default()).unwrap_err();
        for part in [
            "3 of 3 entities have no text",
            "\"22298006\", \"2\", \"3\"",
            "texts.tsv has texts of ids that are in no triple (\"H1\")",
            "max_untexted = 1.0",
        ] {
            assert!(message.contains(part), "{message}\nlacks {part}");
        }
        let one = [triples, "22298006\tHeart attack\n2\tPain\n", ""];
        let message = named(one, None, Allowed::default()).unwrap_err();
        assert!(
            message.contains("1 of 3 entities") && message.contains("max_untexted = 0.3334"),
            "{message}"
        );
        let allowed = Allowed { max_untexted: share(0.3334), ..Allowed::default() };
        let (_, told, texts) = named(one, None, allowed).unwrap();
        assert_eq!(told, ["mine: 1 of 3 entities have no text and are called by their ids (\"3\")"]);
        assert_eq!(texts, ["Pain", "Heart attack", "3"]);
        assert!(named(one, None, Allowed { max_untexted: share(0.33), ..allowed }).is_err());
        let relations = [triples, "22298006\ta\n2\tb\n3\tc\n", "q\tquarrels\n"];
        let message = named(relations, None, Allowed::default()).unwrap_err();
        assert!(message.contains("1 of 1 relations have no text") && message.contains("\"r\""), "{message}");
    }

    #[test]
    fn silent_02_texts_without_an_id_are_refused_unless_a_share_of_them_is_allowed() {
        let files = ["1\tr\t2\n", "1\tone\n4\tfour\n2\ttwo\n5\tfive\n", ""];
        let message = named(files, None, Allowed::default()).unwrap_err();
        assert!(
            message.starts_with("data/texts.tsv: line 2: 2 of 4 texts are of ids that are in no triple"),
            "{message}"
        );
        assert!(message.contains("(\"4\")") && message.contains("mine.max_unused_texts = 0.5"), "{message}");
        let allowed = Allowed { max_unused_texts: share(0.5), ..Allowed::default() };
        let (funnel, told, _) = named(files, None, allowed).unwrap();
        assert_eq!(told, ["mine: 2 of 4 texts of texts.tsv are of ids that are in no triple"]);
        assert_eq!(funnel.supporting[0].dropped["in_no_triple"], 2);
    }

    #[test]
    fn silent_02_a_text_of_another_source_names_an_id() {
        let mut builder = Builder::new();
        let options = options();
        let mut statements = Statements::new("mine", &options, &mut builder);
        statements.names(Names::Texts(Things::Entities), Input::new(&b"a\tA\n"[..], "x"), None).unwrap();
        let table = Input::new(&b"a\tr\tUMLS:C0000001\n"[..], "t");
        statements.table(table, &Layout::three(), None, &mut builder).unwrap();
        let stated = statements.finish("x");
        let entity = builder.entity("umls", "umls:C0000001", "Fever");
        builder.own(entity, "Fever", None);
        let canon = crate::canon::merge(builder, &Policy::standard()).unwrap();
        assert!(stated.naming.settle(&canon).unwrap().is_empty());
        assert_eq!(canon.graph().unwrap().entities()[1].text, "Fever");
    }

    #[test]
    fn ids_that_look_like_codes_are_told_where_no_texts_are_given() {
        let told = |text: &str| {
            let (options, mut builder) = (options(), Builder::new());
            let mut statements = Statements::new("mine", &options, &mut builder);
            let table = Input::new(text.as_bytes(), "t");
            statements.table(table, &Layout::three(), None, &mut builder).unwrap();
            let stated = statements.finish("x");
            let canon = crate::canon::merge(builder, &Policy::standard()).unwrap();
            stated.naming.settle(&canon).unwrap()
        };
        let expected = [
            "mine: 3 of 3 entities are called by ids that look like codes (\"Q38933\", \"Q2\", \"Q3\"): entity_texts would give them names",
            "mine: 1 of 1 relations are called by ids that look like codes (\"P780\"): relation_texts would give them names",
        ];
        assert_eq!(told("Q38933\tP780\tQ2\nQ2\tP780\tQ3\n"), expected);
        // A gene's name is a few letters and a digit.
        assert!(told("aspirin\ttreats\tfever\naspirin\tinhibits\tIL6\n").is_empty());
        let [few] = &told("aspirin\ttreats\tfever\naspirin\tinhibits\tMONDO:7\nfever\tshows\tIL6\n")[..]
        else {
            panic!("one of four");
        };
        assert!(
            few.contains("1 of 4 entities are called by ids that look like codes (\"MONDO:7\")"),
            "{few}"
        );
    }

    fn text_layout(active: Option<Column>, inactive: Option<Inactive>) -> TextLayout {
        let [id, text] = ["conceptId", "term"].map(|name| Column::Name(name.to_owned()));
        let columns = TextColumns { id, text, active };
        TextLayout {
            separator: Separator::Tab,
            quotes: None,
            first_line: FirstLine::Names,
            columns,
            inactive,
        }
    }

    #[test]
    fn silent_02_inactive_rows_are_left_out_and_counted_or_refused() {
        let texts = "id\tactive\tconceptId\tterm\n1\t1\ta\tAsthma\n2\t0\ta\tOld\n3\t1\tb\tBone\n";
        let files = ["a\tr\tb\n", texts, ""];
        let active = || Some(Column::Name("active".to_owned()));
        for layout in [text_layout(active(), None), text_layout(None, Some(Inactive::Drop))] {
            let (funnel, _, names) = named(files, Some(&layout), Allowed::default()).unwrap();
            assert_eq!(names, ["Asthma", "Bone"]);
            let texts = &funnel.supporting[0];
            assert_eq!((texts.read, texts.kept, texts.dropped["inactive"]), (3, 2, 1));
        }
        let message = named(files, Some(&text_layout(None, None)), Allowed::default()).unwrap_err();
        assert!(message.contains("texts.tsv: line 3, column 2 (active): found \"0\""), "{message}");
        assert!(message.contains("inactive = \"drop\"") && message.contains("\"keep\""), "{message}");
        let kept = named(files, Some(&text_layout(None, Some(Inactive::Keep))), Allowed::default());
        assert!(kept.unwrap_err().contains("\"a\" has another text in line 2"));
        let odd = texts.replace("\t0\ta", "\tperhaps\ta");
        let message = named([files[0], &odd, ""], Some(&text_layout(active(), None)), Allowed::default());
        assert!(message.unwrap_err().contains("found \"perhaps\", expected 1 or 0"));
        // Of triples likewise.
        let layout = Layout { first_line: FirstLine::Names, ..Layout::three() };
        let table = b"s\tr\to\tactive\na\tr\tb\t1\nb\tr\tc\t0\n";
        let message = parse(table, &layout, &options()).unwrap_err();
        assert!(message.contains("data/t.tsv: line 3, column 4 (active): found \"0\""), "{message}");
        let dropped = Layout { inactive: Some(Inactive::Drop), ..layout };
        let (stated, graph) = parse(table, &dropped, &options()).unwrap();
        assert_eq!((graph.triples().len(), stated.funnel.triples.dropped["inactive"]), (1, 1));
    }

    #[test]
    fn silent_16_texts_of_more_columns_are_chosen_and_not_guessed() {
        let texts = "a\tuterine cervix\tAnatomy\nb\tbone\tAnatomy\n";
        let message = named(["a\tr\tb\n", texts, ""], None, Allowed::default()).unwrap_err();
        assert!(message.starts_with("data/texts.tsv: line 1: found \"a\\tuterine cervix\\tAnatomy\", expected an id, a tab and a text"), "{message}");
        assert!(message.contains("layout = { separator = \"tab\""), "{message}");
        let [id, text] = [1, 2].map(Column::Position);
        let columns = TextColumns { id, text, active: None };
        let layout = TextLayout { first_line: FirstLine::Row, columns, ..text_layout(None, None) };
        let (_, _, names) = named(["a\tr\tb\n", texts, ""], Some(&layout), Allowed::default()).unwrap();
        assert_eq!(names, ["uterine cervix", "bone"]);
        // A later line with more columns is none of two.
        let message = named(["a\tr\tb\n", "a\tA\nb\tB\tC\n", ""], None, Allowed::default()).unwrap_err();
        assert!(message.starts_with("data/texts.tsv: line 2: found \"b\\tB\\tC\""), "{message}");
    }

    #[test]
    fn silent_16_headers_are_no_rows() {
        for header in ["id\tname\n", "Concept ID\tPreferred-Term\n", "\"code\"\t\"label\"\n"] {
            let texts = format!("{header}a\tA\nb\tB\n");
            let message = named(["a\tr\tb\n", &texts, ""], None, Allowed::default()).unwrap_err();
            assert!(
                message.contains("texts.tsv: line 1: found") && message.contains("first_line = \"names\""),
                "{message}"
            );
        }
        let message =
            named(["Subject\tPredicate\tObject\na\tr\tb\n", "a\tA\nb\tB\n", ""], None, Allowed::default());
        let message = message.unwrap_err();
        assert!(message.contains("t.tsv: line 1: found \"Subject Predicate Object\""), "{message}");
        // In the middle of a table, as where two files were put together.
        let layout = Layout { first_line: FirstLine::Names, ..Layout::three() };
        let table = b"subject\tpredicate\tobject\na\tr\tb\nsubject\tpredicate\tobject\nb\tr\tc\n";
        let (stated, graph) = parse(table, &layout, &options()).unwrap();
        assert_eq!((graph.triples().len(), stated.funnel.triples.dropped["repeated_header"]), (2, 1));
    }

    #[test]
    fn silent_16_quotes_do_not_become_part_of_keys() {
        let tab = layout(Separator::Tab, FirstLine::Row);
        let table = b"\"a\"\t\"r\"\t\"b\"\n";
        let message = parse(table, &tab, &options()).unwrap_err();
        for part in
            ["data/t.tsv: line 1, column 1 (subject): found \"\\\"a\\\"\"", "quotes = \"double\"", "\"none\""]
        {
            assert!(message.contains(part), "{message}\nlacks {part}");
        }
        let quoted = |quotes| Layout { quotes: Some(quotes), ..tab.clone() };
        let (_, graph) = parse(table, &quoted(Quotes::Double), &options()).unwrap();
        assert_eq!(sentences(&graph), ["mine:a r mine:b None"]);
        let (_, graph) = parse(table, &quoted(Quotes::None), &options()).unwrap();
        assert_eq!(sentences(&graph), ["mine:\"a\" \"r\" mine:\"b\" None"]);
        let message = named(["a\tr\tb\n", "\"a\"\t\"A\"\n", ""], None, Allowed::default()).unwrap_err();
        assert!(message.contains("texts.tsv: line 1, column 1 (id): found \"\\\"a\\\"\""), "{message}");
        let message = named(["a\tr\tb\n", "a\t\"A \"\"b\"\"\"\n", ""], None, Allowed::default()).unwrap_err();
        assert!(message.contains("line 1, column 2 (text)"), "{message}");
    }

    #[test]
    fn silent_26_rows_that_do_not_fit_are_left_out_up_to_a_share() {
        let tab = layout(Separator::Tab, FirstLine::Row);
        let table = b"a\tr\tb\nx\tr\n\n\tr\ty\nb\tr\tc\n";
        assert!(parse(table, &tab, &options()).unwrap_err().contains("line 2: 2 columns, expected 3"));
        let allowing = |unfit| Options { max_unfit: share(unfit), ..options() };
        let (stated, graph) = parse(table, &tab, &allowing(0.4)).unwrap();
        assert_eq!(sentences(&graph), ["mine:a r mine:b None", "mine:b r mine:c None"]);
        let triples = &stated.funnel.triples;
        assert_eq!(
            (triples.read, triples.kept, triples.dropped["unfit"], triples.dropped["blank_lines"]),
            (5, 2, 2, 1)
        );
        assert_eq!(
            (stated.funnel.subjects, stated.entities_without_text),
            (2, 3),
            "nothing is left of such a row"
        );
        let message = parse(table, &tab, &allowing(0.3)).unwrap_err();
        assert!(
            message.contains("line 2: 2 columns") && message.contains("2 of 5 rows of the file do not fit"),
            "{message}"
        );
        let null: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("b")]));
        let with = columns().into_iter().filter(|(name, _)| *name != "s").chain([("s", null)]);
        let bytes = parquet(with.collect());
        let (options, mut builder) = (allowing(0.4), Builder::new());
        let mut statements = Statements::new("mine", &options, &mut builder);
        statements.parquet(Input::new(bytes, "t.parquet"), &fields(), None, &mut builder).unwrap();
        let triples = statements.finish("x").funnel.triples;
        assert_eq!((triples.read, triples.kept, triples.dropped["unfit"]), (3, 2, 1));
    }

    #[test]
    fn silent_26_parquet_of_the_usual_packings_is_read() {
        use ::parquet::basic::{Compression, ZstdLevel};
        use ::parquet::file::properties::WriterProperties;
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns().into_iter().map(|(n, c)| (n, c, true)));
        let batch = batch.unwrap();
        let packed = |packing| {
            let properties = WriterProperties::builder().set_compression(packing).build();
            let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
            writer.write(&batch).unwrap();
            writer.into_inner().unwrap().into()
        };
        for packing in [
            Compression::UNCOMPRESSED,
            Compression::SNAPPY,
            Compression::GZIP(::parquet::basic::GzipLevel::default()),
            Compression::LZ4_RAW,
            Compression::ZSTD(ZstdLevel::default()),
        ] {
            let (stated, _) = parse_parquet(packed(packing)).unwrap();
            assert_eq!(stated.funnel.triples.kept, 3, "{packing:?}");
        }
        let error = parse_parquet(packed(Compression::LZ4)).unwrap_err().to_string();
        assert!(error.contains("LZ4_RAW"), "{error}");
    }

    #[test]
    fn bad_tables_are_refused_with_line_column_and_remedy() {
        let tab = layout(Separator::Tab, FirstLine::Row);
        let cases: [(&[u8], &Layout, &str); 6] = [
            (b"a\tr\tb\na\tr\n", &tab, "data/t.tsv: line 2: 2 columns, expected 3"),
            (b"a\tr\n", &tab, "data/t.tsv: line 1: 2 columns, expected 3"),
            (b"a\tr\tb\na\t \tb\n", &tab, "line 2, column 2 (relation): found \"\", expected an id"),
            (
                b"p\tfrom\tr\tto\nx\ta\tr\tb\n",
                &weighted(Separator::Tab),
                "line 2, column 1 (weight): found \"x\", expected a finite number",
            ),
            (
                b"p,from,r,to\n1,\"a\nb\",r,c\n",
                &weighted(Separator::Comma),
                "line 2, column 2 (subject): found \"a\\nb\", expected an id without line break",
            ),
            (
                b"p\tof\tr\tto\n",
                &weighted(Separator::Tab),
                "line 1: found \"p of r to\", expected a column named \"from\"; say in the config which column has the subject (`layout.columns.subject`)",
            ),
        ];
        for (text, layout, expected) in cases {
            let message = parse(text, layout, &options()).unwrap_err();
            assert!(message.contains(expected), "{message}\nlacks {expected}");
        }
        for name in ["", "My", "a b"] {
            let message = options().check(name).unwrap_err().to_string();
            assert!(message.contains("expected small letters"), "{name}");
        }
    }

    #[test]
    fn bad_names_are_refused_with_line_and_remedy() {
        let options = options();
        let mut builder = Builder::new();
        let mut refuse = |list: &[u8], texts: &[u8], expected: &str| {
            let mut statements = Statements::new("mine", &options, &mut builder);
            let mut read = || {
                statements.names(Names::List(Things::Entities), Input::new(list, "entities.txt"), None)?;
                statements.names(Names::Texts(Things::Entities), Input::new(texts, "texts.txt"), None)?;
                let layout = layout(Separator::Tab, FirstLine::Row);
                statements.table(Input::new(&b"a\tr\tb\n"[..], "t.tsv"), &layout, None, &mut builder)
            };
            let message = read().unwrap_err().to_string();
            assert!(message.contains(expected), "{message}\nlacks {expected}");
        };
        refuse(
            b"a\n",
            b"",
            "t.tsv: line 1, column 3 (object): found \"b\", expected an id that is listed in entities.txt",
        );
        refuse(b"a\tx\nb", b"", "entities.txt: line 1, column 1 (id): found \"a\\tx\", expected one id");
        refuse(b"a\nb", b"a\tA\na", "texts.txt: line 2: no tab, expected an id, a tab and a text");
        refuse(b"a\nb", b"a\tA\na\tB", "texts.txt: line 2: \"a\" has another text in line 1");
        refuse(b"a\nb\xff", b"", "entities.txt: line 2: byte 2 of the line is not valid UTF-8");
    }

    fn parquet(columns: Vec<(&str, ArrayRef)>) -> Bytes {
        let batch =
            RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true))).unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
        writer.write(&batch).unwrap();
        writer.into_inner().unwrap().into()
    }

    fn fields() -> Fields {
        let [subject, relation, object] = ["s", "r", "o"].map(str::to_owned);
        Fields { subject, relation, object, weight: Some("w".to_owned()), active: None, inactive: None }
    }

    fn parse_parquet(bytes: Bytes) -> Result<(Stated, Graph), String> {
        parse_fields(bytes, &fields())
    }

    fn parse_fields(bytes: Bytes, fields: &Fields) -> Result<(Stated, Graph), String> {
        let (options, mut builder) = (options(), Builder::new());
        let mut statements = Statements::new("mine", &options, &mut builder);
        let read = statements.parquet(Input::new(bytes, "t.parquet"), fields, None, &mut builder);
        read.map_err(|e| e.to_string())?;
        Ok((statements.finish("x"), graph(builder)))
    }

    fn columns() -> Vec<(&'static str, ArrayRef)> {
        let relations: DictionaryArray<Int32Type> = ["r", "r", "q"].into_iter().collect();
        vec![
            ("more", Arc::new(Int64Array::from(vec![1, 2, 3]))),
            ("o", Arc::new(LargeStringArray::from(vec!["b", "c", "UMLS:C1"]))),
            ("s", Arc::new(StringArray::from(vec!["a", "b", "c"]))),
            ("w", Arc::new(Float32Array::from(vec![Some(0.5), None, Some(2.0)]))),
            ("r", Arc::new(relations)),
        ]
    }

    #[test]
    fn parquet_gives_the_same_triples_whatever_the_kind_of_text() {
        let bytes = parquet(columns());
        let length = bytes.len() as u64;
        let (stated, graph) = parse_parquet(bytes).unwrap();
        let expected = ["mine:a r mine:b Some(0.5)", "mine:b r mine:c None", "mine:c q umls:C1 Some(2.0)"];
        assert_eq!(sentences(&graph), expected);
        let triples = &stated.funnel.triples;
        assert_eq!((triples.read, triples.kept, triples.bytes, triples.lines), (3, 3, length, 0));
    }

    #[test]
    fn silent_02_inactive_rows_of_parquet_are_left_out_or_refused() {
        let flags: [ArrayRef; 2] = [
            Arc::new(arrow_array::BooleanArray::from(vec![true, false, true])),
            Arc::new(Int64Array::from(vec![1, 0, 1])),
        ];
        for flags in flags {
            let bytes = parquet(columns().into_iter().chain([("active", flags)]).collect());
            let message = parse_fields(bytes.clone(), &fields()).unwrap_err();
            assert!(
                message.contains("t.parquet: row 2, column \"active\" (active): found \"0\""),
                "{message}"
            );
            for fields in [
                Fields { active: Some("active".to_owned()), ..fields() },
                Fields { inactive: Some(Inactive::Drop), ..fields() },
            ] {
                let (stated, _) = parse_fields(bytes.clone(), &fields).unwrap();
                let triples = &stated.funnel.triples;
                assert_eq!((triples.read, triples.kept, triples.dropped["inactive"]), (3, 2, 1));
            }
            let (stated, _) =
                parse_fields(bytes, &Fields { inactive: Some(Inactive::Keep), ..fields() }).unwrap();
            assert_eq!(stated.funnel.triples.kept, 3);
        }
        let counts: ArrayRef = Arc::new(Int64Array::from(vec![7, 8, 9]));
        let bytes = parquet(columns().into_iter().chain([("active", counts)]).collect());
        assert_eq!(parse_fields(bytes.clone(), &fields()).unwrap().0.funnel.triples.kept, 3);
        let message =
            parse_fields(bytes, &Fields { active: Some("active".to_owned()), ..fields() }).unwrap_err();
        assert!(message.contains("found \"7\", expected 1 or 0"), "{message}");
    }

    #[test]
    fn bad_parquet_files_are_refused_with_row_column_and_remedy() {
        let with = |name: &'static str, column: ArrayRef| {
            let others = columns().into_iter().filter(move |(other, _)| *other != name);
            parquet(others.chain([(name, column)]).collect())
        };
        let null: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("b")]));
        let nan: ArrayRef = Arc::new(Float32Array::from(vec![0.5, 1.0, f32::NAN]));
        let whole = parquet(columns());
        let without = parquet(columns().into_iter().filter(|(name, _)| *name != "o").collect());
        let cases = [
            (with("s", null), "t.parquet: row 2, column \"s\" (subject): found \"null\", expected an id"),
            (
                with("w", nan),
                "t.parquet: row 3, column \"w\" (weight): found \"NaN\", expected a finite number",
            ),
            (
                with("s", Arc::new(Int64Array::from(vec![1, 2, 3]))),
                "t.parquet, column \"s\" (subject): found Int64, expected text",
            ),
            (
                with("w", Arc::new(Int64Array::from(vec![1, 2, 3]))),
                "column \"w\" (weight): found Int64, expected floating",
            ),
            (without, "column \"o\" (object): found columns more, s, w, r, expected exactly one"),
            (whole.slice(..whole.len() - 9), "t.parquet: cannot decode it"),
            (Bytes::new(), "t.parquet: cannot decode it"),
            (
                with("s", Arc::new(StringArray::from(vec!["a", " ", "b"]))),
                "row 2, column \"s\" (subject): found \"\", expected an id",
            ),
        ];
        for (bytes, expected) in cases {
            let message = parse_parquet(bytes).unwrap_err();
            assert!(message.contains(expected), "{message}\nlacks {expected}");
        }
    }

    #[test]
    fn an_official_split_stays_with_its_triples() {
        let file = |name: &'static str, text: &'static str| Input::new(text.as_bytes(), name);
        let files = |test: &'static str| kg_bert::Files {
            parts: [
                file("train.tsv", "a_b\tisa\tc\nc\tisa\td\n"),
                file("dev.tsv", "a_b\tisa\td\n"),
                file("test.tsv", test),
            ],
            entities: file("entities.txt", "a_b\nc\nd\nunused"),
            relations: file("relations.txt", "isa"),
            entity_texts: file("entity2text.txt", "a_b\ta b\nc\tsea\nunused\tx"),
            definitions: Some(file("entity2textlong.txt", "c\tmuch water")),
            relation_texts: file("relation2text.txt", "isa\tis a"),
        };
        let mut builder = Builder::new();
        let stated = kg_bert::read(files("d\tisa\tc\n"), "umls", &options(), &mut builder).unwrap();
        let rows: Vec<(&str, u64)> =
            stated.tables.iter().map(|tally| (tally.file.as_str(), tally.kept)).collect();
        assert_eq!(rows, [("train.tsv", 2), ("dev.tsv", 1), ("test.tsv", 1)]);
        let all = &stated.funnel.triples;
        assert_eq!((all.file.as_str(), all.read, all.kept, all.lines), ("umls", 4, 4, 4));
        assert_eq!((stated.entities_without_text, stated.relations_without_text), (1, 0));
        let list = &stated.funnel.supporting[0];
        assert_eq!(
            (list.file.as_str(), list.read, list.kept, list.dropped["in_no_triple"]),
            ("entities.txt", 4, 3, 1)
        );
        let graph = graph(builder);
        let parts = |row: usize| graph.origins(row).next().and_then(|origin| origin.vocabulary.as_deref());
        let mut found: Vec<_> = (0..4).map(|row| parts(row).unwrap()).collect();
        found.sort_unstable();
        assert_eq!(found, ["dev", "test", "train", "train"]);
        assert_eq!((graph.entities()[1].text.as_str(), graph.relations()[0].text.as_str()), ("sea", "is a"));
        let error = kg_bert::read(files("d\tisa\tz\n"), "umls", &options(), &mut Builder::new())
            .unwrap_err()
            .to_string();
        assert!(error.contains("test.tsv: line 1, column 3 (object): found \"z\""), "{error}");
    }

    #[test]
    fn a_first_line_that_is_taken_for_names_without_a_word_is_told() {
        let positions = |first_line: &str| -> Layout {
            let columns = serde_json::json!({"subject": 1, "relation": 2, "object": 3});
            let layout = match first_line {
                "" => serde_json::json!({"columns": columns}),
                _ => serde_json::json!({"columns": columns, "first_line": first_line}),
            };
            serde_json::from_value(layout).unwrap()
        };
        let options = Options::default();
        let told = |layout: &Layout| {
            let (stated, graph) = parse(b"a\ttreats\tb\nb\ttreats\tc\n", layout, &options).unwrap();
            (graph.triples().len(), stated.warnings)
        };
        let unsaid = "mine: line 1 of t.tsv is \"a treats b\" and was taken for the names of its columns, though all columns are given by position: first_line = \"row\" reads it as data, first_line = \"names\" ends this warning";
        assert_eq!(told(&positions("")), (1, vec![unsaid.to_owned()]));
        assert_eq!(told(&positions("names")), (1, Vec::new()));
        assert_eq!(told(&positions("row")), (2, Vec::new()));
        // Whoever names a column knows that the line has names.
        let mut named = positions("");
        named.columns.subject = Column::Name("a".to_owned());
        assert_eq!(told(&named), (1, Vec::new()));
        // It is no other setting, and nothing is made anew because of it.
        let described = |layout: &Layout| serde_json::to_value(layout).unwrap();
        assert_eq!(described(&positions("")), described(&positions("names")));
        assert!(serde_json::from_value::<FirstLine>("unsaid".into()).is_err());
    }

    #[test]
    fn a_first_line_of_texts_that_is_taken_for_names_is_told() {
        let layout: TextLayout =
            serde_json::from_value(serde_json::json!({"columns": {"id": 1, "text": 2}})).unwrap();
        let options = Options::default();
        let mut builder = Builder::new();
        let mut statements = Statements::new("mine", &options, &mut builder);
        let texts = Input::new(&b"a\tAspirin\nb\tFever\n"[..], "data/texts.tsv");
        statements.names(Names::Texts(Things::Entities), texts, Some(&layout)).unwrap();
        let warnings = statements.finish("data").warnings;
        let [told] = warnings.as_slice() else { panic!("{warnings:?}") };
        assert!(told.starts_with("mine: line 1 of texts.tsv is \"a Aspirin\" and was taken for"), "{told}");
    }

    #[test]
    fn a_file_without_names_of_columns_is_refused_with_what_reads_it() {
        let options = Options::default();
        let message = parse(b"a\ttreats\tb\n", &Layout::default(), &options).unwrap_err();
        assert!(
            message.ends_with(
                "say in the config which column has the subject (`layout.columns.subject`), or, where that line is data, give columns by position with first_line = \"row\""
            ),
            "{message}"
        );
        let stated = Layout { first_line: FirstLine::Names, ..Layout::default() };
        let message = parse(b"a\ttreats\tb\n", &stated, &options).unwrap_err();
        assert!(
            message.ends_with("say in the config which column has the subject (`layout.columns.subject`)"),
            "{message}"
        );
        for layout in [Layout::default(), Layout { first_line: FirstLine::Names, ..Layout::three() }] {
            let message = parse(b"", &layout, &options).unwrap_err();
            assert_eq!(
                message,
                "data/t.tsv: the file is empty, expected a first line with the names of its columns, subject (`layout.columns.subject`) among them; fetch or write the file again"
            );
        }
    }

    #[test]
    fn prefixes_that_no_id_has_are_told() {
        let curies = ["UMLS", "NOPE", "mesh"].map(str::to_owned);
        let options = Options { curies: curies.into(), ..Options::default() };
        let (stated, _) = parse(b"umls:C1\tr\tMESH:D1\nx\tr\tGO:1\n", &Layout::three(), &options).unwrap();
        assert_eq!(
            stated.warnings,
            ["sources.triples.mine.curies: no id has the prefix \"NOPE\": fix it or leave it out"]
        );
    }

    #[test]
    fn relations_that_read_the_same_and_preferred_namespaces_without_a_key_are_told_of_the_graph() {
        let warned = |namespaces: &[&str]| {
            let (options, mut builder) = (Options::default(), Builder::new());
            let mut statements = Statements::new("mine", &options, &mut builder);
            let table = Input::new(&b"a\tIS A\tb\nb\tis_a\tc\nc\tpart_of\td\n"[..], "t.tsv");
            statements.table(table, &Layout::three(), None, &mut builder).unwrap();
            let namespaces = namespaces.iter().map(|&name| name.to_owned()).collect();
            let policy = Policy { namespaces, ..Policy::standard() };
            let canon = crate::canon::merge(builder, &policy).unwrap();
            crate::source::Config::default().unstated(canon.report(), &BTreeSet::new())
        };
        let alike = "canon: 2 relations read the same as another and are kept apart from it (\"IS A\", \"is_a\"): no setting joins them; where they mean the same, write them in one way in the files";
        assert_eq!(warned(&["umls", "mesh"]), [alike], "the default is nobody's slip");
        let lacking = "canon.namespaces: no key has the namespace \"mine2\": fix it or leave it out";
        assert_eq!(warned(&["mine", "mine2"]), [lacking, alike]);
    }

    #[test]
    fn a_graph_of_self_loops_says_so() {
        let left = |text: &'static [u8]| {
            let (options, mut builder) = (Options::default(), Builder::new());
            let mut statements = Statements::new("mine", &options, &mut builder);
            statements.table(Input::new(text, "t.tsv"), &Layout::three(), None, &mut builder).unwrap();
            crate::canon::merge(builder, &Policy::standard()).unwrap().report().nothing_left()
        };
        assert_eq!(
            left(b"a\tr\ta\nb\tr\tb\n"),
            "merging kept none: all 2 rows have the same subject and object (see which columns they are read from, or say canon.self_loops = \"keep\")"
        );
        assert_eq!(left(b""), "merging kept none");
    }
}
