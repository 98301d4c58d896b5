//! Tables of the page.

use kg::certificate::direction::Statements;
use kg::certificate::signature::TypePair;
use kg::certificate::{Certificate, OfRelation, Verdict};
use kg::graph::Summary;
use kg::graph::hub::Hub;
use maud::{Markup, html};
use serde_json::Value;

use super::number::{percent, thousands};
use super::table::{Column, Row, plain, table, text};

/// Pairs of types that are shown of a signature.
const PAIRS: usize = 3;

/// Columns of relations with their evidence.
const DIRECTIONS: [Column; 11] = [
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

/// Every relation with its evidence and verdict: what is suspicious first, then the largest.
#[must_use]
pub fn directions(certificate: &Certificate) -> Markup {
    let mut relations: Vec<&OfRelation> = certificate.relations.iter().collect();
    relations.sort_by_key(|of| (of.verdict != Verdict::Suspicious, u64::MAX - of.cardinality.triples));
    table(&DIRECTIONS, relations.into_iter().map(direction))
}

/// The suspicious relations with their evidence, the largest first; none if there is none.
#[must_use]
pub fn suspicious(certificate: &Certificate) -> Option<Markup> {
    let of = certificate.relations.iter().filter(|of| of.verdict == Verdict::Suspicious);
    let mut relations: Vec<&OfRelation> = of.collect();
    relations.sort_by_key(|of| u64::MAX - of.cardinality.triples);
    (!relations.is_empty()).then(|| table(&DIRECTIONS, relations.into_iter().map(direction)))
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
    let verdict = of.verdict.name();
    let mut cells = vec![code(&of.relation), html! { span.verdict.(verdict) { (verdict) } }];
    cells.extend(numbers.map(|number| plain(thousands(number))));
    cells.push(plain(of.cardinality.kind.name()));
    let below = html! {
        (text(&capital(&of.reason))) ". "
        @if let Some(inverse) = &of.inverse { "Inverse: " (code(inverse)) ". " }
        (signature(&of.signature))
    };
    Row { cells, below: Some(below) }
}

fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn code(name: &str) -> Markup {
    html! { code { (text(name)) } }
}

fn signature(pairs: &[TypePair]) -> Markup {
    let (shown, more) = (pairs.len().min(PAIRS), pairs.len().saturating_sub(PAIRS));
    html! {
        @if shown == 0 { "No signature." } @else { "Signature: " }
        @for (place, pair) in pairs[..shown].iter().enumerate() {
            @if place > 0 { "; " }
            b { (text(&pair.subject)) " → " (text(&pair.object)) } " " (percent(pair.share))
        }
        @if more > 0 { "; and " (more) " more." } @else if shown > 0 { "." }
    }
}

/// Some triples that run against their relation, if there are any.
#[must_use]
pub fn violations(certificate: &Certificate) -> Option<Markup> {
    let columns = [("Relation", 'w'), ("Kind", 'w'), ("Subject", 'w'), ("Object", 'w'), ("Row", 'n')];
    let mut rows = Vec::new();
    for of in &certificate.relations {
        for (kind, examples) in &of.examples {
            for example in examples {
                rows.push(vec![
                    code(&of.relation),
                    plain(kind.name().replace('_', " ")),
                    text(&example.subject),
                    text(&example.object),
                    plain(thousands(example.triple.into())),
                ]);
            }
        }
    }
    (!rows.is_empty()).then(|| table(&columns, rows.into_iter()))
}

/// What each relation joins.
#[must_use]
pub fn cardinalities(summary: &Summary) -> Markup {
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
            code(&of.relation),
            plain(thousands(joined.triples)),
            plain(thousands(joined.subjects)),
            plain(thousands(joined.objects)),
            plain(format!("{:.2}", joined.objects_per_subject)),
            plain(format!("{:.2}", joined.subjects_per_object)),
            plain(joined.kind.name()),
        ]
    };
    table(&columns, summary.cardinalities.iter().map(row))
}

/// Entities that stand out.
#[must_use]
pub fn hubs(hubs: &[Hub]) -> Markup {
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
            plain(place + 1),
            html! { (text(&hub.text)) br; code.soft { (text(&hub.key)) } },
            text(&hub.types),
            plain(thousands(u64::from(hub.outgoing) + u64::from(hub.incoming))),
            plain(thousands(hub.outgoing.into())),
            plain(thousands(hub.incoming.into())),
            plain(format!("{:.6}", hub.rank)),
        ]
    };
    table(&columns, hubs.iter().enumerate().map(row))
}

/// What is in one source only.
#[must_use]
pub fn sources(summary: &Summary) -> Markup {
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
        let mut row = vec![text(name)];
        for shared in [&found.triples, &found.entities, &found.relations] {
            for counts in [&shared.total, &shared.exclusive] {
                row.push(plain(thousands(counts.get(place).copied().unwrap_or(0))));
            }
        }
        row
    };
    table(&columns, found.sources.iter().enumerate().map(row))
}

/// Triples by part of the split; nothing if the report has none.
#[must_use]
pub fn split(split: &Value) -> Markup {
    let columns = [("Part", 'w'), ("Triples", 'n'), ("Share", 'n')];
    let Some(parts) = split.get("triples").and_then(Value::as_object) else { return Markup::default() };
    let counts: Vec<(&str, u64)> =
        parts.iter().filter_map(|(name, count)| Some((name.as_str(), count.as_u64()?))).collect();
    let all: u64 = counts.iter().map(|(_, count)| count).sum();
    let row = |&(name, count): &(&str, u64)| {
        let share = kg::graph::distribution::share(count, all);
        vec![text(name), plain(thousands(count)), plain(percent(share))]
    };
    table(&columns, counts.iter().map(row))
}

/// What the audit of the split found, and what the split moved or could not show.
#[must_use]
pub fn leaks(audit: &Value, split: &Value) -> Markup {
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
    html! { p { span.verdict.(class) { (word) } " " (text(&notes.join(" "))) } "\n" }
}
