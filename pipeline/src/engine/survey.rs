//! What would run and why, without running it: the views behind `plan`, `status` and `why`. Writes nothing, takes no lock.

use std::collections::BTreeMap;

use serde::Serialize;

use super::depot::Depot;
use super::digest::Digest;
use super::error::Error;
use super::explain::{Cause, Note, Reason, trace};
use super::failure;
use super::judge::{Judgement, judge};
use super::kept::{Store, candidate};
use super::ledger::{Ledger, Line};
use super::memo::{Belief, Memo};
use super::stage::{Artifacts, Input, Stage};
use super::{Engine, Settings};

/// Whether a stage would run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// It is up to date.
    Fresh,
    /// It would not run but get back what an earlier run made with just these settings and inputs.
    Restore,
    /// It would not run: the depot has what it would make.
    Depot,
    /// It would run.
    Stale,
    /// It would run if an input that is made first comes out changed.
    Pending,
    /// It could not run: an input is missing.
    Blocked,
}

/// What was found out about one stage.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub stage: String,
    /// Whether it would run.
    pub state: State,
    /// Why it would run.
    pub reasons: Vec<Reason>,
    /// What is worth saying if it would not.
    pub notes: Vec<Note>,
    /// What is missing, if it is blocked.
    pub error: Option<String>,
    /// Its last finished run.
    pub last: Option<Line>,
    /// The run whose artifact it would get back.
    pub restores: Option<Line>,
    /// The run of another machine, of which the depot has what it would make.
    pub shared: Option<Line>,
    /// What it reads of other stages, by their names.
    pub reads: Vec<String>,
    /// The outside files that it reads, by their labels.
    pub files: Vec<String>,
    /// What its artifact would be found by; nothing where an input is still to be made or missing.
    pub fingerprint: Option<Digest>,
    /// The model that it goes on from, if it is a training.
    pub begins_with: Option<String>,
    /// The device that a model is computed on, if one is.
    pub computes_on: Option<String>,
}

/// Why one stage will run or has run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Why {
    pub stage: String,
    /// Whether it would run.
    pub state: State,
    /// Why it would run, down to the root causes.
    pub causes: Vec<Cause>,
    /// What is worth saying if it would not.
    pub notes: Vec<Note>,
    /// What is missing, if it is blocked.
    pub error: Option<String>,
    /// Why it last ran or was restored, down to the root causes; nothing if it never ran.
    pub last: Vec<Cause>,
    /// Whether its artifact was then restored, not made.
    pub restored: bool,
}

impl Engine {
    /// Looks at the named stages and everything they need; at all stages if none is named.
    ///
    /// # Errors
    /// When the ledger cannot be read, there is no such stage, or the depot cannot be asked.
    pub(crate) fn survey(&self, goals: &[String]) -> Result<Vec<Finding>, Error> {
        self.survey_with(goals, &Ledger::read(&self.layout.ledger())?, self.settings.depot.as_ref())
    }

    /// The same without a look into the depot.
    ///
    /// # Errors
    /// When the ledger cannot be read, or there is no such stage.
    pub(crate) fn survey_here(&self, goals: &[String]) -> Result<Vec<Finding>, Error> {
        self.survey_with(goals, &Ledger::read(&self.layout.ledger())?, None)
    }

    /// Explains one stage.
    ///
    /// # Errors
    /// When the ledger cannot be read, or there is no such stage.
    pub(crate) fn why(&self, stage: &str) -> Result<Why, Error> {
        let ledger = Ledger::read(&self.layout.ledger())?;
        let findings = self.survey_with(&[stage.to_owned()], &ledger, self.settings.depot.as_ref())?;
        let find = |name: &str| findings.iter().find(|finding| finding.stage == name);
        let pending = |name: &str| find(name).map_or_else(Vec::new, |finding| finding.reasons.clone());
        let lines = ledger.lines();
        let last = lines.iter().rposition(|line| line.stage == stage);
        let restored = last.is_some_and(|at| lines[at].restored_ms.is_some());
        let last = last.map_or_else(Vec::new, |at| trace(&ledger, at, &lines[at].reasons, &pending));
        // The stage asked for is itself among the findings, since the graph knows it.
        let (state, reasons, notes, error) = find(stage)
            .map_or((State::Fresh, vec![], vec![], None), |finding| {
                (finding.state, finding.reasons.clone(), finding.notes.clone(), finding.error.clone())
            });
        let causes = trace(&ledger, lines.len(), &reasons, &pending);
        Ok(Why { stage: stage.to_owned(), state, causes, notes, error, last, restored })
    }

