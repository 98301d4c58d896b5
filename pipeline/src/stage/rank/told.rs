//! Ranks in numbers: of all, by side, relation and kind of relation, and of what nothing gives away.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use base::visible::markdown;
use kg::graph::cardinality;
use kg::table::Graph;
use model::eval::link::{Metrics, Rank};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tasks::link::Candidates;
use tasks::sample::{Slot, Triple};

use super::classify::Classified;
use super::{Answered, Config, leaks};

/// The version of `rank.json`.
const VERSION: u32 = 1;

/// What was ranked.
pub(super) struct Of<'a> {
    pub config: &'a Config,
    pub model: String,
    pub graph: &'a Graph,
    pub triples: usize,
    pub leaks: &'a BTreeMap<u32, &'static str>,
    pub asked: &'a [(Triple, u32)],
}

/// Means without other true answers, and with them.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct Both {
    filtered: Metrics,
    raw: Metrics,
}

impl Both {
    fn of<'a>(answers: impl IntoIterator<Item = &'a Answered>) -> Option<Self> {
        let (filtered, raw): (Vec<Rank>, Vec<Rank>) =
            answers.into_iter().map(|answer| (answer.filtered, answer.raw)).unzip();
        Some(Self { filtered: Metrics::of(&filtered)?, raw: Metrics::of(&raw)? })
    }
}

/// What a group of answers comes to, as lines of a table and as JSON.
struct Lines(String);

impl Lines {
    fn new() -> Self {
        Self("| ranks of | ranks | MRR | MR | Hits@1 | Hits@3 | Hits@10 | raw MRR | raw MR |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|\n".to_owned())
    }

    fn add(&mut self, name: &str, Both { filtered, raw }: &Both) {
        let Metrics { ranks, mrr, mr, hits_1, hits_3, hits_10, .. } = filtered;
        // Writing into a text cannot fail.
        _ = writeln!(
            self.0,
            "| {} | {ranks} | {mrr:.4} | {mr:.2} | {hits_1:.4} | {hits_3:.4} | {hits_10:.4} | {:.4} | {:.2} |",
            markdown(name),
            raw.mrr,
            raw.mr
        );
    }

    /// Answers by a key, and a line for each.
    fn by<K: Ord>(
        &mut self,
        answers: &[Answered],
        key: impl Fn(&Answered) -> K,
        name: impl Fn(&K) -> String,
    ) -> BTreeMap<K, Both> {
        let mut groups: BTreeMap<K, Vec<&Answered>> = BTreeMap::new();
        for answer in answers {
            groups.entry(key(answer)).or_default().push(answer);
        }
        let each = groups.into_iter().filter_map(|(key, answers)| Some((key, Both::of(answers)?)));
        let each: BTreeMap<K, Both> = each.collect();
        each.iter().for_each(|(key, both)| self.add(&name(key), both));
        each
    }
}

/// All measures, and tables of them.
///
/// # Errors
/// When relations cannot be counted.
pub(super) fn told(
    of: &Of<'_>,
    entities: &[Answered],
    relations: &[Answered],
    classified: Option<&Classified>,
) -> anyhow::Result<(Value, String)> {
    let kinds = cardinality::of(of.graph.relations().len(), of.graph.triples())?;
    let names = Names { graph: of.graph, kinds };
    let given_away = leaks::counts(of.asked, of.leaks);
    let (candidates, said) = match of.config.candidates {
        Candidates::All => (json!("all"), "all entities".to_owned()),
        Candidates::Sampled(most) => (json!({"sampled": most}), format!("{most} others, drawn")),
    };
    let mut scores = json!({
        "version": VERSION, "model": of.model, "by": of.config.by, "part": of.config.part, "triples": of.triples,
        "candidates": candidates, "ties": "realistic", "given_away": given_away,
    });
    let mut table = format!(
        "{} triples of {}, ranked by {} of {}, candidates: {said}.\n\n",
        of.triples,
        of.config.part.part(),
        of.config.by.name(),
        markdown(&of.model),
    );
    if let Some(words) = leaks::words(&given_away) {
        // Writing into a text cannot fail.
        _ = writeln!(table, "Of these {words}.\n");
    }
    if let Some((found, lines)) = names.links(entities) {
        for (name, value) in found {
            scores[name] = value;
        }
        _ = writeln!(table, "## Link prediction\n\n{}", lines.0);
    }
    if let Some((found, lines)) = names.relations(relations) {
        scores["relation_prediction"] = found.into();
        _ = writeln!(table, "## Relation prediction\n\n{}", lines.0);
    }
    if let Some(classified) = classified {
        scores["triple_classification"] = json!(classified);
        table.push_str(&of_classes(classified));
    }
    Ok((scores, table))
}

