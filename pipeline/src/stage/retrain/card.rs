//! What a trained encoder says of itself.

use anyhow::Context as _;
use batch::task::Material;
use kg::split::Part;
use model::checkpoint::proof::Proof;
use model::checkpoint::{PICKLE_FILE, SHARDS_FILE, WEIGHTS_FILE};
use model::train::lora::Config as Lora;
use tasks::shard::hub;
use tasks::shard::index::Index;

use super::Retrain;
use crate::bundle::card::{self, Card, Kind};
use crate::engine::context::Context;
use crate::stage::encoder::MODEL;
use crate::stage::metrics;
use crate::stage::training::METRICS;
use crate::stage::training::steps::ended;

impl Retrain {
    /// What its card says of adapters, if it has any.
    fn adapters(&self, context: &Context) -> anyhow::Result<Option<String>> {
        let Some(Lora { rank, alpha, targets }) = &self.config.lora else { return Ok(None) };
        let base = self.from.base.folder(context)?;
        let weights = [WEIGHTS_FILE, SHARDS_FILE, PICKLE_FILE].map(|name| (name, base.join(name)));
        let told = match weights.into_iter().find(|(_, path)| path.is_file()) {
            Some((name, path)) => {
                let proof = Proof::of_file(&path).with_context(|| path.display().to_string())?;
                format!(" (the BLAKE3 of its `{name}` is `{}`)", proof.blake3)
            }
            None => String::new(),
        };
        let targets: Vec<&str> = targets.iter().map(|target| target.name()).collect();
        Ok(Some(format!(
            "## Adapters\n\nLow-rank adapters (LoRA) were trained in the encoder's place, of rank {rank} and alpha {alpha}, on {} of every layer, and are added to the weights here. \
             `engraft export --to peft` gives them alone, for what they began with{told}.",
            targets.join(", ")
        )))
    }

    /// What the finished model says of itself.
    pub(super) fn card(&self, context: &Context) -> anyhow::Result<()> {
        let out = context.out();
        let index = Index::read(context.artifact("shards")?)?;
        let tasks = self.config.tasks(&self.from.shards.config.tasks);
        let names: Vec<&str> = tasks.iter().map(|task| task.name()).collect();
        let made_of = |texts: bool| tasks.iter().any(|task| (task.made_of() == Material::Texts) == texts);
        let (on_graph, on_texts) = (made_of(false), made_of(true));
        let triples = index.triples.get(&Part::Train).copied().unwrap_or(0);
        let over =
            if on_graph { format!(" over {triples} triples of the part `train`") } else { String::new() };
        let training = format!(
            "## Training\n\nStage `{}`: {} steps of the tasks {}{over}, seed {}, peak learning rate {}.\n\n{}",
            self.name,
            ended(out)?.steps,
            names.join(", "),
            self.config.seed,
            self.config.learning_rate,
            card::table(&metrics::by_epoch(&out.join(METRICS))?)
        );
        let mut trained = vec![training];
        trained.extend(self.adapters(context)?);
        if on_graph {
            trained.push(hub::sources_of_triples(&index.sources));
            trained.push(card::LICENCES.to_owned());
        }
        if on_texts {
            trained.push(format!("## Texts\n\n{}", hub::LICENCE_OF_TEXTS));
        }
        let card = Card {
            stage: self.name.clone(),
            kind: Kind::Encoder,
            sizes: model::checkpoint::sizes(&out.join(MODEL))?,
            trained,
            scores: vec![],
            began_with: Some(card::of_base(&self.from.base, context)?),
        };
        card.write(out)
    }
}
