//! The stages as a graph: who reads whose artifact. Finds cycles and misspelt names; runs nothing.

use std::collections::{BTreeMap, BTreeSet};

use petgraph::algo::{tarjan_scc, toposort};
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;

use super::error::Error;
use super::stage::{Input, Stage};

/// Names that an error lists: a config with several seeds has hundreds of stages.
const SHOWN: usize = 40;

fn unknown(asked_by: &str, name: &str, known: &[String]) -> Error {
    let near = suggestion(name, known);
    // A newcomer asks for what the config does not have yet.
    let how = if near.is_empty() {
        "; most stages are there once the config has a table of their name"
    } else {
        ""
    };
    let known = match known {
        [] => "none".to_owned(),
        all if all.len() > SHOWN => {
            let (first, more) = all.split_at(SHOWN);
            format!("{}, and {} more that `engraft status` lists", first.join(", "), more.len())
        }
        all => all.join(", "),
    };
    Error::new(format!("{asked_by} `{name}`, but there is no such stage{near}{how}; stages: {known}"))
}

fn suggestion(name: &str, known: &[String]) -> String {
    let near = known.iter().map(|other| (strsim::jaro_winkler(name, other), other));
    let best = near.filter(|(score, _)| *score > 0.75).max_by(|(a, _), (b, _)| a.total_cmp(b));
    best.map_or_else(String::new, |(_, other)| format!(" (did you mean `{other}`?)"))
}

/// Who reads from whom; nodes are places in the list of stages.
type Edges = DiGraph<(), ()>;

/// The stages in an order in which each comes after those it reads from.
pub(crate) struct Graph {
    stages: Vec<Box<dyn Stage>>,
    /// For each stage, the places of those whose artifacts it reads, in the order of its inputs.
    upstream: Vec<Vec<usize>>,
}

impl Graph {
    /// Sorts the stages and checks that they fit together.
    ///
    /// # Errors
    /// When they do not.
    pub(crate) fn new(stages: Vec<Box<dyn Stage>>) -> Result<Self, Error> {
        let places = places(&stages)?;
        let known = || stages.iter().map(|stage| stage.name().to_owned()).collect::<Vec<_>>();
        let mut graph = Edges::with_capacity(stages.len(), stages.len());
        let nodes: Vec<_> = stages.iter().map(|_| graph.add_node(())).collect();
        for (&node, stage) in nodes.iter().zip(&stages) {
            for name in artifacts(stage.as_ref())? {
                let asked_by = || format!("stage {} reads", stage.name());
                let place = places.get(&name).ok_or_else(|| unknown(&asked_by(), &name, &known()))?;
                graph.add_edge(nodes[*place], node, ());
            }
        }
        let mut order = toposort(&graph, None).map_err(|_| {
            let along = cycle(&graph, &stages).join(" -> ");
            Error::new(format!(
                "stages wait for each other in a cycle: {along}: take one of these inputs away"
            ))
        })?;
        // People list stages as data flows; that order is kept wherever it is a valid one.
        if graph.edge_references().all(|edge| edge.source() < edge.target()) {
            order = nodes;
        }
        Self::sorted(stages, &order)
    }

    fn sorted(stages: Vec<Box<dyn Stage>>, order: &[NodeIndex]) -> Result<Self, Error> {
        let mut unsorted: Vec<_> = stages.into_iter().map(Some).collect();
        let stages: Vec<_> = order.iter().filter_map(|node| unsorted[node.index()].take()).collect();
        let places = places(&stages)?;
        let upstream = stages
            .iter()
            .map(|stage| Ok(artifacts(stage.as_ref())?.iter().map(|name| places[name]).collect()));
        let upstream = upstream.collect::<Result<_, Error>>()?;
        Ok(Self { stages, upstream })
    }

    /// The stage at `place`.
    pub(crate) fn stage(&self, place: usize) -> &dyn Stage {
        self.stages[place].as_ref()
    }

    /// The places of the stages whose artifacts the one at `place` reads.
    pub(crate) fn upstream(&self, place: usize) -> &[usize] {
        &self.upstream[place]
    }