/// What relations are called, and which kind of relation each is.
struct Names<'a> {
    graph: &'a Graph,
    kinds: Vec<cardinality::Cardinality>,
}

impl Names<'_> {
    fn kind(&self, answer: &Answered) -> &'static str {
        self.kinds[answer.question.triple[Slot::Relation as usize] as usize].kind.name()
    }

    fn relation(&self, answer: &Answered) -> String {
        self.graph.relations()[answer.question.triple[Slot::Relation as usize] as usize].key.clone()
    }

    /// Of subjects and objects.
    fn links(&self, answers: &[Answered]) -> Option<(Map<String, Value>, Lines)> {
        let (mut found, mut lines) = all(answers)?;
        let side = |answer: &Answered| answer.question.slot.name();
        found.insert("sides".to_owned(), json!(lines.by(answers, side, |side| (*side).to_owned())));
        let mut kinds: BTreeMap<&str, BTreeMap<&str, Both>> = BTreeMap::new();
        let key = |answer: &Answered| (self.kind(answer), side(answer));
        for ((kind, side), both) in lines.by(answers, key, |(kind, side)| format!("{kind} {side}")) {
            kinds.entry(kind).or_default().insert(side, both);
        }
        found.insert("categories".to_owned(), json!(kinds));
        let key = |answer: &Answered| (self.relation(answer), self.kind(answer));
        let each = lines.by(answers, key, |(relation, _)| relation.clone());
        let each = each.into_iter().map(|((relation, kind), Both { filtered, raw })| {
            (relation, json!({"category": kind, "filtered": filtered, "raw": raw}))
        });
        found.insert("relations".to_owned(), Value::Object(each.collect()));
        Some((found, lines))
    }

    /// Of relations.
    fn relations(&self, answers: &[Answered]) -> Option<(Map<String, Value>, Lines)> {
        let (mut found, mut lines) = all(answers)?;
        found.insert(
            "relations".to_owned(),
            json!(lines.by(answers, |answer| self.relation(answer), String::clone)),
        );
        Some((found, lines))
    }
}

/// Of all answers, and of those that nothing gives away where some are.
fn all(answers: &[Answered]) -> Option<(Map<String, Value>, Lines)> {
    let (both, mut lines) = (Both::of(answers)?, Lines::new());
    lines.add("all", &both);
    let Both { filtered, raw } = both;
    let mut found =
        Map::from_iter([("filtered".to_owned(), json!(filtered)), ("raw".to_owned(), json!(raw))]);
    let others = answers.iter().filter(|answer| answer.given_away.is_none());
    if answers.iter().any(|answer| answer.given_away.is_some())
        && let Some(others) = Both::of(others)
    {
        lines.add("not given away", &others);
        found.insert("not_given_away".to_owned(), json!(others));
    }
    Some((found, lines))
}

fn of_classes(classified: &Classified) -> String {
    let share = |share: Option<f64>| share.map_or_else(|| "-".to_owned(), |share| format!("{share:.4}"));
    let Classified { stated, corrupted, auroc, average_precision, .. } = classified;
    format!(
        "## Triple classification\n\n| true | false ({}) | accuracy | one threshold | argmax | AUROC | average precision |\n|--:|--:|--:|--:|--:|--:|--:|\n| {stated} | {corrupted} | {} | {} | {} | {auroc:.4} | {average_precision:.4} |\n",
        classified.negatives.name(),
        share(classified.accuracy),
        share(classified.accuracy_one_threshold),
        share(classified.accuracy_argmax),
    )
}

/// What the ledger keeps of it.
pub(super) fn brief(scores: &Value) -> Value {
    let of = |keys: &[&str]| {
        let there = keys.iter().filter_map(|&key| Some((key.to_owned(), scores.get(key)?.clone())));
        there.collect::<Map<_, _>>()
    };
    let mut brief = of(&[
        "by",
        "part",
        "triples",
        "candidates",
        "given_away",
        "filtered",
        "raw",
        "triple_classification",
    ]);
    if let Some(all) = scores.get("relation_prediction") {
        brief.insert(
            "relation_prediction".to_owned(),
            json!({"filtered": all["filtered"], "raw": all["raw"]}),
        );
    }
    brief.into()
}
