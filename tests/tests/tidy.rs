//! The rules of the house that no compiler checks: headers, lengths, imports that point down, nothing committed that must not be.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::Visit;

/// Lines before the tests, at most.
const LINES: usize = 400;

/// Crates and what each must not name. The order is the order of the rooms: pipeline -> downstream -> tasks -> text -> kg -> base, tasks -> store, and model beside
/// tasks, which share batch.
const UPWARD: [(&str, &[&str]); 13] = [
    (
        "base",
        &[
            "batch",
            "kg",
            "store",
            "tasks",
            "text",
            "model",
            "engraft",
            "arrow_array",
            "parquet",
            "candle_core",
        ],
    ),
    (
        "tasks/batch/src",
        &["kg", "store", "tasks", "text", "model", "engraft", "arrow_array", "parquet", "candle_core"],
    ),
    ("store", &["batch", "kg", "tasks", "text", "model", "engraft", "parquet", "arrow_array"]),
    ("kg", &["batch", "store", "tasks", "text", "model", "engraft", "candle_core", "tokenizers"]),
    ("tasks/text/src", &["batch", "store", "tasks", "model", "engraft", "candle_core"]),
    ("tasks/src", &["downstream", "model", "engraft", "candle_core"]),
    ("tasks/downstream", &["store", "model", "engraft", "candle_core"]),
    ("model/src", &["kg", "store", "tasks", "text", "engraft", "arrow_array", "parquet"]),
    ("python/src", &["downstream", "model", "engraft", "report", "world", "candle_core", "parquet"]),
    ("pipeline/world", &["batch", "kg", "store", "tasks", "model", "engraft", "report"]),
    ("pipeline/query", &["batch", "kg", "store", "tasks", "text", "model", "engraft", "report", "world"]),
    ("pipeline/report", &["batch", "store", "tasks", "text", "model", "engraft", "world"]),
    (
        "pipeline/src/engine",
        &[
            "batch",
            "kg",
            "store",
            "tasks",
            "text",
            "model",
            "crate::config",
            "crate::stage",
            "report",
            "world",
            "crate::cli",
        ],
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn sources() -> BTreeMap<String, String> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && name != "target" && name != "out" && !name.starts_with('.') {
                walk(&path, found);
            } else if path.extension().is_some_and(|e| e == "rs") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root(), &mut found);
    let relative = |path: &PathBuf| path.strip_prefix(root()).unwrap().display().to_string();
    let sources: BTreeMap<_, _> =
        found.iter().map(|p| (relative(p), fs::read_to_string(p).unwrap())).collect();
    assert!(sources.len() > 30, "the walk found only {} files", sources.len());
    sources
}

/// The part of a file before its tests.
fn before_tests(text: &str) -> &str {
    if text.contains("#![cfg(test)]") {
        return "";
    }
    text.split("#[cfg(test)]").next().unwrap_or(text)
}

fn report(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn every_file_says_what_it_is_and_stays_small() {
    let mut complaints = Vec::new();
    for (path, text) in sources() {
        if !text.starts_with("//! ") {
            complaints.push(format!("{path}: the first line does not say what the file is (`//! ...`)"));
        }
        let lines = before_tests(&text).lines().count();
        if lines > LINES && !path.starts_with("tests/tests/") {
            complaints
                .push(format!("{path}: {lines} lines before its tests; split it ({LINES} is the ceiling)"));
        }
        if path.ends_with("/mod.rs") {
            complaints.push(format!("{path}: name the module file after the module, beside its folder"));
        }
    }
    report(&complaints);
}

/// The functions of a file, but for those of its tests, that take a tuple apart among their arguments.
#[derive(Default)]
struct TakeTuplesApart(Vec<String>);

impl<'ast> Visit<'ast> for TakeTuplesApart {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        let is_test = |of: &syn::Attribute| {
            of.path().is_ident("cfg") && of.parse_args::<syn::Path>().is_ok_and(|of| of.is_ident("test"))
        };
        if !module.attrs.iter().any(is_test) {
            syn::visit::visit_item_mod(self, module);
        }
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        let is_tuple = |input: &syn::FnArg| matches!(input, syn::FnArg::Typed(of) if matches!(*of.pat, syn::Pat::Tuple(_)));
        if signature.inputs.iter().any(is_tuple) {
            self.0.push(signature.ident.to_string());
        }
    }
}

#[test]
fn no_function_takes_a_tuple_apart_among_its_arguments() {
    let (mut complaints, mut files) = (Vec::new(), 0);
    let aside = ["tests/", "benches/", "examples/", "tests.rs"];
    for (path, text) in sources() {
        if text.contains("#![cfg(test)]") || aside.iter().any(|aside| path.contains(aside)) {
            continue;
        }
        files += 1;
        let mut found = TakeTuplesApart::default();
        found.visit_file(&syn::parse_file(&text).unwrap());
        complaints.extend(found.0.iter().map(|name| {
            format!("{path}: `{name}`: give each argument a name, or what belongs together a type")
        }));
    }
    assert!(files > 500, "only {files} files were looked at");
    report(&complaints);
}

#[test]
fn imports_point_down() {
    let mut complaints = Vec::new();
    for (path, text) in sources() {
        for (room, banned) in UPWARD {
            let inside = path.strip_prefix(room).is_some_and(|rest| rest.starts_with('/') || rest == ".rs");
            for name in banned.iter().filter(|_| inside) {
                let names = |line: &str| {
                    let code = line.split("//").next().unwrap_or(line);
                    code.match_indices(&format!("{name}::")).any(|(at, _)| {
                        !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == ':')
                    })
                };
                if let Some(number) = text.lines().position(names) {
                    complaints.push(format!("{path}:{}: {room} must not name {name}", number + 1));
                }
            }
        }
    }
    report(&complaints);
}