    /// The names of all stages, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        self.stages.iter().map(|stage| stage.name().to_owned()).collect()
    }

    /// The place of the stage `name`, or of the one that is also called so.
    ///
    /// # Errors
    /// When there is no such stage.
    pub(crate) fn find(&self, name: &str) -> Result<usize, Error> {
        let place = self.stages.iter().position(|stage| stage.name() == name);
        let place = place.or_else(|| self.stages.iter().position(|stage| stage.also_called() == Some(name)));
        place.ok_or_else(|| unknown("asked for", name, &self.names()))
    }

    /// A stage's own name, of one that may be called by another; what no stage is called stays as it is.
    pub(crate) fn own_name(&self, asked: &str) -> String {
        self.find(asked).map_or(asked, |place| self.stages[place].name()).to_owned()
    }

    /// The places of the named stages and of everything they need, in order; of all stages if none is named.
    ///
    /// # Errors
    /// When there is no such stage.
    pub(crate) fn needed(&self, goals: &[String]) -> Result<Vec<usize>, Error> {
        let mut needed: BTreeSet<usize> = self.chosen(goals)?.into_iter().collect();
        for place in (0..self.stages.len()).rev() {
            if needed.contains(&place) {
                needed.extend(self.upstream(place));
            }
        }
        Ok(needed.into_iter().collect())
    }

    /// The places of the named stages, in order; of all stages if none is named.
    ///
    /// # Errors
    /// When there is no such stage.
    pub(crate) fn chosen(&self, names: &[String]) -> Result<Vec<usize>, Error> {
        if names.is_empty() {
            return Ok((0..self.stages.len()).collect());
        }
        let places: BTreeSet<usize> = names.iter().map(|name| self.find(name)).collect::<Result<_, _>>()?;
        Ok(places.into_iter().collect())
    }
}

/// Whether `name` can be a stage's, and so that of a folder that never leads out of the output folder.
pub(super) fn is_name(name: &str) -> bool {
    let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_' | b'.');
    name.starts_with(|c: char| c.is_ascii_lowercase()) && name.bytes().all(fits)
}

fn places(stages: &[Box<dyn Stage>]) -> Result<BTreeMap<String, usize>, Error> {
    let mut places = BTreeMap::new();
    for (place, stage) in stages.iter().enumerate() {
        let name = stage.name();
        if !is_name(name) {
            let expected = "lower-case letters, digits, `-`, `_` and `.`, beginning with a letter";
            return Err(Error::new(format!("stage name `{name}`: expected {expected}")));
        }
        if places.insert(name.to_owned(), place).is_some() {
            return Err(Error::new(format!("two stages are named `{name}`: rename one")));
        }
    }
    Ok(places)
}

/// The artifacts that a stage reads; checks that no label comes twice.
fn artifacts(stage: &dyn Stage) -> Result<Vec<String>, Error> {
    let mut seen = BTreeSet::new();
    let mut artifacts = Vec::new();
    for input in stage.inputs() {
        let key = match &input {
            Input::File { label, .. } => ("file", label.clone()),
            Input::Artifact(name) => ("artifact", name.clone()),
        };
        if !seen.insert(key.clone()) {
            let (stage, label) = (stage.name(), key.1);
            return Err(Error::new(format!("stage {stage} has two inputs `{label}`: rename one")));
        }
        if let Input::Artifact(name) = input {
            artifacts.push(name);
        }
    }
    Ok(artifacts)
}

