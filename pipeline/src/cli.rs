//! The command line: reads arguments and the environment, calls the engine, prints what it says. Holds no logic of its own.

mod about;
mod args;
mod attention;
mod clean;
mod compare;
mod depot;
mod diff;
mod each;
mod ending;
pub(crate) mod exit;
mod explain;
mod export;
mod fetch;
mod heat;
mod inspect;
mod live;
mod measure;
mod outside;
mod predict;
mod print;
mod project;
#[cfg(feature = "query")]
mod query;
mod ranks;
mod report;
mod settings;
mod signals;
mod table;
mod tag;
mod threads;
mod watch;

use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use base::cancel::CancelToken;
use serde_json::json;

use crate::bundle::known::Around;
use crate::bundle::opened::Bundle;
use crate::bundle::vectors::How;
use crate::engine::failure;
use crate::engine::fault::Faults;
use crate::engine::layout::Layout;
use crate::engine::ledger::Ledger;
use crate::engine::memo::Belief;
use crate::engine::origin::Claim;
use crate::engine::outcome::Outcome;
use crate::engine::survey::State;
use crate::engine::{Engine, Settings};
use crate::stage::maps::Mapping;
use crate::stage::remote::Remotes;
use args::{Command, Common, Subcommand};
use exit::Exit;
use print::Format;
use watch::Detail;

/// Runs the command that the arguments of the process name.
pub fn main() -> ExitCode {
    let mut command = match Command::given() {
        Ok(command) => command,
        Err(error) => {
            if error.use_stderr() {
                // A complaint says what was given, and a shell may have put the names of files there.
                print::note(error.render().to_string().trim_end());
                return Exit::Refused.into();
            }
            // Help goes to standard output; if that fails there is nobody left to tell.
            let _ = error.print();
            return Exit::Ok.into();
        }
    };
    match command.check_local().and_then(|()| project::settle(&mut command)).and_then(|()| obey(&mut command))
    {
        Ok(exit) => exit.into(),
        Err(error) => {
            print::note(&format!("error: {}", failure::text(&error)));
            Exit::Refused.into()
        }
    }
}

fn obey(command: &mut Command) -> anyhow::Result<Exit> {
    let format = if command.common.json { Format::Json } else { Format::Text };
    if let Some(said) = about::about(&command.subcommand).or_else(|| settings::settings(command)) {
        return said;
    }
    let cancel = cancel(&command.subcommand)?;
    threads::start(jobs(&command.common))?;
    if let Some(said) = aside(command, &cancel, format).or_else(|| ask(command, &cancel, format)) {
        return said;
    }
    match &command.subcommand {
        Subcommand::Run { stages, each, .. } if !each.is_empty() => {
            let (given, goals) = (each.clone(), stages.clone());
            let check = |command: &Command| {
                let remotes = Arc::new(Remotes::new(outside::options(&command.common, &cancel)));
                each::is_compared(&engine(command, &remotes, cancel.clone())?, &goals)
            };
            let doing = each::Doing { check, run: |command: &Command| staged(command, &cancel, format) };
            each::each(command, &given, format, &doing)
        }
        _ => staged(command, &cancel, format),
    }
}

/// What a subcommand comes to that an engine of a config's stages obeys.
fn staged(command: &Command, cancel: &CancelToken, format: Format) -> anyhow::Result<Exit> {
    let remotes = Arc::new(Remotes::new(outside::options(&command.common, cancel)));
    let engine = engine(command, &remotes, cancel.clone())?;
    if let Some(followed) = ranks::follow(&engine, cancel) {
        return followed;
    }
    if let Subcommand::Tag(asked) = &command.subcommand {
        tag::ready(&engine, asked, &command.common)?;
    }
    if let Some(goals) = looked_at(&command.subcommand) {
        engine.admitted()?;
        if let Err(error) = outside::bring(&engine, &remotes, goals, cancel) {
            return if cancel.is_cancelled() { Ok(Exit::Interrupted) } else { Err(error) };
        }
    }
    if let Subcommand::Tag(asked) = &command.subcommand {
        return tag::with_graph(&engine, asked, &command.common, cancel);
    }
    with(&engine, command, &remotes, format)
}