    fn survey_with(
        &self,
        goals: &[String],
        ledger: &Ledger,
        depot: Option<&Depot>,
    ) -> Result<Vec<Finding>, Error> {
        if let Some(depot) = depot {
            depot.look().map_err(|error| Error::new(failure::text(&error)))?;
        }
        let memo = Memo::load(&self.layout.memo());
        let bench = self.bench(&memo);
        let mut findings: BTreeMap<usize, Finding> = BTreeMap::new();
        for place in self.graph.needed(goals)? {
            let stage = self.graph.stage(place);
            let last = ledger.last(stage.name());
            let artifact = |up: &usize| {
                let digest = findings.get(up).and_then(Finding::artifact);
                (self.graph.stage(*up).name().to_owned(), digest)
            };
            let artifacts = self.graph.upstream(place).iter().map(artifact).collect();
            let mut judgement = judge(stage, last, &artifacts, &bench).map_err(|error| error.to_string());
            let restores = judgement.as_mut().ok().and_then(|judged| self.restorable(stage, judged, ledger));
            let shared = match (&judgement, depot) {
                (Ok(judged), Some(depot)) if restores.is_none() => {
                    depot.made(stage.name(), judged).map_err(|error| Error::new(failure::text(&error)))?
                }
                _ => None,
            };
            if restores.is_none()
                && shared.is_none()
                && judgement.as_ref().is_ok_and(|judged| !judged.reasons.is_empty())
            {
                let there = |name: &str| {
                    let fresh = |finding: &Finding| finding.stage == name && finding.state == State::Fresh;
                    findings.values().any(fresh).then(|| self.layout.artifact(name))
                };
                if let Err(error) = stage.foresee(&Artifacts(&there)) {
                    judgement = Err(format!("{error:#}"));
                }
            }
            let found = Finding { restores, shared, ..Finding::new(stage, last, judgement) };
            findings.insert(place, found.settled());
        }
        Ok(findings.into_values().collect())
    }

    /// The run whose artifact the stage would get back. One that is damaged is a reason to run; to find that, files are read only where stamps are not
    /// believed.
    fn restorable(&self, stage: &dyn Stage, judged: &mut Judgement, ledger: &Ledger) -> Option<Line> {
        let found = candidate(stage.name(), judged, ledger, &self.layout)?;
        let Settings { jobs, cancel, belief, .. } = &self.settings;
        let damaged = match belief {
            Belief::Stamps => found.misfit(),
            Belief::Reading => found.check(*jobs, cancel).err(),
        };
        let Some(file) = damaged else { return Some(found.line.clone()) };
        judged.reasons.insert(0, found.damage(&file, &self.layout));
        None
    }

    /// What is kept of the artifacts that later ones have replaced.
    ///
    /// # Errors
    /// When the ledger cannot be read, or the file system refuses.
    pub(crate) fn kept(&self) -> Result<Store, Error> {
        Store::list(&self.layout, &Ledger::read(&self.layout.ledger())?)
    }
}

impl Finding {
    fn new(stage: &dyn Stage, last: Option<&Line>, judgement: Result<Judgement, String>) -> Self {
        let state = match &judgement {
            Err(_) => State::Blocked,
            Ok(judged) if judged.reasons.is_empty() => State::Fresh,
            Ok(judged) if judged.only_pending() => State::Pending,
            Ok(_) => State::Stale,
        };
        let reads = stage.inputs().into_iter().filter_map(|input| match input {
            Input::Artifact(name) => Some(name),
            Input::File { .. } => None,
        });
        let (mut files, mut fingerprint) = (Vec::new(), None);
        if let Ok(judged) = &judgement {
            files.extend(judged.description.files.keys().cloned());
            fingerprint = (!judged.is_open).then(|| judged.description.fingerprint(stage.name()));
        }
        let reads = reads.collect();
        let (reasons, notes, error) = match judgement {
            Ok(judged) => (judged.reasons, judged.notes, None),
            Err(error) => (Vec::new(), Vec::new(), Some(error)),
        };
        let (begins_with, computes_on) = (stage.begins_with(), stage.computes_on());
        let (stage, last) = (stage.name().to_owned(), last.cloned());
        let (restores, shared) = (None, None);
        Self {
            stage,
            state,
            reasons,
            notes,
            error,
            last,
            restores,
            shared,
            reads,
            files,
            fingerprint,
            begins_with,
            computes_on,
        }
    }

    /// As far as is known: a stage whose artifact is kept would not run.
    fn settled(self) -> Self {
        let state = match (&self.restores, &self.shared) {
            (Some(_), _) => State::Restore,
            (None, Some(_)) => State::Depot,
            (None, None) => self.state,
        };
        Self { state, ..self }
    }