/// The names along one cycle; the first stands at the end again.
fn cycle(graph: &Edges, stages: &[Box<dyn Stage>]) -> Vec<String> {
    let loops = |ring: &Vec<NodeIndex>| ring.len() > 1 || graph.contains_edge(ring[0], ring[0]);
    let ring: BTreeSet<_> =
        tarjan_scc(graph).into_iter().find(loops).unwrap_or_default().into_iter().collect();
    let mut path: Vec<NodeIndex> = ring.first().copied().into_iter().collect();
    // Inside a strongly connected part every node has a successor in it, so the walk meets itself.
    while let Some(next) =
        path.last().and_then(|&last| graph.neighbors(last).filter(|n| ring.contains(n)).min())
    {
        let met = path.iter().position(|&node| node == next);
        path.push(next);
        if let Some(start) = met {
            path.drain(..start);
            break;
        }
    }
    path.iter().map(|node| stages[node.index()].name().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::{Fake, stage};

    fn graph(stages: impl IntoIterator<Item = Fake>) -> Result<Graph, Error> {
        Graph::new(stages.into_iter().map(|stage| Box::new(stage) as Box<dyn Stage>).collect())
    }

    #[test]
    fn a_cycle_is_named_along_its_way() {
        let stages =
            [stage("in"), stage("a").reads("in").reads("c"), stage("b").reads("a"), stage("c").reads("b")];
        let error = graph(stages).err().unwrap().to_string();
        assert!(error.contains("a -> b -> c -> a"), "{error}");
        let error = graph([stage("self").reads("self")]).err().unwrap().to_string();
        assert!(error.contains("self -> self"), "{error}");
    }

    #[test]
    fn a_misspelt_stage_gets_a_suggestion_and_the_list() {
        let graph = graph([stage("triples"), stage("shards").reads("triples")]).unwrap();
        let error = graph.find("tripels").unwrap_err().to_string();
        assert!(error.contains("did you mean `triples`?") && error.contains("triples, shards"), "{error}");
        assert!(!graph.find("xyz").unwrap_err().to_string().contains("did you mean"));
    }

    #[test]
    fn a_stage_answers_to_its_other_name_where_nobody_has_it() {
        let table = || stage("scores").reads("triples").also("results");
        let one = graph([stage("triples"), table()]).unwrap();
        assert_eq!((one.find("scores").unwrap(), one.find("results").unwrap()), (1, 1));
        let both = graph([stage("triples"), table(), stage("results")]).unwrap();
        assert_eq!((both.find("scores").unwrap(), both.find("results").unwrap()), (1, 2));
    }

    #[test]
    fn of_hundreds_of_stages_an_error_lists_the_first() {
        let error =
            graph((0..300).map(|at| stage(&format!("s{at}")))).unwrap().find("xyz").unwrap_err().to_string();
        assert!(error.ends_with("s39, and 260 more that `engraft status` lists"), "{error}");
    }

    #[test]
    fn an_input_that_nobody_makes_is_an_error_that_names_the_reader() {
        let error = graph([stage("shards").reads("triples")]).err().unwrap().to_string();
        assert!(error.starts_with("stage shards reads `triples`"), "{error}");
    }

    #[test]
    fn stages_are_sorted_and_goals_bring_what_they_need() {
        let graph = graph([stage("c").reads("b"), stage("b").reads("a"), stage("a"), stage("d")]).unwrap();
        let names =
            |places: Vec<usize>| places.iter().map(|&p| graph.stage(p).name().to_owned()).collect::<Vec<_>>();
        let order = graph.names();
        let at = |name| order.iter().position(|other| other == name).unwrap();
        assert!(at("a") < at("b") && at("b") < at("c"), "{order:?}");
        assert_eq!(names(graph.needed(&["b".to_owned()]).unwrap()), ["a", "b"]);
        assert_eq!(graph.needed(&[]).unwrap().len(), 4);
    }

    #[test]
    fn names_must_be_new_and_fit_a_folder() {
        let error = |stages: Vec<Fake>| graph(stages).err().unwrap().to_string();
        assert!(error(vec![stage("a"), stage("a")]).starts_with("two stages are named `a`"));
        assert!(error(vec![stage("../a")]).starts_with("stage name `../a`: expected"));
        assert!(error(vec![stage("")]).starts_with("stage name ``: expected"));
        let twice = error(vec![stage("a"), stage("b").reads("a").reads("a")]);
        assert!(twice.starts_with("stage b has two inputs `a`"), "{twice}");
    }
}