#[test]
fn nothing_unfinished_and_no_bans_worked_around() {
    // Spelt in two halves so that this file does not find itself.
    let banned: Vec<String> = [
        ("todo", "!("),
        ("unimplemented", "!("),
        ("dbg", "!("),
        ("#[ig", "nore"),
        ("FIX", "ME"),
        ("XX", "X"),
    ]
    .map(|(a, b)| format!("{a}{b}"))
    .into();
    let mut complaints = Vec::new();
    for (path, text) in sources() {
        for (number, line) in text.lines().enumerate() {
            for word in banned.iter().filter(|word| line.contains(word.as_str())) {
                complaints.push(format!("{path}:{}: `{word}`: finish it or leave it out", number + 1));
            }
        }
        let code = before_tests(&text);
        for (number, line) in code.lines().enumerate() {
            let allows = line.contains("allow(clippy::") && !line.trim_start().starts_with("//");
            if allows
                && !line.contains("reason")
                && !code.lines().nth(number + 1).is_some_and(|l| l.contains("reason"))
            {
                complaints.push(format!("{path}:{}: an allowed lint needs its reason", number + 1));
            }
        }
    }
    report(&complaints);
}

/// Crates whose numbers are in tables, counts, maps, shards and pages, and are the same on every machine.
const EXACT: [&str; 6] =
    ["base/src/", "kg/src/", "tasks/", "python/src/", "pipeline/report/", "pipeline/world/"];

#[test]
fn no_artifact_has_a_number_of_the_systems_mathematics() {
    let calls = [
        "ln", "ln_1p", "log", "log2", "log10", "exp", "exp2", "exp_m1", "powf", "sin", "cos", "tan", "tanh",
        "cbrt", "hypot",
    ];
    let spellings = |name: &str| [format!(".{name}("), format!("f64::{name}("), format!("f32::{name}(")];
    let calls: Vec<String> = calls.into_iter().flat_map(spellings).collect();
    let mut complaints = Vec::new();
    let of_artifacts = |path: &str| EXACT.iter().any(|crates| path.starts_with(crates));
    for (path, text) in sources().into_iter().filter(|(path, _)| of_artifacts(path)) {
        for (number, line) in before_tests(&text).lines().enumerate() {
            for call in calls.iter().filter(|call| line.contains(call.as_str())) {
                complaints.push(format!(
                    "{path}:{}: `{call}` is the C library's, whose last digits differ from version to version: take that of base::exact",
                    number + 1
                ));
            }
        }
    }
    report(&complaints);
}

#[test]
fn every_on_disk_format_has_its_table_in_the_docs() {
    let formats = fs::read_to_string(root().join("docs/formats.md")).unwrap();
    for task in batch::task::Task::ALL {
        for field in tasks::shard::schema::columns(task, tasks::builder::Form::Slotted).fields() {
            let name = field.name();
            assert!(
                formats.contains(&format!("| `{name}` |")),
                "docs/formats.md lacks the shard column `{name}`"
            );
        }
    }
    let version = tasks::shard::schema::VERSION;
    assert!(
        formats.contains(&format!("`engraft-shards`, version {version}")),
        "docs/formats.md has another version"
    );
}

#[test]
fn what_a_promise_names_as_its_test_is_there() {
    let promises = fs::read_to_string(root().join("docs/promises.md")).unwrap();
    let named = promises.split('`').skip(1).step_by(2);
    let paths: Vec<&str> =
        named.filter(|name| name.contains('/') && !name.contains([' ', '{', '<'])).collect();
    let complaints: Vec<String> = paths
        .iter()
        .filter(|path| !root().join(path).exists())
        .map(|path| format!("docs/promises.md names {path}, which is not there"))
        .collect();
    assert!(paths.len() > 150);
    report(&complaints);
}

#[test]
fn a_launcher_is_read_at_a_glance() {
    let mut seen = 0;
    for file in fs::read_dir(root().join("launchers")).unwrap() {
        let file = file.unwrap().path();
        let lines = fs::read_to_string(&file).unwrap().lines().count();
        assert!(lines <= 40, "{}: {lines} lines, expected at most 40", file.display());
        seen += 1;
    }
    assert_eq!(seen, 5);
}

#[test]
fn the_wheel_is_small_in_what_it_depends_on() {
    let asked = ["tree", "--locked", "--offline", "-p", "engraft-py", "-e", "normal", "--prefix", "none"];
    let tree = std::process::Command::new("cargo").args(asked).current_dir(root()).output().unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let crates = String::from_utf8(tree.stdout).unwrap();
    assert!(crates.contains("engraft-tasks"), "{crates}");
    let unwanted = crates.lines().find(|line| line.starts_with("polars") || line.starts_with("candle"));
    assert_eq!(unwanted, None, "the wheel depends on it, which scripts/wheel.sh refuses");
}

#[test]
fn no_large_file_and_no_data_is_in_the_repository() {
    let listed = std::process::Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output();
    let Ok(listed) = listed else {
        engraft_tests::skipped("git is not installed");
        return;
    };
    let mut complaints = Vec::new();
    for path in String::from_utf8(listed.stdout).unwrap().split('\0').filter(|p| !p.is_empty()) {
        let bytes = fs::metadata(root().join(path)).map_or(0, |m| m.len());
        if bytes > 2 << 20 {
            complaints.push(format!("{path}: {bytes} bytes; large files do not belong into the repository"));
        }
        let data = [".RRF", ".parquet", ".tsv", ".csv", ".xml"];
        if data.iter().any(|end| path.ends_with(end)) {
            complaints.push(format!(
                "{path}: data does not belong into the repository; the world makes what tests need"
            ));
        }
    }
    report(&complaints);
}
