//! Ontologies as OBO Graphs JSON (github.com/geneontology/obographs): the same terms and relations as in OBO format, in other words.
//!
//! | in the graph | as in OBO format |
//! |---|---|
//! | a node of type `CLASS`, or with a label and no type: `id`, `lbl`, `meta.definition` | a `[Term]`: `id` (`http://purl.obolibrary.org/obo/GO_0000001` is `GO:0000001`), `name`, `def` |
//! | `meta.synonyms`, `meta.xrefs`, `meta.deprecated` | `synonym`, `xref`, `is_obsolete` |
//! | `meta.basicPropertyValues` | `namespace`, `alt_id`, `replaced_by`; of a property the name that OBO files call it by |
//! | a node of type `PROPERTY` that is no annotation | a `[Typedef]` |
//! | an edge | `is_a`, `relationship`; between properties `inverse_of` |

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::BufRead;
use std::path::Path;

use base::read::{Location, ReadError};
use serde::Deserialize;

use super::{Header, Kind, Link, OTHER_STANZA, Ontology, RELATED, Scope, Stanza, Synonym};
use crate::source::curie;
use crate::source::files::{Counted, json};

/// What ids of the OBO Foundry begin with.
const PURL: &str = "http://purl.obolibrary.org/obo/";
/// What to do about a file that is no such graph.
const REMEDY: &str = "write the file anew (robot convert --format json)";

#[derive(Debug, Deserialize)]
struct Document {
    graphs: Vec<Graph>,
}

#[derive(Debug, Deserialize)]
struct Graph {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    meta: Meta,
    #[serde(default)]
    nodes: Vec<Node>,
    #[serde(default)]
    edges: Vec<Edge>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    #[serde(default)]
    lbl: Option<String>,
    #[serde(default, rename = "type")]
    kind: Option<String>,
    #[serde(default, rename = "propertyType")]
    property: Option<String>,
    #[serde(default)]
    meta: Meta,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Meta {
    definition: Option<Value>,
    synonyms: Vec<Value>,
    xrefs: Vec<Value>,
    basic_property_values: Vec<Value>,
    deprecated: bool,
}

/// A value, and of what property where that matters.
#[derive(Debug, Deserialize)]
struct Value {
    #[serde(default)]
    pred: String,
    val: String,
    /// What is said of the value itself.
    #[serde(default)]
    meta: Option<serde_json::Value>,
}

impl Value {
    /// Whether a reference says of itself that it is no identity.
    fn is_related(&self) -> bool {
        let about = self.meta.as_ref().map(ToString::to_string).unwrap_or_default();
        RELATED.iter().any(|word| about.contains(word))
    }
}

#[derive(Debug, Deserialize)]
struct Edge {
    sub: String,
    pred: String,
    obj: String,
}

impl Node {
    /// The values of a property, which is known by the end of its IRI.
    fn values<'n>(&'n self, property: &'n str) -> impl Iterator<Item = &'n str> {
        let values = self.meta.basic_property_values.iter();
        values.filter(move |of| of.pred.ends_with(property)).map(|of| of.val.as_str())
    }

    fn is_relation(&self) -> bool {
        self.kind.as_deref() == Some("PROPERTY") && self.property.as_deref() != Some("ANNOTATION")
    }

    fn is_class(&self) -> bool {
        // The format leaves the type to whoever writes it; what is only referred to has no label.
        self.kind.as_deref().map_or(self.lbl.is_some(), |kind| kind == "CLASS")
    }

    /// What OBO format calls a relation.
    fn shorthand(&self) -> String {
        self.values("oboInOwl#shorthand").next().map_or_else(|| compact(&self.id), str::to_owned)
    }
}

/// An IRI as an id with a prefix, where it is one of the OBO Foundry's.
fn compact(iri: &str) -> String {
    match iri.strip_prefix(PURL).and_then(|name| name.rsplit_once('_')) {
        Some((prefix, id)) if !prefix.is_empty() && !id.is_empty() => format!("{prefix}:{id}"),
        _ => iri.to_owned(),
    }
}

/// The ontology of a graph: `go` of `http://purl.obolibrary.org/obo/go.json`.
fn ontology_of(iri: &str) -> String {
    let name = iri.strip_prefix(PURL).unwrap_or(iri);
    let ending = [".json", ".owl", ".obo"].into_iter().find_map(|ending| name.strip_suffix(ending));
    ending.unwrap_or(name).to_owned()
}

/// Nodes that stand there only because another term has taken their id over.
const MERGED: &str = "another_id";

/// Reads a graph's terms and rows into `ontology`; returns the bytes read.
pub(super) fn read<R: BufRead>(
    reader: R,
    label: &Path,
    ontology: &mut Ontology<'_, '_>,
) -> Result<u64, ReadError> {
    let mut counted = Counted::new(reader);
    let document: Document = json(&mut counted, label, "a file of OBO Graphs JSON", REMEDY)?;
    let mut graphs = document.graphs;
    if graphs.len() != 1 {
        let found = format!("the file has {} graphs", graphs.len());
        let remedy = "put them together first (robot merge), or give each as a file";
        return Err(ReadError::new(label, found, "one", remedy));
    }
    let Graph { id, meta, nodes, edges } = graphs.swap_remove(0);
    let namespace = meta.basic_property_values.iter().find(|of| of.pred.ends_with("default-namespace"));
    let namespace = namespace.map(|of| of.val.clone());
    ontology.vocabulary(id.as_deref().map(ontology_of).as_deref());
    let header = Header { is_graph: true, namespace, ..Header::default() };
    Reading::new(label, &nodes).read(nodes, edges, &header, ontology)?;
    Ok(counted.bytes)
}

/// What must be known of all nodes before any is handed on.
struct Reading<'f> {
    label: &'f Path,
    /// What OBO format calls each relation, by its IRI.
    relations: HashMap<String, String>,
    /// Ids that another term has taken over.
    alternative: BTreeSet<String>,
}

