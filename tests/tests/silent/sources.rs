//! Tables of triples with their texts, as users have them: other ids, more columns, quotes, odd lines, other packings.

use std::fs;
use std::path::Path;

use engraft_tests::{Engraft, Ran, json};

const TRIPLES: &str = "22298006\thas_finding\t29857009\n44054006\thas_finding\t29857009\n";
const TEXTS: &str = "22298006\tHeart attack\n29857009\tChest pain\n44054006\tDiabetes\n";
const PLAIN: &str = "entity_texts = \"texts.tsv\"";

/// Files and a config with one source `mine` of `triples.tsv`, whose other keys are `keys`.
struct Source(tempfile::TempDir);

impl Source {
    fn new(files: &[(&str, &[u8])], keys: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            base::whole::write_whole(&folder.path().join(name), bytes).unwrap();
        }
        let whole = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/kg-bert.toml");
        let text = fs::read_to_string(whole).unwrap();
        let (before, after) = text.split_once("[sources.triples.umls-network]").unwrap();
        let (_, after) = after.split_once("[canon]").unwrap();
        let config = format!("{before}[sources.triples.mine]\n{keys}\n[canon]{after}");
        base::whole::write_whole(&folder.path().join("own.toml"), config.as_ref()).unwrap();
        Self(folder)
    }

    /// With a table of three columns between tabs.
    fn table(triples: &[u8], texts: &[u8], keys: &str) -> Self {
        Self::new(&[("triples.tsv", triples), ("texts.tsv", texts)], &format!("{keys}\n{}", tabs("")))
    }

    fn run(&self) -> Ran {
        let folder = self.0.path();
        Engraft::own(&["run", "triples"], &folder.join("own.toml"), &folder.join("out")).output()
    }

    fn ok(&self) -> String {
        let ran = self.run();
        assert_eq!(ran.code(), Some(0), "{}", ran.text());
        ran.text()
    }

    /// Fails with all of `expected` in its words.
    fn refused(&self, expected: &[&str]) {
        let (ran, out) = (self.run(), self.0.path().join("out/triples"));
        assert_eq!(ran.code(), Some(1), "{}", ran.text());
        for part in expected {
            assert!(ran.text().contains(part), "`{part}` is missing from: {}", ran.text());
        }
        assert!(!out.exists(), "nothing is made of it");
    }

    fn funnel(&self) -> serde_json::Value {
        json(self.0.path().join("out/triples/funnel.json"))["read"][0].clone()
    }

    fn names(&self) -> Vec<String> {
        let graph = kg::table::Graph::read(&self.0.path().join("out/triples")).unwrap();
        graph.entities().iter().map(|entity| entity.text.clone()).collect()
    }
}

fn tabs(more: &str) -> String {
    format!(
        "[sources.triples.mine.table]\nfiles = [{{ path = \"triples.tsv\" }}]\n\
         layout = {{ separator = \"tab\", first_line = \"row\", columns = {{ subject = 1, relation = 2, object = 3 }}{more} }}\n"
    )
}

#[test]
fn silent_02_ids_without_text_are_counted_and_refused() {
    let other = b"A1\tHeart attack\nA2\tChest pain\n";
    Source::table(TRIPLES.as_bytes(), other, PLAIN).refused(&[
        "3 of 3 entities have no text",
        "22298006",
        "max_untexted",
    ]);
    let fewer = TEXTS.replace("44054006\tDiabetes\n", "");
    Source::table(TRIPLES.as_bytes(), fewer.as_bytes(), PLAIN)
        .refused(&["1 of 3 entities have no text", "\"44054006\""]);
    let allowed =
        Source::table(TRIPLES.as_bytes(), fewer.as_bytes(), &format!("{PLAIN}\nmax_untexted = 0.4"));
    let warning =
        "triples: warning: mine: 1 of 3 entities have no text and are called by their ids (\"44054006\")";
    assert!(allowed.ok().contains(warning));
    assert!(allowed.ok().contains(warning), "nothing runs, and it is still so");
    assert_eq!(allowed.names(), ["Heart attack", "Chest pain", "44054006"]);
    // Without any texts, ids are names by the config's own wish.
    Source::table(TRIPLES.as_bytes(), b"", "").ok();
}

#[test]
fn silent_02_texts_without_an_id_are_counted_and_refused() {
    let more = format!("{TEXTS}1\tOne\n2\tTwo\n");
    Source::table(TRIPLES.as_bytes(), more.as_bytes(), PLAIN)
        .refused(&["texts.tsv: line 4: 2 of 5 texts are of ids that are in no triple", "max_unused_texts"]);
    let allowed =
        Source::table(TRIPLES.as_bytes(), more.as_bytes(), &format!("{PLAIN}\nmax_unused_texts = 0.4"));
    assert!(allowed.ok().contains("mine: 2 of 5 texts of texts.tsv are of ids that are in no triple"));
    assert_eq!(allowed.funnel()["supporting"][0]["dropped"]["in_no_triple"], 2);
}

#[test]
fn silent_02_inactive_rows_are_counted() {
    let texts = "id\tactive\tconceptId\tterm\n1\t1\t22298006\tHeart attack\n2\t0\t22298006\tMI\n\
                 3\t1\t29857009\tChest pain\n4\t1\t44054006\tDiabetes\n";
    let laid = |more: &str| {
        format!(
            "entity_texts = {{ path = \"texts.tsv\", layout = {{ separator = \"tab\", first_line = \"names\", \
             columns = {{ id = \"conceptId\", text = \"term\"{more} }} }} }}"
        )
    };
    let silent = Source::table(TRIPLES.as_bytes(), texts.as_bytes(), &laid(""));
    silent.refused(&["texts.tsv: line 3, column 2 (active)", "inactive = \"drop\""]);
    let named = Source::table(TRIPLES.as_bytes(), texts.as_bytes(), &laid(", active = \"active\""));
    assert!(named.ok().contains("mine: 1 of 4 rows of texts.tsv are inactive and left out"));
    assert_eq!(named.names(), ["Heart attack", "Chest pain", "Diabetes"]);
    assert_eq!(named.funnel()["supporting"][0]["dropped"]["inactive"], 1);
}

