//! The depot of the command line: which is meant, what `push` and `pull` move between it and this machine, and what `gc` removes there. Moves nothing itself.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use base::cancel::CancelToken;
use serde_json::json;

use super::args::{Command, Subcommand};
use super::exit::Exit;
use super::print::{self, Format};
use super::watch::{self, Show};
use super::{measure, now, outside};
use crate::config::Config;
use crate::depot::{Config as Settings, Named};
use crate::engine::Engine;
use crate::engine::clean::Scope;
use crate::engine::depot::gc::Going;
use crate::engine::depot::{Access, Depot};
use crate::engine::kept::Bounds;
use crate::engine::outcome::Outcome;

/// The depot that a subcommand looks into: the one that the command line names, or else the config. What `gc` removes there it is told of by name alone.
pub(super) fn meant(
    command: &Command,
    config: &Config,
    cancel: &CancelToken,
) -> anyhow::Result<Option<Depot>> {
    let common = &command.common;
    let is_gc = matches!(command.subcommand, Subcommand::Gc { .. });
    let looks =
        super::looked_at(&command.subcommand).is_some() && !matches!(command.subcommand, Subcommand::Status);
    let named = match (&common.depot, &config.depot) {
        _ if !looks && !is_gc => return Ok(None),
        (Some(url), of) => {
            let max_level = of.as_ref().and_then(|of| of.max_level);
            Named { url, folder: Path::new(""), access: access(of.as_ref()), max_level }
        }
        (None, Some(of)) if !is_gc => {
            let folder = common.config.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
            let url = of
                .url
                .as_ref()
                .context("depot.url is left out: say where the depot is, there or by --depot")?;
            Named { url, folder, access: access(Some(of)), max_level: of.max_level }
        }
        (None, _) => return Ok(None),
    };
    named.depot(outside::options(common, cancel)).map(Some)
}

fn access(of: Option<&Settings>) -> Access {
    if of.is_some_and(|of| of.read_only) { Access::Read } else { Access::Write }
}

/// Refuses to go on without a depot.
///
/// # Errors
/// When none is named.
pub(super) fn named(engine: &Engine) -> anyhow::Result<()> {
    anyhow::ensure!(
        engine.depot().is_some(),
        "no depot is named: say --depot URL, or put depot.url into the config"
    );
    Ok(())
}

/// Pushes stages, as the arguments say.
pub(super) fn push(engine: &Engine, stages: &[String], show: Show) -> anyhow::Result<Exit> {
    named(engine)?;
    engine.admitted()?;
    let watching = watch::choose(show, Arc::new(now));
    let pushed = engine.push(stages, watching.as_ref())?;
    drop(watching);
    let why = |stage: &String| format!("{stage}: not up to date here: `engraft run {stage}` makes it");
    print::result(
        show.format,
        || {
            let there = format!(
                "{} in the depot ({} new), {} not pushed",
                measure::count(pushed.there as u64),
                measure::count(pushed.new as u64),
                measure::count((pushed.stale.len() + pushed.failed.len()) as u64)
            );
            let held = (!pushed.withheld.is_empty()).then(|| {
                format!("{} not put there for their licence", measure::count(pushed.withheld.len() as u64))
            });
            pushed.stale.iter().map(why).chain([there]).chain(held).collect()
        },
        || {
            let (there, new) = (pushed.there, pushed.new);
            vec![
                json!({"event": "end", "there": there, "new": new, "stale": pushed.stale, "failed": pushed.failed, "withheld": pushed.withheld}),
            ]
        },
    )?;
    let done = pushed.stale.is_empty() && pushed.failed.is_empty();
    Ok(if done { Exit::Ok } else { Exit::Failed })
}

/// Pulls stages, as the arguments say.
pub(super) fn pull(engine: &Engine, stages: &[String], show: Show) -> anyhow::Result<Exit> {
    named(engine)?;
    let started = now();
    let watching = watch::choose(show, Arc::new(now));
    let summary = engine.pull(stages, watching.as_ref())?;
    drop(watching);
    let seconds = now().saturating_sub(started).as_secs_f64();
    print::result(
        show.format,
        || super::report::summary(&summary, &[], seconds),
        || vec![super::report::summary_json(&summary, &[], seconds)],
    )?;
    let interrupted = summary.count(|outcome| *outcome == Outcome::Interrupted);
    let missing = summary.count(|outcome| matches!(outcome, Outcome::Failed(_) | Outcome::Skipped(_)));
    Ok(match (interrupted, missing) {
        (0, 0) => Exit::Ok,
        (0, _) => Exit::Failed,
        _ => Exit::Interrupted,
    })
}

/// Removes from the depot what `gc` says.
pub(super) fn gc(engine: &Engine, subcommand: &Subcommand, format: Format) -> anyhow::Result<Exit> {
    let (Some(depot), Subcommand::Gc { stages, all, dry_run, grace, keep }) = (engine.depot(), subcommand)
    else {
        return Ok(Exit::Ok);
    };
    // Without a bound everything that an artifact has stays.
    let bounds =
        Bounds { artifacts: keep.artifacts.unwrap_or(usize::MAX), bytes: keep.bytes.unwrap_or(u64::MAX) };
    let scope = if *all { Scope::All } else { Scope::Excess(bounds) };
    let verb = if *dry_run { "would remove" } else { "removed" };
    let until = i64::try_from(now().as_secs()).unwrap_or(i64::MAX) - i64::from(*grace) * 3600;
    let going = depot.going(stages, scope, until)?;
    if !dry_run {
        engine.clear(depot, &going)?;
    }
    print::result(
        format,
        || lines(&going, verb),
        || {
            let stages: Vec<_> = going
                .lines
                .iter()
                .map(|gone| json!({"stage": gone.stage, "made_ms": gone.made_ms, "key": gone.key}))
                .collect();
            vec![json!({
                "removed": stages, "files": going.blobs.len(), "bytes": going.bytes(), "new": going.young, "dry_run": dry_run,
            })]
        },
    )?;
    Ok(Exit::Ok)
}

fn lines(going: &Going, verb: &str) -> Vec<String> {
    let now_ms = super::now_ms();
    let gone = going
        .lines
        .iter()
        .map(|gone| format!("{verb} {}, made {}", gone.stage, super::explain::ago(gone.made_ms, now_ms)));
    let young = (going.young > 0).then(|| {
        format!("left {} new files that no artifact has (--grace)", measure::count(going.young as u64))
    });
    let sum = format!(
        "{verb} {} artifacts and {} files, {}",
        measure::count(going.lines.len() as u64),
        measure::count(going.blobs.len() as u64),
        measure::bytes(going.bytes())
    );
    gone.chain(young).chain([sum]).collect()
}
