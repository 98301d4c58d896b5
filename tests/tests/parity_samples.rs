//! The builders' rows against the golden inputs of part e, layout by layout and task by task.
//!
//! The folder is `ENGRAFT_GOLDENS`, or `tests/fixtures/golden`.

use std::collections::HashMap;

use anyhow::{Context, Result, ensure};
use batch::IGNORED;
use batch::task::{Answer, Task};
use candle_core::{Device, Tensor};
use engraft_tests::golden::{folder, json};
use serde_json::Value;
use tasks::builder::{Blanks, Columns, Form, Layout, Limits, Sample, TokenTypes, entity, relation, triplet};
use tasks::sample::{Slot, Triple};
use tasks::token::encode::Special;

/// The graph of part e.
struct Graph {
    entities: Vec<Vec<u32>>,
    relations: Vec<Vec<u32>>,
    triples: Vec<Triple>,
    negatives: Vec<Triple>,
    special: Special,
    limits: Limits,
}

impl Graph {
    fn read() -> Result<Self> {
        let json = json("e_kg_losses")?;
        let kg = &json["kg"];
        let negatives = kg["negatives"].as_array().context("negatives")?;
        let triplet = |negative: &Value| Ok(serde_json::from_value(negative["triplet"].clone())?);
        let special = |name: &str| {
            let id = json["special_ids"][name].as_u64().with_context(|| name.to_owned())?;
            anyhow::Ok(u32::try_from(id)?)
        };
        let [node, edge, last]: [usize; 3] = serde_json::from_value(json["slots"].clone())?;
        ensure!(node == last, "both entities have one limit");
        Ok(Self {
            entities: serde_json::from_value(kg["entities"].clone())?,
            relations: serde_json::from_value(kg["relations"].clone())?,
            triples: serde_json::from_value(kg["triplets"].clone())?,
            negatives: negatives.iter().map(triplet).collect::<Result<_>>()?,
            special: Special {
                padding: special("PAD")?,
                unknown: special("UNK")?,
                cls: special("CLS")?,
                sep: special("SEP")?,
                blank: special("MASK")?,
                family: batch::family::Family::Bert,
            },
            limits: Limits { node, edge },
        })
    }

    fn columns(&self, [subject, relation, object]: Triple) -> Columns<'_> {
        let entity = |id: u32| self.entities[id as usize].as_slice();
        [entity(subject), &self.relations[relation as usize], entity(object)]
    }

    /// The rows of a task: the triplet task has all stated triples, then all corrupted ones.
    fn rows(&self, layout: &Layout, task: Task) -> Vec<Sample> {
        let corrupted = if task == Task::Triplet { self.negatives.as_slice() } else { &[] };
        let all = self.triples.iter().chain(corrupted).enumerate();
        let build = |(place, triple): (usize, &Triple)| {
            let mut sample = Sample::default();
            let (row, special, columns) = (&mut sample, self.special, self.columns(*triple));
            let stated = place < self.triples.len();
            let truth = if stated { triplet::Truth::Stated } else { triplet::Truth::Corrupted };
            match task {
                Task::Subject => entity::build(row, layout, special, columns, Slot::Subject),
                Task::Object => entity::build(row, layout, special, columns, Slot::Object),
                Task::Relation => relation::build(row, layout, special, columns, triple[1]),
                _ => triplet::build(row, layout, special, columns, truth),
            }
            sample
        };
        all.map(build).collect()
    }
}

/// The golden layout of this name.
fn layout(name: &str, limits: Limits) -> Result<Layout> {
    let (form, token_types) = match name {
        "packed" => (Form::Packed, TokenTypes::Zero),
        "slotted" => (Form::Slotted, TokenTypes::Zero),
        "packed_types010" => (Form::Packed, TokenTypes::ByColumn),
        other => anyhow::bail!("no layout is called {other}"),
    };
    Ok(Layout { form, token_types, blanks: Blanks::TrueLength, limits })
}

/// One field of all rows, each filled to `width`.
fn padded<T: Copy + Into<i64>>(
    rows: &[Sample],
    field: fn(&Sample) -> &[T],
    width: usize,
    fill: i64,
) -> Vec<i64> {
    let one = |row: &Sample| {
        let mut row: Vec<i64> = field(row).iter().map(|&value| value.into()).collect();
        row.resize(width, fill);
        row
    };
    rows.iter().flat_map(one).collect()
}

#[test]
fn rows_are_the_golden_inputs() -> Result<()> {
    let golden: HashMap<String, Tensor> =
        candle_core::safetensors::load(folder().join("e_kg_losses.safetensors"), &Device::Cpu)?;
    let graph = Graph::read()?;
    let mut layouts: Vec<&str> =
        golden.keys().filter_map(|name| Some(name.split_once(".loss.")?.0)).collect();
    layouts.sort_unstable();
    layouts.dedup();
    ensure!(layouts.len() == 3, "{layouts:?}");
    for name in layouts {
        let layout = layout(name, graph.limits)?;
        for task in Task::GRAPH {
            let rows = graph.rows(&layout, task);
            let width = layout.longest(graph.special.family);
            let mut fields = vec![
                ("input_ids", padded(&rows, |row| &row.input_ids, width, graph.special.padding.into())),
                ("attention_mask", padded(&rows, |row| &row.attention, width, 0)),
                ("token_type_ids", padded(&rows, |row| &row.token_type_ids, width, 0)),
            ];
            match task {
                task if task.answer() == Answer::Tokens => {
                    fields.push(("mlm_labels", padded(&rows, |row| &row.labels, width, IGNORED)));
                }
                _ => {
                    let classes = rows.iter().map(|row| row.class.map(i64::from)).collect::<Option<_>>();
                    fields.push(("labels", classes.context("every row has a class")?));
                }
            }
            for (field, found) in fields {
                let tensor = format!("{name}.{}.{field}", task.name());
                let expected = golden.get(&tensor).with_context(|| format!("no {tensor}"))?;
                ensure!(found == expected.flatten_all()?.to_vec1::<i64>()?, "{tensor} differs");
            }
        }
    }
    Ok(())
}
