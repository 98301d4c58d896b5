//! Invented stages for the engine's own tests: small, and told from outside what to do.
#![cfg(test)]

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base::cancel::CancelToken;
use serde_json::{Map, Value};

use super::context::Context;
use super::describe::{Describe, config};
use super::error::Error;
use super::fault::Faults;
use super::kept::Bounds;
use super::licence::Licence;
use super::memo::Belief;
use super::observe::{Event, Made, Observe};
use super::origin::Claim;
use super::outcome::Summary;
use super::stage::{Input, Resume, Stage};
use super::{Engine, Settings};

type Work = Box<dyn Fn(&mut Context) -> anyhow::Result<()> + Send + Sync>;

/// A stage that writes `out.txt`: what its inputs say, then the field `say`. Other fields change nothing.
pub(super) struct Fake {
    name: String,
    also: Option<String>,
    version: u32,
    fields: Map<String, Value>,
    inputs: Vec<Input>,
    resume: Resume,
    licence: Licence,
    work: Option<Work>,
}

/// A stage of that name, without fields or inputs.
pub(super) fn stage(name: &str) -> Fake {
    let fields = Map::from_iter([("say".to_owned(), Value::from(name))]);
    Fake {
        name: name.to_owned(),
        also: None,
        version: 1,
        fields,
        inputs: Vec::new(),
        resume: Resume::Never,
        licence: Licence::None,
        work: None,
    }
}

impl Fake {
    pub(super) fn version(mut self, version: u32) -> Self {
        self.version = version;
        self
    }

    pub(super) fn field(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.fields.insert(key.to_owned(), value.into());
        self
    }

    pub(super) fn file(mut self, label: &str, path: &Path) -> Self {
        self.inputs.push(Input::file(label, path));
        self
    }

    pub(super) fn also(mut self, name: &str) -> Self {
        self.also = Some(name.to_owned());
        self
    }

    pub(super) fn reads(mut self, stage: &str) -> Self {
        self.inputs.push(Input::artifact(stage));
        self
    }

    pub(super) fn resumes(mut self) -> Self {
        self.resume = Resume::SameFingerprint;
        self
    }

    pub(super) fn under(mut self, licence: Licence) -> Self {
        self.licence = licence;
        self
    }

    pub(super) fn works(
        mut self,
        work: impl Fn(&mut Context) -> anyhow::Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.work = Some(Box::new(work));
        self
    }
}

impl Stage for Fake {
    fn name(&self) -> &str {
        &self.name
    }

    fn also_called(&self) -> Option<&str> {
        self.also.as_deref()
    }

    fn version(&self) -> u32 {
        self.version
    }

    fn describe(&self, to: &mut dyn Describe) {
        config(to, &self.name, &self.fields);
    }

    fn inputs(&self) -> Vec<Input> {
        self.inputs.clone()
    }

    fn resume(&self) -> Resume {
        self.resume
    }

    fn licence(&self, _: &Path) -> anyhow::Result<Licence> {
        Ok(self.licence)
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        if let Some(work) = &self.work {
            return work(context);
        }
        let mut text = String::new();
        for input in &self.inputs {
            text += &match input {
                Input::File { label, .. } => fs::read_to_string(context.file(label)?)?,
                Input::Artifact(name) => fs::read_to_string(context.artifact(name)?.join("out.txt"))?,
            };
            context.check()?;
            context.progress().add_rows(1);
        }
        text += self.fields["say"].as_str().unwrap_or_default();
        say(context, "out.txt", &text)?;
        context.record("letters", text.len());
        Ok(())
    }
}

/// Writes a file of the artifact.
pub(super) fn say(context: &Context, file: &str, text: &str) -> anyhow::Result<()> {
    Ok(base::whole::write_with_folder(&context.out().join(file), text.as_bytes())?)
}

/// Overwrites a file as an outsider would.
pub(super) fn scribble(path: &Path, text: &str) {
    base::whole::write_with_folder(path, text.as_bytes()).unwrap();
}

/// Settings with two jobs and a clock that ticks once each time it is looked at.
pub(super) fn settings(out: &Path) -> Settings {
    let ticks = AtomicU64::new(0);
    Settings {
        out: out.to_owned(),
        jobs: NonZeroUsize::new(2).unwrap(),
        restart: false,
        cancel: CancelToken::NEVER,
        faults: Faults::none(),
        clock: Arc::new(move || Duration::from_secs(ticks.fetch_add(1, Ordering::Relaxed))),
        version: "0.0.0".to_owned(),
        belief: Belief::Stamps,
        origin: None,
        claim: Claim::Respect,
        keep: Bounds::default(),
        depot: None,
        launch: None,
        elsewhere: None,
    }
}

/// The engine for some stages.
pub(super) fn engine(settings: Settings, stages: impl IntoIterator<Item = Fake>) -> Engine {
    let boxed = stages.into_iter().map(|stage| Box::new(stage) as Box<dyn Stage>);
    Engine::new(boxed.collect(), settings).unwrap()
}

/// Runs all stages; gives the events as words, in the order of the stages.
pub(super) fn run(out: &Path, stages: impl IntoIterator<Item = Fake>) -> Vec<String> {
    let watch = Watch::new();
    engine(settings(out), stages).run(&[], &watch).unwrap();
    watch.events()
}

/// Like [`run`], with its result.
pub(super) fn try_run(settings: Settings, stages: impl IntoIterator<Item = Fake>) -> Result<Summary, Error> {
    engine(settings, stages).run(&[], &Watch::new())
}

/// Keeps the events that say what became of a stage.
pub(super) struct Watch(Mutex<Vec<String>>);

impl Watch {
    pub(super) fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    pub(super) fn events(self) -> Vec<String> {
        let mut events = self.0.into_inner().unwrap();
        events.sort();
        events
    }
}

impl Observe for Watch {
    fn event(&self, event: &Event<'_>) {
        let text = match event {
            Event::Started { .. } | Event::Waits { .. } | Event::Fetching { .. } => return,
            Event::Fresh { stage, notes } => {
                let notes: Vec<_> = notes.iter().map(|note| format!(": {note}")).collect();
                format!("{stage} fresh{}", notes.concat())
            }
            Event::Done { line, result: Made::New, .. } => format!("{} done", line.stage),
            Event::Done { line, result: Made::Same, .. } => format!("{} same", line.stage),
            Event::Restored { line } => format!("{} restored", line.stage),
            Event::Pulled { line } => format!("{} pulled", line.stage),
            Event::Away { line } => format!("{} away", line.stage),
            Event::NotPulled { stage, .. } => format!("{stage} not pulled"),
            Event::Pushed { stage, bytes: Some(_) } => format!("{stage} pushed"),
            Event::Pulling { .. } | Event::Pushing { .. } | Event::Pushed { bytes: None, .. } => return,
            Event::Withheld { stage, why } => format!("{stage} withheld: {why}"),
            Event::Unnoted { stage, error } => format!("{stage} not noted: {error}"),
            Event::Unshared { stage, error } => format!("{stage} not shared: {error}"),
            Event::Failed { stage, error } => format!("{stage} failed: {error}"),
            Event::Skipped { stage, because } => format!("{stage} skipped: {because}"),
            Event::Interrupted { stage } => format!("{stage} interrupted"),
        };
        self.0.lock().unwrap().push(text);
    }
}
