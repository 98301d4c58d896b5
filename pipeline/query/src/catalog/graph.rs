//! The tables of the graph and of what is measured of it, and the shards.

use super::Col::{As, Name, Part, Row};
use super::Rows::{Document, Exploded, Parquet, Words};
use super::Type::{Bool, Float, Int, Text};
use super::{Stored, Table, What, field, text};
use crate::json;

const fn ids(column: &'static str) -> Stored {
    Stored { stage: "triples", file: "triples.parquet", column, what: What::Ids }
}

const ENTITY: Stored = text("triples", "entities.parquet", "text");
const ENTITY_KEY: Stored = text("triples", "entities.parquet", "key");
const RELATION: Stored = text("triples", "relations.parquet", "key");

/// From the row of a triple to its names.
const SUBJECT_OF: &[Stored] = &[ids("subject"), ENTITY];
const RELATION_OF: &[Stored] = &[ids("relation"), RELATION];
const OBJECT_OF: &[Stored] = &[ids("object"), ENTITY];

pub(super) const TABLES: &[Table] = &[
    Table {
        name: "triples",
        stage: "triples",
        file: "triples.parquet",
        row: "a triple",
        rows: Parquet(&[
            Row("triple"),
            Name("subject", "subject", &[ENTITY]),
            Name("relation", "relation", &[RELATION]),
            Name("object", "object", &[ENTITY]),
            Name("subject_key", "subject", &[ENTITY_KEY]),
            Name("object_key", "object", &[ENTITY_KEY]),
            As("subject_id", "subject"),
            As("relation_id", "relation"),
            As("object_id", "object"),
        ]),
    },
    Table {
        name: "origins",
        stage: "triples",
        file: "triples.parquet",
        row: "a source's statement of a triple",
        rows: Exploded(
            "origins",
            &[
                Row("triple"),
                Name("subject", "subject", &[ENTITY]),
                Name("relation", "relation", &[RELATION]),
                Name("object", "object", &[ENTITY]),
                As("subject_id", "subject"),
                As("relation_id", "relation"),
                As("object_id", "object"),
            ],
        ),
    },
    Table {
        name: "entities",
        stage: "triples",
        file: "entities.parquet",
        row: "an entity",
        rows: Parquet(&[]),
    },
    Table {
        name: "relations",
        stage: "triples",
        file: "relations.parquet",
        row: "a relation",
        rows: Parquet(&[]),
    },
    Table {
        name: "terms",
        stage: "triples",
        file: "terms.parquet",
        row: "a name or definition of an entity",
        rows: Parquet(&[
            Name("entity", "entity", &[ENTITY]),
            Name("entity_key", "entity", &[ENTITY_KEY]),
            As("entity_id", "entity"),
        ]),
    },
    Table {
        name: "crosswalk",
        stage: "triples",
        file: "crosswalk.parquet",
        row: "a key that means another, or is ambiguous",
        rows: Parquet(&[
            As("key", "key"),
            As("means", "means"),
            Name("entity", "entity", &[ENTITY]),
            As("entity_id", "entity"),
        ]),
    },
    Table {
        name: "negatives",
        stage: "triples",
        file: "negatives.parquet",
        row: "a triple that its source publishes as false",
        rows: Parquet(&[
            As("subject", "subject_text"),
            As("relation", "relation"),
            As("object", "object_text"),
            As("subject_key", "subject"),
            As("object_key", "object"),
        ]),
    },
    Table {
        name: "retired",
        stage: "triples",
        file: "retired.parquet",
        row: "a key that its source gave up, in no triple, and what took its place",
        rows: Parquet(&[
            As("key", "key"),
            As("means", "means"),
            Name("entity", "entity", &[ENTITY]),
            As("entity_id", "entity"),
        ]),
    },
    Table {
        name: "funnel",
        stage: "triples",
        file: "funnel.json",
        row: "how many rows of a file were read, kept, changed, or dropped for a reason",
        rows: Document(
            json::funnel,
            &[
                field("source", "/source", Text),
                field("file", "/file", Text),
                field("of", "/of", Text),
                field("outcome", "/outcome", Text),
                field("reason", "/reason", Text),
                field("rows", "/rows", Int),
            ],
        ),
    },
    Table {
        name: "split",
        stage: "split",
        file: "split.parquet",
        row: "a triple and its part",
        rows: Parquet(&[
            As("triple", "triple"),
            As("part", "part"),
            As("group_id", "group"),
            Name("subject", "triple", SUBJECT_OF),
            Name("relation", "triple", RELATION_OF),
            Name("object", "triple", OBJECT_OF),
        ]),
    },
    Table {
        name: "leaks",
        stage: "split",
        file: "leaks.parquet",
        row: "a held-out triple that a shown one gives away",
        rows: Parquet(&[
            As("held", "held"),
            As("held_part", "held_part"),
            As("shown_part", "shown_part"),
            As("kind", "kind"),
            As("shown", "shown"),
            As("times", "times"),
            Name("held_subject", "held", SUBJECT_OF),
            Name("held_relation", "held", RELATION_OF),
            Name("held_object", "held", OBJECT_OF),
            Name("shown_subject", "shown", SUBJECT_OF),
            Name("shown_relation", "shown", RELATION_OF),
            Name("shown_object", "shown", OBJECT_OF),
        ]),
    },
    Table {
        name: "ranks",
        stage: "rank",
        file: "ranks.parquet",
        row: "where the subject or object of a held-out triple stands among its candidates",
        rows: Parquet(&[
            As("triple", "triple"),
            As("side", "side"),
            As("rank", "rank"),
            As("candidates", "candidates"),
            As("ties", "ties"),
            As("raw_rank", "raw_rank"),
            As("raw_candidates", "raw_candidates"),
            As("raw_ties", "raw_ties"),
            As("score", "score"),
            As("given_away", "given_away"),
            Name("subject", "triple", SUBJECT_OF),
            Name("relation", "triple", RELATION_OF),
            Name("object", "triple", OBJECT_OF),
        ]),
    },
    Table {
        name: "summary",
        stage: "summary",
        file: "summary.json",
        row: "a measure of the graph",
        rows: Document(json::leaves, &[field("measure", "/0", Text), field("value", "/1", Float)]),
    },
    Table {
        name: "hubs",
        stage: "summary",
        file: "summary.json",
        row: "one of the entities with the most triples",
        rows: Document(
            json::hubs,
            &[
                field("key", "/key", Text),
                field("text", "/text", Text),
                field("types", "/types", Text),
                field("outgoing", "/outgoing", Int),
                field("incoming", "/incoming", Int),
                field("rank", "/rank", Float),
            ],
        ),
    },
    Table {
        name: "certificate",
        stage: "summary",
        file: "certificate.json",
        row: "a relation, and whether its direction is proven",
        rows: Document(
            json::relations,
            &[
                field("relation", "/relation", Text),
                field("verdict", "/verdict", Text),
                field("reason", "/reason", Text),
                field("inverse", "/inverse", Text),
                field("symmetric", "/symmetric", Bool),
                field("kind", "/kind", Text),
                field("triples", "/triples", Int),
                field("subjects", "/subjects", Int),
                field("objects", "/objects", Int),
                field("objects_per_subject", "/objects_per_subject", Float),
                field("subjects_per_object", "/subjects_per_object", Float),
                field("stated", "/statements/stated", Int),
                field("stated_inverse", "/statements/inverse", Int),
                field("stated_both", "/statements/both", Int),
                field("contradicted", "/contradicted", Int),
                field("self_loops", "/self_loops", Int),
                field("oriented", "/types/oriented", Int),
                field("either_way", "/types/either_way", Int),
                field("reversed", "/types/reversed", Int),
                field("rare", "/types/rare", Int),
                field("untyped", "/types/untyped", Int),
            ],
        ),
    },
    Table {
        name: "violations",
        stage: "summary",
        file: "violations.parquet",
        row: "a triple that breaks the direction of its relation",
        rows: Parquet(&[
            As("triple", "triple"),
            Name("subject", "triple", SUBJECT_OF),
            As("relation", "relation"),
            Name("object", "triple", OBJECT_OF),
            As("kind", "kind"),
            As("subject_key", "subject"),
            As("object_key", "object"),
        ]),
    },
    Table { name: "vocabulary", stage: "vocabulary", file: "vocab.txt", row: "a token", rows: Words },
    Table {
        name: "shards",
        stage: "shards",
        file: "index.json",
        row: "a file of shards",
        rows: Document(
            json::shards,
            &[
                field("task", "/task", Text),
                field("part", "/part", Text),
                field("path", "/path", Text),
                field("items", "/items", Int),
                field("rows", "/rows", Int),
                field("bytes", "/bytes", Int),
            ],
        ),
    },
    Table {
        name: "shards_*",
        stage: "shards",
        file: "*/*.parquet",
        row: "a training row of a task",
        rows: Parquet(&[
            Part,
            Name("subject", "triple", SUBJECT_OF),
            Name("relation", "triple", RELATION_OF),
            Name("object", "triple", OBJECT_OF),
        ]),
    },
];
