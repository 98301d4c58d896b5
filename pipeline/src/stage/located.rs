//! A stage whose failures say where the setting stands that they begin with.

use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use crate::config::origin::Origin;
use crate::engine::context::Context;
use crate::engine::describe::Describe;
use crate::engine::licence::Licence;
use crate::engine::ranks::Joined;
use crate::engine::stage::{Artifacts, Input, Resume, Stage};

pub(super) struct Located {
    pub(super) stage: Box<dyn Stage>,
    pub(super) origin: Arc<Origin>,
}

impl Stage for Located {
    fn name(&self) -> &str {
        self.stage.name()
    }

    fn version(&self) -> u32 {
        self.stage.version()
    }

    fn describe(&self, to: &mut dyn Describe) {
        self.stage.describe(to);
    }

    fn inputs(&self) -> Vec<Input> {
        self.stage.inputs()
    }

    fn licence(&self, folder: &Path) -> anyhow::Result<Licence> {
        self.stage.licence(folder)
    }

    fn also_called(&self) -> Option<&str> {
        self.stage.also_called()
    }

    fn begins_with(&self) -> Option<String> {
        self.stage.begins_with()
    }

    fn computes_on(&self) -> Option<String> {
        self.stage.computes_on()
    }

    fn resume(&self) -> Resume {
        self.stage.resume()
    }

    fn foresee(&self, artifacts: &Artifacts<'_>) -> anyhow::Result<()> {
        self.stage.foresee(artifacts).map_err(|error| self.origin.locate(error))
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        self.stage.run(context).map_err(|error| self.origin.locate(error))
    }

    fn follow(&self, context: &Context, joined: Joined, more: Value) -> anyhow::Result<()> {
        self.stage.follow(context, joined, more).map_err(|error| self.origin.locate(error))
    }

    fn inspect(&self, file: &Path) -> anyhow::Result<Vec<String>> {
        self.stage.inspect(file)
    }
}
