//! The page: plots and tables in sections, in one file.

use kg::certificate::Verdict;
use maud::html;

use super::draft::{Draft, Page};
use super::number::{percent, thousands};
use super::{Input, funnel, plots, tables};

/// The page of `input`; equal inputs give equal bytes.
#[must_use]
pub fn page(input: &Input<'_>) -> Page {
    let mut draft = Draft::new();
    draft.link("../index.html", "Overview of the folder");
    graph(input, &mut draft);
    draft.finish(input.title, &tiles(input), "")
}

/// The sections about a graph, what matters most first.
pub(super) fn graph(input: &Input<'_>, draft: &mut Draft) {
    rows(input, draft);
    directions(input, draft);
    shape(input, draft);
    texts(input, draft);
    sources(input, draft);
}

pub(super) fn tiles(input: &Input<'_>) -> Vec<(&'static str, String)> {
    let summary = input.summary;
    let mut tiles = vec![
        ("triples", thousands(summary.triples)),
        ("entities", thousands(summary.entities)),
        ("relations", thousands(summary.relations)),
        ("sources", thousands(summary.overlap.sources.len() as u64)),
        ("in the largest component", percent(summary.components.largest_share)),
    ];
    if let Some(certificate) = input.certificate {
        let suspicious = certificate.verdicts.get(&Verdict::Suspicious).copied().unwrap_or(0);
        tiles.push(("suspicious relations", thousands(suspicious)));
    }
    if let Some(lengths) = &summary.lengths {
        tiles.push(("triples with a cut text", percent(lengths.triples_cut_share)));
    }
    tiles
}

/// What a reader wants to know first, and where the rest is.
pub(super) fn graph_in_short(input: &Input<'_>, draft: &mut Draft) {
    rows(input, draft);
    if let Some(certificate) = input.certificate {
        draft.section(
            "directions",
            "Directions",
            "Whether the triples of each relation point the way they say.",
        );
        verdicts(certificate, draft);
        match tables::suspicious(certificate) {
            Some(table) => draft.put(table),
            None => draft.put(html! { p { "No relation is suspicious." } "\n" }),
        }
        draft.put(
            html! { p { a href="report/index.html#directions" { "Every relation with its evidence" } } "\n" },
        );
    }
    let summary = input.summary;
    draft.section("shape", "Shape", "How large relations are, and how triples are spread over entities.");
    draft.plots(vec![plots::relations(summary), plots::types(summary), plots::degrees(summary)]);
    draft.put(html! { p { a href="report/index.html#shape" { "Distances, components, hubs, what relations join" } } "\n" });
    texts(input, draft);
}

fn verdicts(certificate: &kg::certificate::Certificate, draft: &mut Draft) {
    let count = |verdict| certificate.verdicts.get(&verdict).copied().unwrap_or(0);
    let all = [Verdict::Proven, Verdict::Suspicious, Verdict::Unproven, Verdict::Untyped, Verdict::Symmetric];
    draft.put(html! {
        p {
            @for verdict in all {
                span.verdict.(verdict.name()) { (thousands(count(verdict))) " " (verdict.name()) } " "
            }
        }
        "\n"
    });
}

fn rows(input: &Input<'_>, draft: &mut Draft) {
    let lead = "What every source gave, and what was dropped on the way.";
    draft.section("funnel", "From rows to triples", lead);
    if let Some(found) = input.funnel {
        draft.plots(funnel::plot(found).into_iter().collect());
        draft.put(funnel::files(found));
    }
    if let Some(split) = input.split {
        draft.heading("Split");
        draft.put(tables::split(split));
        if let Some(audit) = input.audit {
            draft.put(tables::leaks(audit, split));
        }
    }
}

fn sources(input: &Input<'_>, draft: &mut Draft) {
    draft.section("sources", "Sources", "What sources have in common, and under which licence levels.");
    draft.put(tables::sources(input.summary));
    draft.heading("Overlap");
    draft.plots(plots::overlap(input.summary));
    if let Some(levels) = plots::levels(input.summary) {
        draft.heading("Licence");
        draft.plots(vec![levels]);
    }
}

fn directions(input: &Input<'_>, draft: &mut Draft) {
    let Some(certificate) = input.certificate else { return };
    let lead = "Whether the triples of each relation point the way they say. Stated, inverse and both count statements: one for each origin of each triple. Contradicted are pairs of a triple and its exchange; reversed are triples whose types fit the signature only the other way round, rare ones fit it neither way.";
    draft.section("directions", "Directions", lead);
    verdicts(certificate, draft);
    draft.put(tables::directions(certificate));
    if let Some(examples) = tables::violations(certificate) {
        draft.heading("Some triples that break the direction");
        draft.put(examples);
    }
}

fn shape(input: &Input<'_>, draft: &mut Draft) {
    let summary = input.summary;
    let lead =
        "How large relations are, how triples are spread over entities, and how entities hang together.";
    draft.section("shape", "Shape", lead);
    let plots = vec![
        plots::relations(summary),
        plots::types(summary),
        plots::degrees(summary),
        plots::distances(summary),
        plots::components(summary),
    ];
    draft.plots(plots);
    draft.heading("What relations join");
    draft.put(tables::cardinalities(summary));
    draft.heading("Entities with most triples");
    draft.put(tables::hubs(&summary.hubs));
    draft.heading("Entities of highest PageRank");
    draft.put(tables::hubs(&summary.rank.top));
}

