//! Stage `report`: one page about the graph.

use std::path::Path;

use anyhow::Context as _;
use serde::de::DeserializeOwned;

use super::{summary, triples};
use crate::engine::context::Context;
use crate::engine::describe::Describe;
use crate::engine::stage::{Input, Stage};

#[derive(Debug)]
pub(crate) struct Reporting;

impl Stage for Reporting {
    fn name(&self) -> &'static str {
        "report"
    }

    fn version(&self) -> u32 {
        3
    }

    fn describe(&self, _to: &mut dyn Describe) {}

    fn inputs(&self) -> Vec<Input> {
        ["triples", "split", "summary"].map(Input::artifact).to_vec()
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let funnel = json(&context.artifact("triples")?.join(triples::FUNNEL))?;
        let split = json(&context.artifact("split")?.join(super::split::REPORT))?;
        let audit = json(&context.artifact("split")?.join(super::split::AUDIT))?;
        let folder = context.artifact("summary")?;
        let summary = json(&folder.join(summary::SUMMARY))?;
        let certificate = json(&folder.join(summary::CERTIFICATE))?;
        let page = report::page(&report::Input {
            title: "The knowledge graph",
            summary: &summary,
            certificate: Some(&certificate),
            funnel: Some(&funnel),
            split: Some(&split),
            audit: Some(&audit),
        });
        report::write(&page, context.out())?;
        context.record("plots", page.plots.len());
        Ok(())
    }
}

/// What a stage before this one wrote.
///
/// # Errors
/// When it cannot be read, or is not what this version writes.
pub(crate) fn json<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let bytes = std::fs::read(path).with_context(|| format!("{}: cannot read it", path.display()))?;
    serde_json::from_slice(&bytes).with_context(|| {
        format!("{}: not what this version writes; run the stage that made it again", path.display())
    })
}