#[test]
fn silent_02_what_is_left_over_is_said_at_the_end_of_the_run() {
    let triples = TRIPLES.replace('\n', "\t1\n");
    let keys = format!("entity_texts = \"texts.tsv\"\ninverses = [[\"causes\", \"cuases\"]]\n{}", tabs(""));
    let files: [(&str, &[u8]); 2] = [("triples.tsv", triples.as_bytes()), ("texts.tsv", TEXTS.as_bytes())];
    let said = Source::new(&files, &keys).ok();
    for part in
        ["nothing asks for these columns of triples.tsv: column 4", "inverses: no source states \"cuases\""]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    Source::table(b"", b"", "")
        .refused(&["the graph has no triple: mine: none of the 0 rows of triples.tsv is kept"]);
}

#[test]
fn silent_16_the_rest_of_a_line_is_no_text() {
    let texts =
        "22298006\tHeart attack\tDisorder\n29857009\tChest pain\tFinding\n44054006\tDiabetes\tDisorder\n";
    Source::table(TRIPLES.as_bytes(), texts.as_bytes(), PLAIN)
        .refused(&["texts.tsv: line 1", "columns = { id = 1, text = 2 }"]);
    let laid = "entity_texts = { path = \"texts.tsv\", layout = { separator = \"tab\", first_line = \"row\", columns = { id = 1, text = 2 } } }";
    let source = Source::table(TRIPLES.as_bytes(), texts.as_bytes(), laid);
    source.ok();
    assert_eq!(source.names(), ["Heart attack", "Chest pain", "Diabetes"]);
    let headed = format!("id\tname\n{TEXTS}");
    Source::table(TRIPLES.as_bytes(), headed.as_bytes(), PLAIN)
        .refused(&["texts.tsv: line 1", "first_line = \"names\""]);
}

#[test]
fn silent_16_quotes_and_headers_do_not_reach_keys() {
    let quoted = TRIPLES.replace('\t', "\"\t\"").replace('\n', "\"\n\"");
    let quoted = format!("\"{}", quoted.trim_end_matches('"'));
    Source::table(quoted.as_bytes(), b"", "")
        .refused(&["triples.tsv: line 1, column 1 (subject)", "quotes = \"double\""]);
    let files: [(&str, &[u8]); 2] = [("triples.tsv", quoted.as_bytes()), ("texts.tsv", TEXTS.as_bytes())];
    let source = Source::new(&files, &format!("{PLAIN}\n{}", tabs(", quotes = \"double\"")));
    source.ok();
    assert_eq!(source.names(), ["Heart attack", "Chest pain", "Diabetes"]);
    let headed = format!("s\tp\to\n{TRIPLES}s\tp\to\n44054006\thas_finding\t22298006\n");
    let keys = tabs("").replace("\"row\"", "\"names\"");
    let source = Source::new(&[("triples.tsv", headed.as_bytes())], &keys);
    assert!(
        source
            .ok()
            .contains("mine: 1 of 4 rows of triples.tsv repeat the names of the columns and are left out")
    );
    assert_eq!(source.funnel()["triples"]["dropped"]["repeated_header"], 1);
}

#[test]
fn silent_26_tables_of_other_separators_and_with_odd_rows() {
    let semicolons = TRIPLES.replace('\t', ";");
    Source::table(semicolons.as_bytes(), b"", "")
        .refused(&["triples.tsv: line 1: 1 columns, expected 3", "separator = \"semicolon\""]);
    let keys = tabs("").replace("\"tab\"", "\"semicolon\"");
    let source = Source::new(&[("triples.tsv", semicolons.as_bytes())], &keys);
    source.ok();
    assert_eq!(source.funnel()["triples"]["kept"], 2);
    let odd = format!("\n{TRIPLES}\n \n22298006\thas_finding\n");
    Source::table(odd.as_bytes(), b"", "").refused(&["triples.tsv: line 6: 2 columns, expected 3"]);
    let source = Source::table(odd.as_bytes(), b"", "max_unfit = 0.2");
    assert!(source.ok().contains("mine: 1 of 6 rows of triples.tsv do not fit and are left out"));
    let dropped = &source.funnel()["triples"]["dropped"];
    assert_eq!((&dropped["blank_lines"], &dropped["unfit"]), (&3.into(), &1.into()));
}

#[test]
fn silent_17_packed_and_cut_off_line_ends() {
    let zst = zstd_of(TRIPLES.trim_end());
    let padded = [gz_of(TRIPLES), vec![0; 512]].concat();
    for triples in [TRIPLES.trim_end().as_bytes().to_vec(), zst, padded] {
        let source = Source::table(&triples, TEXTS.trim_end().as_bytes(), PLAIN);
        source.ok();
        assert_eq!(source.funnel()["triples"]["kept"], 2);
    }
    Source::table(b"BZh91AY&SY\x01\x02", b"", "").refused(&["triples.tsv", "packed by bzip2", "bunzip2"]);
    let returns = TRIPLES.replace('\n', "\r");
    Source::table(returns.as_bytes(), b"", "").refused(&["triples.tsv: line 1", "a bare CR"]);
}

fn gz_of(text: &str) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

fn zstd_of(text: &str) -> Vec<u8> {
    zstd::encode_all(text.as_bytes(), 3).unwrap()
}