fn texts(input: &Input<'_>, draft: &mut Draft) {
    let Some(lengths) = &input.summary.lengths else { return };
    let lead = format!(
        "Tokens of names before cutting. At {} tokens for an entity and {} for a relation, {} triples ({}) have a text that is cut.",
        lengths.entities.limit,
        lengths.relations.limit,
        thousands(lengths.triples_cut),
        percent(lengths.triples_cut_share)
    );
    draft.section("texts", "Texts", &lead);
    draft.plots(plots::lengths(input.summary));
}

#[cfg(test)]
mod tests {
    use kg::canon::Policy;
    use kg::certificate::{Options, certify};
    use kg::graph::length::Lengths;
    use kg::graph::{distance, rank, summarize};
    use kg::table::{Builder, Graph, Origin, SemanticType};
    use quick_xml::events::Event;
    use serde_json::json;

    use super::*;

    const HOSTILE: &str = "<script>alert('x')</script> & \"more\"";

    fn graph() -> Graph {
        let mut builder = Builder::new();
        let (source, vocabulary, weight, count) = ("s & t".to_owned(), None, None, None);
        let origin = builder.origin(Origin { source, vocabulary, weight, count, level: Some(2) });
        let relation = builder.relation("s & t", "<r>", "r");
        let drugs: Vec<_> = (0..40)
            .map(|i| {
                let drug = builder.entity("s & t", &format!("drug{i}"), HOSTILE);
                builder.add_type(drug, SemanticType { code: None, name: "<drug>".to_owned() });
                drug
            })
            .collect();
        let disease = builder.entity("s & t", "disease", "disease");
        builder.add_type(disease, SemanticType { code: None, name: "Disease".to_owned() });
        for &drug in &drugs[1..] {
            builder.triple(drug, relation, disease, origin).unwrap();
        }
        builder.triple(disease, relation, drugs[0], origin).unwrap();
        kg::canon::merge(builder, &Policy::standard()).unwrap().graph().unwrap()
    }

    fn made(title: &str) -> Page {
        let graph = graph();
        let options = kg::graph::Options {
            hubs: 3,
            rank: rank::Options { damping: 0.85, tolerance: 1e-9, rounds: 100 },
            distance: distance::Options { seed: 1, sample: 10 },
        };
        let entities = vec![120; graph.entities().len()];
        let lengths = Lengths { entities: &entities, relations: &[1], node_tokens: 100, edge_tokens: 10 };
        let summary = summarize(&graph, &options, Some(&lengths)).unwrap();
        let (certificate, _) =
            certify(&graph, &Options { min_share: 0.01, max_reversed: 0.1, examples: 2 }).unwrap();
        let funnel = json!({"read": [{"source": HOSTILE, "triples": {"file": "f", "read": 1, "kept": 1}}]});
        let split = json!({"triples": {"train": 39, "valid": 1}});
        let audit = json!({"leaks": 2, "kinds": {"train-test": {"inverse": 2}}});
        let (certificate, funnel, split) = (Some(&certificate), Some(&funnel), Some(&split));
        page(&Input { title, summary: &summary, certificate, funnel, split, audit: Some(&audit) })
    }

    #[test]
    fn no_text_becomes_markup_and_nothing_comes_from_elsewhere() {
        let page = made(HOSTILE);
        for banned in ["<script", "http://", "https://", "url(", "@import"] {
            assert!(!page.html.contains(banned), "{banned}");
        }
        assert!(page.html.contains("&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &amp; &quot;more&quot;"));
    }

    #[test]
    fn every_plot_is_a_whole_drawing_with_a_name_of_its_own() {
        let page = made("title");
        let mut names: Vec<&str> = page.plots.iter().map(|plot| plot.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), page.plots.len());
        assert!(names.contains(&"degrees") && names.contains(&"funnel") && names.contains(&"entity-tokens"));
        for plot in &page.plots {
            let (file, mut open) = (plot.file(), 0);
            let mut reader = quick_xml::Reader::from_str(&file);
            loop {
                match reader.read_event().unwrap() {
                    Event::Start(_) => open += 1,
                    Event::End(_) => open -= 1,
                    Event::Eof => break,
                    _ => {}
                }
            }
            assert_eq!(open, 0, "{}", plot.name);
            assert!(!file.contains("NaN") && !file.contains("inf"), "{file}");
        }
    }

    #[test]
    fn verdicts_stand_in_words_and_equal_inputs_give_equal_bytes() {
        let page = made("title");
        assert!(page.html.contains("<span class=\"verdict suspicious\">suspicious</span>"));
        assert!(page.html.contains("1 triples (2.5 %) run against the signature"));
        assert!(page.html.contains("<b>&lt;drug&gt; → Disease</b>"));
        assert_eq!(page.html, made("title").html);
    }

    #[test]
    fn an_empty_graph_has_a_page() {
        let graph = kg::canon::merge(Builder::new(), &Policy::standard()).unwrap().graph().unwrap();
        let options = kg::graph::Options {
            hubs: 3,
            rank: rank::Options { damping: 0.85, tolerance: 1e-9, rounds: 100 },
            distance: distance::Options { seed: 1, sample: 10 },
        };
        let summary = summarize(&graph, &options, None).unwrap();
        let input = Input {
            title: "t",
            summary: &summary,
            certificate: None,
            funnel: None,
            split: None,
            audit: None,
        };
        assert!(!page(&input).html.contains("NaN"));
    }
}