/// What a subcommand comes to that is about no config's stages; nothing for the others.
fn aside(command: &Command, cancel: &CancelToken, format: Format) -> Option<anyhow::Result<Exit>> {
    Some(match &command.subcommand {
        Subcommand::Diff { old, new, into } => diff::diff(old, new, into.as_deref(), format),
        Subcommand::Compare { outs } => compare::compare(outs, format),
        Subcommand::Fetch { names, into, catalog, max_bytes } => {
            let (into, catalog) = (into.as_deref(), catalog.as_deref());
            let wish = fetch::Wish { names, into, catalog, max_bytes: *max_bytes };
            fetch::fetch(wish, outside::options(&command.common, cancel), cancel, format)
        }
        Subcommand::Verify { stages } => report::verify(&command.common, stages, format),
        _ => return None,
    })
}

/// What a subcommand comes to that is about the stages of a config.
fn with(engine: &Engine, command: &Command, remotes: &Arc<Remotes>, format: Format) -> anyhow::Result<Exit> {
    let detail = if command.common.verbose { Detail::Full } else { Detail::Short };
    let show = |every| watch::Show { format, detail, every };
    let one = |stage: &String| engine.graph().own_name(stage);
    let own = |stages: &[String]| stages.iter().map(one).collect::<Vec<_>>();
    let common = &command.common;
    match &command.subcommand {
        Subcommand::Run { stages, progress, .. } => run(engine, &own(stages), common, show(*progress)),
        Subcommand::Plan { stages, check, graph } => {
            let shape = if *graph { explain::Shape::Graph } else { explain::Shape::Lines(detail) };
            let found = plan(engine, &own(stages), format, shape)?;
            Ok(if found == Exit::Found && !check { Exit::Ok } else { found })
        }
        Subcommand::Why { stage } => why(engine, &one(stage), format),
        Subcommand::Status => status(engine, format),
        Subcommand::Inspect { artifact, text: None, .. } => inspect(engine, &one(artifact), format),
        Subcommand::Inspect { artifact, text: Some(text), svg } => {
            heat::only_maps(artifact)?;
            let maps = maps_of(common, remotes)?;
            engine.admitted()?;
            let (layout, svg) = (engine.layout(), svg.as_deref());
            heat::draw(&heat::Drawing { maps: &maps, layout, text, svg }, format)
        }
        Subcommand::Push { stages } => depot::push(engine, &own(stages), show(None)),
        Subcommand::Pull { stages } => depot::pull(engine, &own(stages), show(None)),
        subcommand @ Subcommand::Gc { .. } if engine.depot().is_some() => {
            depot::gc(engine, subcommand, format)
        }
        subcommand @ (Subcommand::Clean { .. } | Subcommand::Gc { .. }) => {
            clean::clean(engine, subcommand, format)
        }
        // Done above: no other needs an engine.
        _ => Ok(Exit::Ok),
    }
}

/// Only what writes or waits has anything to bring to an orderly end.
fn cancel(subcommand: &Subcommand) -> anyhow::Result<CancelToken> {
    match subcommand {
        Subcommand::Run { .. }
        | Subcommand::Fetch { .. }
        | Subcommand::Tag(_)
        | Subcommand::Push { .. }
        | Subcommand::Pull { .. } => signals::cancel_on_signal().context("signals cannot be listened to"),
        _ => Ok(CancelToken::NEVER),
    }
}

