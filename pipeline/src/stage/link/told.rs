//! How often mentions were linked rightly.

use std::fmt::Write as _;

use base::visible::markdown;
use kg::table::Graph;
use model::eval::interval::{Bootstrap, Method, bootstrap};
use serde_json::{Map, Value, json};

use super::config::{Config, Set};
use super::names::BEST;
use super::{Asked, Left};

/// How intervals are drawn.
pub(crate) const INTERVALS: Bootstrap =
    Bootstrap { replicates: 1_000, seed: 1, level: 0.95, method: Method::Percentile };

/// What is said of a mention.
pub(super) struct Answer<'a> {
    pub(super) model: &'a str,
    pub(super) set: &'a str,
    pub(super) one: &'a Asked,
    pub(super) found: &'a [(u32, f32)],
}

impl Answer<'_> {
    /// Appends a line.
    pub(super) fn write(&self, graph: &Graph, to: &mut Vec<u8>) -> anyhow::Result<()> {
        let key = |entity: u32| graph.entities().get(entity as usize).map(|entity| entity.key.as_str());
        let candidates: Vec<Value> = self
            .found
            .iter()
            .map(|&(entity, score)| json!({"entity": key(entity), "score": score}))
            .collect();
        let right: Vec<_> = self.one.entities.iter().map(|&entity| key(entity)).collect();
        let line = json!({
            "model": self.model, "set": self.set, "document": self.one.document, "text": self.one.text,
            "right": right, "candidates": candidates,
        });
        serde_json::to_writer(&mut *to, &line)?;
        to.push(b'\n');
        Ok(())
    }
}

/// Measures by set and model.
pub(super) struct Measured {
    sets: Vec<(String, Value)>,
    /// By encoder, how many names were cut.
    cut: Map<String, Value>,
}

impl Measured {
    pub(super) fn new(sets: &[(Vec<Asked>, Left)], config: &Config) -> Self {
        let of = |((asked, left), set): (&(Vec<Asked>, Left), &Set)| {
            (set.texts.name.clone(), json!({"mentions": asked.len(), "left_out": left}))
        };
        Self { sets: sets.iter().zip(&config.sets).map(of).collect(), cut: Map::new() }
    }

    /// Notes how many names an encoder was shown in part.
    pub(super) fn cut(&mut self, model: &str, names: u64) {
        self.cut.insert(model.to_owned(), names.into());
    }

    /// Adds what a model found of a set.
    pub(super) fn add(
        &mut self,
        set: usize,
        model: &str,
        asked: &[Asked],
        found: &[Vec<(u32, f32)>],
    ) -> anyhow::Result<()> {
        // The place of the first right entity, from 1.
        let places: Vec<Option<usize>> = asked
            .iter()
            .zip(found)
            .map(|(one, found)| Some(found.iter().position(|(entity, _)| one.entities.contains(entity))? + 1))
            .collect();
        let share = |most: usize| -> anyhow::Result<Value> {
            let right = |place: &Option<usize>| f64::from(u8::from(place.is_some_and(|place| place <= most)));
            let values: Vec<f64> = places.iter().map(right).collect();
            let mean = |of: &[usize]| Some(of.iter().map(|&at| values[at]).sum::<f64>() / of.len() as f64);
            let all: Vec<usize> = (0..values.len()).collect();
            let interval =
                if values.len() < 2 { None } else { Some(bootstrap(values.len(), &INTERVALS, &mean)?) };
            Ok(json!({"value": mean(&all), "interval": interval.map(|of| [of.low, of.high])}))
        };
        let (one, five) = (share(1)?, share(BEST)?);
        self.sets[set].1[model] = json!({"accuracy_1": one, "accuracy_5": five});
        Ok(())
    }

    /// All measures.
    pub(super) fn told(self, names: usize, entities: usize) -> Value {
        let sets: Map<String, Value> = self.sets.into_iter().collect();
        json!({"names": names, "entities": entities, "cut": self.cut, "sets": sets})
    }
}

/// The measures as a table.
pub(super) fn table(scores: &Value) -> String {
    let mut table = format!(
        "{} names of {} entities.\n\n| set | mentions | by | accuracy@1 | accuracy@5 |\n|---|--:|---|--:|--:|\n",
        scores["names"], scores["entities"]
    );
    for (name, set) in scores["sets"].as_object().into_iter().flatten() {
        for (model, of) in
            set.as_object().into_iter().flatten().filter(|(_, of)| of.get("accuracy_1").is_some())
        {
            let share = |key: &str| {
                let percent = |value: &Value| 100.0 * value.as_f64().unwrap_or_default();
                let of = &of[key];
                let interval = of["interval"].as_array().map_or_else(String::new, |ends| {
                    let ends: Vec<String> = ends.iter().map(|end| format!("{:.1}", percent(end))).collect();
                    format!(" [{}]", ends.join(", "))
                });
                format!("{:.1}{interval}", percent(&of["value"]))
            };
            // Writing into a text cannot fail.
            _ = writeln!(
                table,
                "| {} | {} | {model} | {} | {} |",
                markdown(name),
                set["mentions"],
                share("accuracy_1"),
                share("accuracy_5")
            );
        }
    }
    table
}
