//! Tables of the page.

use std::fmt::Write as _;

use kg::certificate::direction::Statements;
use kg::certificate::signature::TypePair;
use kg::certificate::{Certificate, OfRelation, Verdict};
use kg::graph::Summary;
use kg::graph::hub::Hub;
use serde_json::Value;

use super::number::{percent, thousands};
use super::svg::escape;

/// Pairs of types that are shown of a signature.
const PAIRS: usize = 3;

/// A column: its title, and whether it holds numbers (`n`) or words (`w`).
type Column = (&'static str, char);

/// A row: its cells, and what stands below them over the whole width; markup already.
struct Row {
    cells: Vec<String>,
    below: Option<String>,
}

fn table(columns: &[Column], rows: impl Iterator<Item = Vec<String>>) -> String {
    tall(columns, rows.map(|cells| Row { cells, below: None }))
}

fn tall(columns: &[Column], rows: impl Iterator<Item = Row>) -> String {
    let mut html = "<div class=\"wide\" tabindex=\"0\"><table><thead><tr>".to_owned();
    for (title, kind) in columns {
        let _ = write!(html, "<th scope=\"col\" class=\"{kind}\">{}</th>", escape(title));
    }
    html.push_str("</tr></thead><tbody>");
    for row in rows {
        html.push_str(if row.below.is_some() { "<tr class=\"over\">" } else { "<tr>" });
        for (cell, (_, kind)) in row.cells.iter().zip(columns) {
            let _ = write!(html, "<td class=\"{kind}\">{cell}</td>");
        }
        html.push_str("</tr>\n");
        if let Some(below) = row.below {
            let _ = writeln!(
                html,
                "<tr><td class=\"below\" colspan=\"{}\"><div>{below}</div></td></tr>",
                columns.len()
            );
        }
    }
    html.push_str("</tbody></table></div>\n");
    html
}

/// Every relation with its evidence and verdict: what is suspicious first, then the largest.
#[must_use]
pub fn directions(certificate: &Certificate) -> String {
    let mut relations: Vec<&OfRelation> = certificate.relations.iter().collect();
    relations.sort_by_key(|of| (of.verdict != Verdict::Suspicious, u64::MAX - of.cardinality.triples));
    let columns = [
        ("Relation", 'w'),
        ("Verdict", 'w'),
        ("Triples", 'n'),
        ("Stated", 'n'),
        ("Inverse", 'n'),
        ("Both", 'n'),
        ("Contradicted", 'n'),
        ("Reversed", 'n'),
        ("Rare", 'n'),
        ("Loops", 'n'),
        ("Joins", 'w'),
    ];
    tall(&columns, relations.into_iter().map(direction))
}

fn direction(of: &OfRelation) -> Row {
    let Statements { stated, inverse, both } = of.statements;
    let numbers = [
        of.cardinality.triples,
        stated,
        inverse,
        both,
        of.contradicted,
        of.types.reversed,
        of.types.rare,
        of.self_loops,
    ];
    let mut cells = vec![
        format!("<code>{}</code>", escape(&of.relation)),
        format!("<span class=\"verdict {0}\">{0}</span>", of.verdict.name()),
    ];
    cells.extend(numbers.map(thousands));
    cells.push(of.cardinality.kind.name().to_owned());
    let mut below = format!("{}. ", escape(&capital(&of.reason)));
    if let Some(inverse) = &of.inverse {
        let _ = write!(below, "Inverse: <code>{}</code>. ", escape(inverse));
    }
    below.push_str(&signature(&of.signature));
    Row { cells, below: Some(below) }
}

fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn signature(pairs: &[TypePair]) -> String {
    let pair = |pair: &TypePair| {
        format!("<b>{} → {}</b> {}", escape(&pair.subject), escape(&pair.object), percent(pair.share))
    };
    let shown: Vec<String> = pairs.iter().take(PAIRS).map(pair).collect();
    match pairs.len() {
        0 => "No signature.".to_owned(),
        n if n > PAIRS => format!("Signature: {}; and {} more.", shown.join("; "), n - PAIRS),
        _ => format!("Signature: {}.", shown.join("; ")),
    }
}

/// Some triples that run against their relation.
#[must_use]
pub fn violations(certificate: &Certificate) -> String {
    let columns = [("Relation", 'w'), ("Kind", 'w'), ("Subject", 'w'), ("Object", 'w'), ("Row", 'n')];
    let mut rows = Vec::new();
    for of in &certificate.relations {
        for (kind, examples) in &of.examples {
            for example in examples {
                rows.push(vec![
                    format!("<code>{}</code>", escape(&of.relation)),
                    kind.name().replace('_', " "),
                    escape(&example.subject),
                    escape(&example.object),
                    thousands(example.triple.into()),
                ]);
            }
        }
    }
    if rows.is_empty() { String::new() } else { table(&columns, rows.into_iter()) }
}

/// What each relation joins.
#[must_use]
pub fn cardinalities(summary: &Summary) -> String {
    let columns = [
        ("Relation", 'w'),
        ("Triples", 'n'),
        ("Subjects", 'n'),
        ("Objects", 'n'),
        ("Objects per subject", 'n'),
        ("Subjects per object", 'n'),
        ("Joins", 'w'),
    ];
    let row = |of: &kg::graph::summary::OfRelation| {
        let joined = &of.cardinality;
        vec![
            format!("<code>{}</code>", escape(&of.relation)),
            thousands(joined.triples),
            thousands(joined.subjects),
            thousands(joined.objects),
            format!("{:.2}", joined.objects_per_subject),
            format!("{:.2}", joined.subjects_per_object),
            joined.kind.name().to_owned(),
        ]
    };
    table(&columns, summary.cardinalities.iter().map(row))
}

/// Entities that stand out.
#[must_use]
pub fn hubs(hubs: &[Hub]) -> String {
    let columns = [
        ("", 'n'),
        ("Entity", 'w'),
        ("Type", 'w'),
        ("Triples", 'n'),
        ("as subject", 'n'),
        ("as object", 'n'),
        ("PageRank", 'n'),
    ];
    let row = |(place, hub): (usize, &Hub)| {
        vec![
            (place + 1).to_string(),
            format!("{}<br><code class=\"soft\">{}</code>", escape(&hub.text), escape(&hub.key)),
            escape(&hub.types),
            thousands(u64::from(hub.outgoing) + u64::from(hub.incoming)),
            thousands(hub.outgoing.into()),
            thousands(hub.incoming.into()),
            format!("{:.6}", hub.rank),
        ]
    };
    table(&columns, hubs.iter().enumerate().map(row))
}

/// What is in one source only.
#[must_use]
pub fn sources(summary: &Summary) -> String {
    let columns = [
        ("Source", 'w'),
        ("Triples", 'n'),
        ("only here", 'n'),
        ("Entities", 'n'),
        ("only here", 'n'),
        ("Relations", 'n'),
        ("only here", 'n'),
    ];
    let found = &summary.overlap;
    let row = |(place, name): (usize, &String)| {
        let mut row = vec![escape(name)];
        for shared in [&found.triples, &found.entities, &found.relations] {
            for counts in [&shared.total, &shared.exclusive] {
                row.push(thousands(counts.get(place).copied().unwrap_or(0)));
            }
        }
        row
    };
    table(&columns, found.sources.iter().enumerate().map(row))
}

/// Triples by part of the split; nothing if the report has none.
#[must_use]
pub fn split(split: &Value) -> String {
    let columns = [("Part", 'w'), ("Triples", 'n'), ("Share", 'n')];
    let Some(parts) = split.get("triples").and_then(Value::as_object) else { return String::new() };
    let counts: Vec<(&str, u64)> =
        parts.iter().filter_map(|(name, count)| Some((name.as_str(), count.as_u64()?))).collect();
    let all: u64 = counts.iter().map(|(_, count)| count).sum();
    let row = |&(name, count): &(&str, u64)| {
        vec![escape(name), thousands(count), percent(kg::graph::distribution::share(count, all))]
    };
    table(&columns, counts.iter().map(row))
}

/// What the audit of the split found, and what the split moved or could not show.
#[must_use]
pub fn leaks(audit: &Value, split: &Value) -> String {
    let number = |value: Option<&Value>| value.and_then(Value::as_u64).unwrap_or_default();
    let leaks = number(audit.get("leaks"));
    let would: Vec<(&str, u64)> =
        (audit.pointer("/suspected/would_leak").and_then(Value::as_object).into_iter())
            .flatten()
            .map(|(part, would)| (part.as_str(), number(Some(would))))
            .collect();
    let (class, word) = match leaks {
        0 if would.is_empty() => ("proven", "no leak".to_owned()),
        0 => ("suspicious", "no leak by relations that are declared".to_owned()),
        some => ("suspicious", thousands(some) + " leaks"),
    };
    let kinds = audit.get("kinds").and_then(Value::as_object).into_iter().flatten();
    let mut notes: Vec<String> = kinds
        .flat_map(|(between, kinds)| {
            let kinds = kinds.as_object().into_iter().flatten();
            kinds.map(move |(kind, leaks)| format!("{between} {kind}: {}.", thousands(number(Some(leaks)))))
        })
        .collect();
    notes.extend(would.iter().map(|(part, would)| {
        format!(
            "{} of {part} would leak if relations are inverse or symmetric that look so.",
            thousands(*would)
        )
    }));
    for (place, what) in [
        ("/moved_triples", "triples moved to train, so that it shows what is held out."),
        ("/stated_twice", "triples are stated in two parts and count for the most held-out one."),
        ("/uncovered/triples", "held-out triples name what training never shows."),
    ] {
        let found = number(split.pointer(place));
        if found > 0 {
            notes.push(format!("{} {what}", thousands(found)));
        }
    }
    format!("<p><span class=\"verdict {class}\">{word}</span> {}</p>\n", escape(&notes.join(" ")))
}