/// What a subcommand that asks artifacts or a model comes to; nothing for the others.
fn ask(command: &Command, cancel: &CancelToken, format: Format) -> Option<anyhow::Result<Exit>> {
    let around = Around {
        mapping: &|| {
            let options = outside::options(&command.common, &CancelToken::NEVER);
            maps_of(&command.common, &Arc::new(Remotes::new(options)))
        },
        artifact: &|stage| Layout::new(command.common.out()).artifact(stage),
    };
    match &command.subcommand {
        #[cfg(feature = "query")]
        Subcommand::Query(asked) => Some(query::query(command.common.out(), asked, format)),
        Subcommand::Predict { model, input, lines, task, top, mask, device } => {
            let asked = predict::Asked { input: input.as_deref(), form: *lines };
            Some(predict::device(*device).and_then(|device| {
                let bundle = Bundle { folder: model, mask: mask.as_deref(), device: &device };
                let came = predict::predict(bundle, task.as_deref(), *top, &asked, around);
                predict::advised(&device, came)
            }))
        }
        Subcommand::Export(asked) => Some(export::export(asked, format)),
        Subcommand::Tag(asked @ args::Tagged { triples: Some(triples), .. }) => {
            Some(tag::tag(asked, triples, &command.common, cancel))
        }
        Subcommand::Attention(asked) => Some(attention::attention(asked, around, format)),
        Subcommand::Encode { model, input, lines, pooling, max_tokens, vocabulary, device } => {
            let asked = predict::Asked { input: input.as_deref(), form: *lines };
            let (pooling, vocabulary, most) = (*pooling, vocabulary.as_deref(), *max_tokens);
            Some(predict::device(*device).and_then(|device| {
                let how = How { pooling, vocabulary, most, device: &device };
                predict::advised(&device, predict::encode(model, &how, &asked, around))
            }))
        }
        _ => None,
    }
}

/// How the config makes maps.
fn maps_of(common: &Common, remotes: &Arc<Remotes>) -> anyhow::Result<Mapping> {
    let config = common.load()?;
    crate::stage::maps_alone(&config, common.data.as_deref(), remotes)
}

/// The stages whose inputs a subcommand looks at; nothing for those that look at artifacts only.
fn looked_at(subcommand: &Subcommand) -> Option<&[String]> {
    match subcommand {
        Subcommand::Run { stages, .. }
        | Subcommand::Plan { stages, .. }
        | Subcommand::Push { stages }
        | Subcommand::Pull { stages } => Some(stages),
        Subcommand::Why { stage } => Some(std::slice::from_ref(stage)),
        Subcommand::Tag(asked) => Some(&asked.goals),
        Subcommand::Status => Some(&[]),
        #[cfg(feature = "query")]
        Subcommand::Query(_) => None,
        Subcommand::Inspect { .. }
        | Subcommand::Verify { .. }
        | Subcommand::Diff { .. }
        | Subcommand::Compare { .. }
        | Subcommand::Fetch { .. }
        | Subcommand::Predict { .. }
        | Subcommand::Attention(_)
        | Subcommand::Export(_)
        | Subcommand::Encode { .. }
        | Subcommand::Completions { .. }
        | Subcommand::Man { .. }
        | Subcommand::Init
        | Subcommand::Config { .. }
        | Subcommand::Clean { .. }
        | Subcommand::Gc { .. } => None,
    }
}

fn engine(command: &Command, remotes: &Arc<Remotes>, cancel: CancelToken) -> anyhow::Result<Engine> {
    let common = &command.common;
    let config = common.load()?;
    let stages = crate::stage::all(&config, common.data.as_deref(), remotes)?;
    let (check, replace) = match command.subcommand {
        Subcommand::Run { check, replace, .. } => (check, replace),
        Subcommand::Plan { check, .. } => (check, false),
        _ => (false, false),
    };
    let settings = Settings {
        out: common.out().to_owned(),
        jobs: jobs(common),
        restart: matches!(command.subcommand, Subcommand::Run { restart: true, .. }),
        depot: depot::meant(command, &config, &cancel)?,
        cancel,
        faults: faults()?,
        clock: Arc::new(now),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        belief: if check { Belief::Reading } else { Belief::Stamps },
        origin: Some(common.origin()?),
        claim: if replace { Claim::Replace } else { Claim::Respect },
        keep: clean::bounds(&command.subcommand, &config),
        launch: ranks::launch(&command.subcommand)?,
        elsewhere: Some(Arc::clone(remotes) as _),
    };
    Ok(Engine::new(stages, settings)?)
}