    /// The run that says best what the stage costs: the one whose artifact it would get, or its last one here.
    pub(crate) fn cost(&self) -> Option<&Line> {
        self.restores.as_ref().or(self.shared.as_ref()).or(self.last.as_ref())
    }

    /// The digest of the artifact with which other stages would run, if it is known.
    fn artifact(&self) -> Option<Digest> {
        let line = match self.state {
            State::Fresh => self.last.as_ref(),
            State::Restore => self.restores.as_ref(),
            State::Depot => self.shared.as_ref(),
            State::Stale | State::Pending | State::Blocked => None,
        };
        line.map(|line| line.artifact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::{Fake, engine, run, scribble, settings, stage};
    use serde_json::json;
    use std::path::Path;
    use tempfile::tempdir;

    fn why(out: &Path, stages: impl IntoIterator<Item = Fake>, name: &str) -> Why {
        engine(settings(out), stages).why(name).unwrap()
    }

    fn field(from: &str, to: &str) -> Reason {
        Reason::Field { path: "a.say".to_owned(), from: Some(json!(from)), to: Some(json!(to)) }
    }

    fn chain(say: &str) -> [Fake; 3] {
        [stage("a").field("say", say), stage("b").reads("a"), stage("c").reads("b")]
    }

    #[test]
    fn why_names_the_changed_field_and_its_values_before_the_run() {
        let dir = tempdir().unwrap();
        run(dir.path(), chain("x"));
        let why = why(dir.path(), chain("y"), "c");
        assert_eq!(why.state, State::Pending);
        let [b] = why.causes.as_slice() else { panic!("{:?}", why.causes) };
        let [a] = b.because.as_slice() else { panic!("{b:?}") };
        assert_eq!(a.reason, Reason::Pending { name: "a".to_owned() });
        assert_eq!(a.because, [Cause { reason: field("x", "y"), because: Vec::new() }]);
    }

    #[test]
    fn why_traces_a_past_run_to_its_root_even_if_the_culprit_ran_again_since() {
        let dir = tempdir().unwrap();
        run(dir.path(), chain("x"));
        run(dir.path(), chain("y"));
        // These make the same contents again, so they are not what made c run.
        let [_, b, c] = chain("");
        run(dir.path(), [stage("a").field("say", "y").version(2), b, c]);
        let [_, b, c] = chain("");
        let why = why(dir.path(), [stage("a").field("say", "y").version(2), b, c], "c");
        assert_eq!((why.state, why.causes.len()), (State::Fresh, 0));
        assert_eq!(why.last[0].because[0].because, [Cause { reason: field("x", "y"), because: Vec::new() }]);
    }

    #[test]
    fn an_artifact_made_by_an_earlier_run_is_traced_to_that_run() {
        let dir = tempdir().unwrap();
        run(dir.path(), chain("x"));
        run(dir.path(), [stage("a").field("say", "y")]);
        let why = why(dir.path(), chain("y"), "b");
        assert_eq!(why.state, State::Stale);
        assert_eq!(why.causes[0].because, [Cause { reason: field("x", "y"), because: Vec::new() }]);
    }

    #[test]
    fn what_is_missing_blocks_and_what_is_touched_does_not_count() {
        let dir = tempdir().unwrap();
        let (out, input) = (dir.path().join("out"), dir.path().join("in"));
        let stages = || [stage("a").file("IN", &input)];
        let blocked = why(&out, stages(), "a");
        assert_eq!(blocked.state, State::Blocked);
        assert!(blocked.error.unwrap().contains("IN"));
        assert!(!out.exists(), "looking must not make folders");
        scribble(&input, "a");
        run(&out, stages());
        scribble(&input, "a");
        let touched = why(&out, stages(), "a");
        assert_eq!((touched.state, touched.notes.len()), (State::Fresh, 1));
    }

    #[test]
    fn a_folder_is_explained_by_the_file_that_changed_in_it() {
        let dir = tempdir().unwrap();
        let (out, corpus) = (dir.path().join("out"), dir.path().join("corpus"));
        let stages = || [stage("a").file("corpus", &corpus).works(|_| Ok(()))];
        scribble(&corpus.join("1.txt"), "a");
        scribble(&corpus.join("sub/2.txt"), "b");
        run(&out, stages());
        scribble(&corpus.join("sub/2.txt"), "c");
        let why = why(&out, stages(), "a");
        let [Cause { reason: Reason::File { label, .. }, .. }] = why.causes.as_slice() else {
            panic!("{why:?}")
        };
        assert_eq!(label, "corpus/sub/2.txt");
    }
}
