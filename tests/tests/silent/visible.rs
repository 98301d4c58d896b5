//! Names from data steer no terminal and become no markup, wherever they are shown.

use std::fs;
use std::path::Path;

use engraft_tests::Engraft;

/// An operating-system command, a C1 control sequence, an override of writing direction, a carriage return, a line separator, and markup.
const NAMES: [&str; 10] = [
    "\u{1b}]0;pwned\u{7}",
    "\u{9b}31mred",
    "\u{202e}txt.exe",
    "a\u{8}\u{7f}b",
    "\u{2028}line",
    "<script>alert(1)</script>",
    "[a](javascript:alert(1))",
    "| x | y |",
    "`code`",
    "\"><img src=x onerror=alert(1)>",
];

fn steers(c: char) -> bool {
    (c.is_control() && c != '\n' && c != '\t')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
}

fn clean(what: &str, text: &str) {
    let found: Vec<char> = text.chars().filter(|&c| steers(c)).collect();
    assert!(found.is_empty(), "{what}: {found:?} in {text:?}");
}

fn put(folder: &Path, name: &str, text: &str) {
    base::whole::write_whole(&folder.join(name), text.as_bytes()).unwrap();
}

fn world(folder: &Path, first: &str) {
    let mut triples = first.to_owned();
    for (i, name) in NAMES.iter().enumerate() {
        let other = NAMES[(i + 1) % NAMES.len()];
        triples.push_str(&format!("{name} {i}\t{name}\t{other}\textra\n"));
    }
    put(folder, "t.tsv", &triples);
    let whole = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/kg-bert.toml");
    let text = fs::read_to_string(whole).unwrap();
    let (before, rest) = text.split_once("[sources.triples.umls-network]").unwrap();
    let (_, after) = rest.split_once("[canon]").unwrap();
    let source = "[sources.triples.umls-network.table]\nfiles = [{ path = \"t.tsv\" }]\n\
        layout = { separator = \"tab\", first_line = \"names\", columns = { subject = 1, relation = 2, object = 3 } }\n";
    let official = "parts = { official = { source = \"umls-network\", leaky = \"keep\" } }";
    let after: Vec<&str> = after.lines().filter(|line| !line.starts_with("suspect")).collect();
    let after = after.join("\n").replace(official, "parts = \"all\"");
    put(folder, "config.toml", &format!("{before}{source}[canon]{after}"));
}

fn run(folder: &Path, verb: &[&str]) -> Engraft {
    Engraft::own(verb, &folder.join("config.toml"), &folder.join("out"))
}

#[test]
fn silent_22_names_steer_no_terminal_and_become_no_markup() {
    let folder = tempfile::tempdir().unwrap();
    world(folder.path(), "s\tr\to\t\u{1b}[2Jheader\n");
    let ran = run(folder.path(), &["run", "report", "shards", "audit", "-v"]).output();
    assert_eq!(ran.code(), Some(0), "{}", ran.text());
    clean("run", &ran.text());
    for verb in [
        &["inspect", "triples"][..],
        &["inspect", "triples", "--json"],
        &["inspect", "summary"],
        &["inspect", "shards"],
        &["status"],
        &["plan", "-v"],
        &["why", "shards"],
    ] {
        let ran = run(folder.path(), verb).output();
        assert_eq!(ran.code(), Some(0), "{verb:?}: {}", ran.text());
        clean(&format!("{verb:?}"), &ran.text());
    }
    let told = run(folder.path(), &["inspect", "triples"]).ok();
    assert!(told.contains("\\u001b]0;pwned\\u0007") && told.contains("\\u202etxt.exe"), "{told}");
    assert!(told.contains("\\u001b[2Jheader"), "a header that is told is no exception: {told}");
    let object = run(folder.path(), &["inspect", "triples", "--json"]).ok();
    let value: serde_json::Value = serde_json::from_str(object.trim()).unwrap();
    let named = |row: &serde_json::Value| row["relation"] == NAMES[0];
    assert!(value["facts"]["relations"].as_array().unwrap().iter().any(named), "JSON means the same");

    let card = fs::read_to_string(folder.path().join("out/shards/README.md")).unwrap();
    for markup in ["<script", "[a](", "<img", " | x | y |", "`code`", "\u{1b}", "\u{202e}"] {
        assert!(!card.contains(markup), "{markup:?} in {card}");
    }
    assert!(
        card.contains("&lt;script&gt;alert(1)&lt;/script&gt;") && card.contains("\\[a\\](javascript"),
        "{card}"
    );
    let page = fs::read_to_string(folder.path().join("out/report/index.html")).unwrap();
    clean("the page", &page);
    assert!(!page.contains("<script") && !page.contains("<img"));
    for file in fs::read_dir(folder.path().join("out/report")).unwrap() {
        clean("a plot", &fs::read_to_string(file.unwrap().path()).unwrap());
    }
    let [old, new] = ["old", "out"].map(|name| folder.path().join(name).join("triples"));
    put(folder.path(), "t.tsv", "s\tr\to\tx\na\tb\tc\td\n");
    let config = folder.path().join("config.toml");
    let made = Engraft::plain(&["run", "triples"], &folder.path().join("old")).arg("--config").arg(config);
    made.arg("--data").arg(folder.path()).ok();
    let ran = Engraft::plain(&["diff"], folder.path()).arg(old).arg(new).output();
    assert_eq!(ran.code(), Some(3), "{}", ran.text());
    clean("diff", &ran.text());
    assert!(ran.text().contains("\\u001b]0;pwned"), "{}", ran.text());
}

#[test]
fn silent_22_error_messages_and_file_names_steer_no_terminal() {
    let folder = tempfile::tempdir().unwrap();
    world(folder.path(), "s\tr\to\tx\n");
    put(folder.path(), "t.tsv", "s\tr\to\tx\na\t\u{1b}]0;pwn\u{7}\n");
    let ran = run(folder.path(), &["run", "triples"]).output();
    assert_eq!(ran.code(), Some(1), "{}", ran.text());
    clean("a cut row", &ran.text());
    let missing = "sources.triples.umls-network.table.files=[{ path = \"\\u001b[2J\\u202e.tsv\" }]";
    for verb in [&["run", "triples"][..], &["plan"], &["status"], &["plan", "--json"]] {
        let ran = run(folder.path(), verb).set(missing).output();
        let told = ran.text().contains("\\u001b[2J\\u202e.tsv");
        assert!(told || verb[0] == "status", "{verb:?}: {}", ran.text());
        clean(&format!("{verb:?}"), &ran.text());
    }
    for wrong in ["\u{1b}[2J", "--\u{9b}31m"] {
        let ran = Engraft::plain(&["run", wrong], folder.path()).output();
        assert_eq!(ran.code(), Some(2), "{}", ran.text());
        clean("a wrong argument", &ran.text());
    }
    let catalog = "version = 1\n[[dataset]]\nname = \"x\"\nabout = \"\\u001b[2J\\u202e\"\naccess = \"open\"\nlicence = \"\\u009b31m\"\npage = \"https://p\"\n\
        [[dataset.file]]\npath = \"x.tsv\"\nurl = \"https://p/x.tsv\"\nbytes = 1\n";
    put(folder.path(), "catalog.toml", catalog);
    let fetch = Engraft::plain(&["fetch"], folder.path()).arg("--catalog");
    let ran = fetch.arg(folder.path().join("catalog.toml")).output();
    clean("fetch", &ran.text());
    assert!(ran.text().contains("\\u001b[2J"), "{}", ran.text());
}