impl<'f> Reading<'f> {
    fn new(label: &'f Path, nodes: &[Node]) -> Self {
        let relations = nodes.iter().filter(|node| node.is_relation());
        let relations = relations.map(|node| (node.id.clone(), node.shorthand())).collect();
        let alternative = nodes.iter().flat_map(|node| node.values("oboInOwl#hasAlternativeId"));
        Self { label, relations, alternative: alternative.map(str::to_owned).collect() }
    }

    fn read(
        self,
        nodes: Vec<Node>,
        edges: Vec<Edge>,
        header: &Header,
        ontology: &mut Ontology<'_, '_>,
    ) -> Result<(), ReadError> {
        let mut links: BTreeMap<String, Vec<Link>> = BTreeMap::new();
        let mut inverses: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for edge in edges {
            match (self.relations.get(&edge.sub), self.relations.get(&edge.obj)) {
                (None, _) => {
                    let relation = self.relations.get(&edge.pred).cloned();
                    let relation = relation.unwrap_or_else(|| compact(&edge.pred));
                    let link = Link { relation, object: compact(&edge.obj) };
                    links.entry(compact(&edge.sub)).or_default().push(link);
                }
                (Some(one), Some(other)) if edge.pred == "inverseOf" => {
                    inverses.entry(one.clone()).or_default().push(other.clone());
                }
                // What relations are kinds of is not read in OBO format either.
                (Some(_), _) => {}
            }
        }
        for (at, node) in (1..).zip(nodes) {
            let place = Location::from(format!("{}: node {at}", self.label.display()));
            let id = compact(&node.id);
            let merged = node.meta.deprecated && node.lbl.is_none() && self.alternative.contains(&id);
            if merged {
                ontology.leave_out(MERGED);
            } else if node.is_class() {
                let links = links.remove(&id).unwrap_or_default();
                term(node, id, links, place).give(at, header, ontology)?;
            } else if node.is_relation() {
                let id = node.shorthand();
                let inverses = inverses.remove(&id).unwrap_or_default();
                let of =
                    Stanza { id: Some(id), name: node.lbl, inverses, ..Stanza::new(Kind::Typedef, place) };
                of.give(at, header, ontology)?;
            } else {
                ontology.leave_out(OTHER_STANZA);
            }
        }
        // Rows of what is no class of this file.
        for (subject, links) in links {
            let key = |id: String| curie::split(&id).map_or(id.clone(), curie::Curie::key);
            let links = links.into_iter().map(|link| Link { object: key(link.object), ..link }).collect();
            ontology.links(&key(subject), links);
        }
        Ok(())
    }
}

fn term(node: Node, id: String, links: Vec<Link>, place: Location) -> Stanza {
    let namespace = node.values("oboInOwl#hasOBONamespace").next().map(str::to_owned);
    let alt_ids = node.values("oboInOwl#hasAlternativeId").map(compact).collect();
    let replaced_by = node.values("obo/IAO_0100001").map(compact).collect();
    let scope = |pred: &str| match pred {
        "hasExactSynonym" => Scope::Exact,
        "hasBroadSynonym" => Scope::Broad,
        "hasNarrowSynonym" => Scope::Narrow,
        _ => Scope::Related,
    };
    let synonyms = node.meta.synonyms.into_iter();
    let related = node.meta.xrefs.iter().filter(|xref| xref.is_related()).count() as u64;
    let same = node.meta.xrefs.iter().filter(|xref| !xref.is_related());
    Stanza {
        id: Some(id),
        name: node.lbl,
        definition: node.meta.definition.map(|definition| definition.val),
        namespace,
        synonyms: synonyms.map(|of| Synonym { scope: scope(&of.pred), text: of.val }).collect(),
        // A description may stand behind it.
        xrefs: same.filter_map(|of| of.val.split_whitespace().next().map(str::to_owned)).collect(),
        related,
        alt_ids,
        replaced_by,
        links,
        is_obsolete: node.meta.deprecated,
        ..Stanza::new(Kind::Term, place)
    }
}
