//! Stage `world`: writes the invented medical world.

use crate::engine::context::Context;
use crate::engine::describe::{self, Describe};
use crate::engine::stage::{Input, Stage};

#[derive(Debug)]
pub(crate) struct World {
    /// Seed and size.
    pub config: ::world::Config,
}

impl Stage for World {
    fn name(&self) -> &'static str {
        "world"
    }

    fn version(&self) -> u32 {
        3
    }

    fn describe(&self, to: &mut dyn Describe) {
        describe::config(to, "world", &self.config);
    }

    fn inputs(&self) -> Vec<Input> {
        Vec::new()
    }

    fn run(&self, context: &mut Context) -> anyhow::Result<()> {
        let progress = context.progress().clone();
        let summary = ::world::write(&self.config, context.out(), &mut |bytes| {
            progress.add_bytes(bytes);
            Ok(progress.check()?)
        })?;
        context.record("summary", serde_json::to_value(summary)?);
        Ok(())
    }
}