/// One is always right where the system does not say how many cores there are: results do not depend on it.
fn jobs(common: &Common) -> NonZeroUsize {
    common.jobs.unwrap_or_else(|| std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one clock: for durations and dates in the ledger, never in artifacts"
)]
fn now() -> Duration {
    // A clock before 1970 is wrong, and only a date in the ledger depends on it.
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

fn now_ms() -> u64 {
    u64::try_from(now().as_millis()).unwrap_or(u64::MAX)
}

#[expect(clippy::disallowed_methods, reason = "the command line is where the environment is read")]
fn faults() -> anyhow::Result<Faults> {
    match std::env::var("ENGRAFT_KILL_AT") {
        Ok(given) if !given.is_empty() => given.parse().context("ENGRAFT_KILL_AT"),
        _ => Ok(Faults::none()),
    }
}

fn run(engine: &Engine, stages: &[String], common: &Common, show: watch::Show) -> anyhow::Result<Exit> {
    let (started, format) = (now(), show.format);
    engine.leads().iter().for_each(|leads| print::note(leads));
    let watching = watch::choose(show, Arc::new(now));
    let live = live::Live::new(engine.layout(), engine.graph().names(), watching.as_ref());
    let summary = live.while_working(|| engine.run(stages, &live))?;
    drop(live);
    drop(watching);
    let seconds = now().saturating_sub(started).as_secs_f64();
    let ledger = Ledger::read(&engine.layout().ledger())?;
    let warnings = report::warnings(&summary, &ledger);
    let ending = ending::Ending::new(&summary, stages, &ledger, engine.layout());
    let options = outside::given(common);
    let printed = print::result(
        format,
        || report::summary(&summary, &warnings, seconds).into_iter().chain(ending.lines(&options)).collect(),
        || {
            let mut end = report::summary_json(&summary, &warnings, seconds);
            end.as_object_mut().into_iter().for_each(|end| end.extend(ending.json(&options)));
            vec![end]
        },
    );
    if let Err(error) = printed {
        // The work is done all the same, so this is no refusal.
        print::note(&format!("error: the summary cannot be printed: {error}"));
        return Ok(Exit::Failed);
    }
    let interrupted = summary.count(|outcome| *outcome == Outcome::Interrupted);
    let failed = summary.count(|outcome| matches!(outcome, Outcome::Failed(_))) + summary.unshared.len();
    Ok(match (interrupted, failed) {
        (0, 0) => Exit::Ok,
        (0, _) => Exit::Failed,
        _ => Exit::Interrupted,
    })
}

/// Shows the plan; [`Exit::Failed`] if a stage cannot run, or else [`Exit::Found`] if anything would run.
fn plan(engine: &Engine, stages: &[String], format: Format, shape: explain::Shape) -> anyhow::Result<Exit> {
    let found = engine.survey(stages)?;
    print::result(format, || explain::plan(&found, shape), || explain::plan_json(&found, shape))?;
    let all = |state: State, is: bool| found.iter().all(|finding| (finding.state == state) == is);
    Ok(match (all(State::Blocked, false), all(State::Fresh, true)) {
        (false, _) => Exit::Failed,
        (true, false) => Exit::Found,
        (true, true) => Exit::Ok,
    })
}

fn why(engine: &Engine, stage: &str, format: Format) -> anyhow::Result<Exit> {
    let why = engine.why(stage)?;
    print::result(format, || explain::why(&why), || vec![json!(why)])?;
    Ok(Exit::Ok)
}

fn status(engine: &Engine, format: Format) -> anyhow::Result<Exit> {
    let (found, store) = (engine.survey_here(&[])?, engine.kept()?);
    print::result(
        format,
        || explain::status(&found, &store, now_ms()),
        || found.iter().map(|finding| explain::status_json(finding, &store)).collect(),
    )?;
    Ok(Exit::Ok)
}

fn inspect(engine: &Engine, artifact: &str, format: Format) -> anyhow::Result<Exit> {
    let ledger = Ledger::read(&engine.layout().ledger())?;
    let line = ledger.last(artifact);
    let place = engine.graph().find(artifact);
    let place =
        place.map_err(|error| line.map_or_else(|| error.into(), |_| inspect::of_another(artifact)))?;
    let stage = engine.graph().stage(place);
    let line = line
        .with_context(|| format!("{artifact} was never made here: make it with `engraft run {artifact}`"))?;
    print::result(format, || inspect::inspect(engine, stage, line, now_ms()), || vec![json!(line)])?;
    Ok(Exit::Ok)
}
