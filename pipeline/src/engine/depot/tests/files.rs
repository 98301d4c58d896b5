//! Files in stores: known by what the depot notes of them, brought where a stage reads them.

use std::path::PathBuf;

use super::*;
use crate::engine::elsewhere::{Elsewhere, Told, Whereabouts};

/// A file in a store, whose place on this machine is `path`.
struct Away {
    path: PathBuf,
    text: &'static str,
    said: Mutex<Option<Digest>>,
    brought: AtomicBool,
}

impl Elsewhere for Away {
    fn find(&self, path: &Path) -> Option<Whereabouts> {
        let here = || Whereabouts::Here(self.path.clone());
        (path == self.path).then(|| self.said.lock().unwrap().map_or_else(here, Whereabouts::Said))
    }

    fn bring(&self, paths: &[PathBuf], begin: &dyn Fn(&str)) -> anyhow::Result<()> {
        if paths.contains(&self.path) && self.said.lock().unwrap().take().is_some() {
            begin("store://f");
            scribble(&self.path, self.text);
            self.brought.store(true, Ordering::SeqCst);
        }
        Ok(())
    }

    fn news(&self, path: &Path) -> Option<Told> {
        let is_here = path == self.path && self.path.exists();
        is_here.then(|| Told { state: "state".to_owned(), contents: Digest::of(self.text.as_bytes()) })
    }

    fn identity(&self, path: &Path) -> Option<String> {
        (path == self.path).then(|| "store://f".to_owned())
    }
}

/// A machine that is told what the depot notes of the file.
struct Machine {
    out: PathBuf,
    away: Arc<Away>,
    settings: Settings,
}

impl Machine {
    fn new(out: &Path, memory: &Arc<Memory>) -> Self {
        let settings = with(out, memory, Access::Write);
        let said = settings.depot.as_ref().unwrap().contents("state").unwrap();
        let path = out.with_extension("cache").join("f");
        let away =
            Arc::new(Away { path, text: "text", said: Mutex::new(said), brought: AtomicBool::new(false) });
        if said.is_none() {
            scribble(&away.path, away.text);
        }
        let elsewhere: Arc<dyn Elsewhere> = away.clone();
        Self { out: out.to_owned(), away, settings: Settings { elsewhere: Some(elsewhere), ..settings } }
    }

    /// What happens to stages of which the first reads the file, and whether the file came.
    fn run(self, say: &str) -> (Vec<String>, bool) {
        let stages = [stage("a").file("F", &self.away.path), stage("b").reads("a").field("say", say)];
        let watch = Watch::new();
        engine(self.settings, stages).run(&names(&["b"]), &watch).unwrap();
        assert_eq!(fs::read_to_string(self.out.join("b/out.txt")).unwrap(), format!("texta{say}"));
        (watch.events(), self.away.brought.load(Ordering::SeqCst))
    }
}

#[test]
fn a_file_that_the_depot_knows_comes_where_a_stage_reads_it_and_not_before() {
    let (dir, memory) = (tempdir().unwrap(), Arc::new(Memory::default()));
    let machine = |name: &str| Machine::new(&dir.path().join(name), &memory);
    let first = ["a done", "a pushed", "b done", "b pushed"];
    assert_eq!(machine("1").run("b"), (first.map(str::to_owned).to_vec(), false));
    assert_eq!(memory.keys("files/"), ["files/state.json"]);
    // What was made of it is found without it, and so is what is made of that.
    let away = ["a away", "b pulled"].map(str::to_owned).to_vec();
    assert_eq!(machine("2").run("b"), (away, false));
    let other = ["a away", "a pulled", "b done", "b pushed"].map(str::to_owned).to_vec();
    assert_eq!(machine("3").run("c"), (other, false));
    // Where it is read, it comes.
    memory.objects.lock().unwrap().retain(|key, _| !key.starts_with("lines/a/"));
    let made = ["a done", "a pushed", "b pulled"].map(str::to_owned).to_vec();
    assert_eq!(machine("4").run("b"), (made, true));
    // A note that is damaged is none, and whoever reads the file mends it.
    let contents = || with(dir.path(), &memory, Access::Read).depot.unwrap().contents("state").unwrap();
    memory.damage("files/", |bytes| bytes[15] = if bytes[15] == b'a' { b'b' } else { b'a' });
    assert_eq!(contents(), None);
    machine("5").run("d");
    assert_eq!(contents(), Some(Digest::of(b"text")));
    // One that says something else is told.
    let depot = with(dir.path(), &memory, Access::Write).depot.unwrap();
    let other = Told { state: "state".to_owned(), contents: Digest::of(b"other") };
    let error = depot.note(&other).unwrap_err().to_string();
    assert!(error.contains("files/state.json says that a file in a store is"), "{error}");
}

#[test]
fn pushing_notes_files_as_running_does() {
    let (dir, memory) = (tempdir().unwrap(), Arc::new(Memory::default()));
    let out = dir.path().join("1");
    let machine = || Machine::new(&out, &memory);
    let alone =
        |machine: Machine| Machine { settings: Settings { depot: None, ..machine.settings }, ..machine };
    alone(machine()).run("b");
    assert!(memory.keys("files/").is_empty());
    let Machine { away, settings, .. } = machine();
    let stages = [stage("a").file("F", &away.path), stage("b").reads("a").field("say", "b")];
    engine(settings, stages).push(&[], &Watch::new()).unwrap();
    assert_eq!(memory.keys("files/"), ["files/state.json"]);
}

#[test]
fn notes_go_when_no_line_is_of_the_file() {
    let (dir, memory) = (tempdir().unwrap(), Arc::new(Memory::default()));
    Machine::new(&dir.path().join("1"), &memory).run("b");
    let depot = Depot::new(memory.clone(), Access::Write);
    // Objects of the memory are of second 5.
    let all = |until: i64| depot.going(&[], Scope::All, until).unwrap();
    assert!(all(6).blobs.iter().any(|(key, _)| key == "files/state.json"));
    assert!(!all(5).blobs.iter().any(|(key, _)| key == "files/state.json"));
    let kept = depot.going(&[], Scope::Excess(Bounds::default()), 6).unwrap();
    assert!(kept.lines.is_empty() && kept.blobs.is_empty(), "{kept:?}");
}
