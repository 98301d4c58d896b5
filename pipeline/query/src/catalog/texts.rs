//! The tables of texts: counts, PMI, maps, benchmarks.

use super::Col::{As, Name, Part, Row};
use super::Rows::{Document, Lines, Parquet};
use super::Type::{Float, Int, Ints, Text, Texts};
use super::{Col, Stored, Table, field, text};
use crate::json;

const WORD: Stored = text("counts", "words.parquet", "word");
const PMI_WORD: Stored = text("pmi", "words.parquet", "word");

const PAIR: &[Col] = &[
    Name("left_word", "left", &[WORD]),
    Name("right_word", "right", &[WORD]),
    As("count", "count"),
    As("left_rank", "left"),
    As("right_rank", "right"),
];

pub(super) const TABLES: &[Table] = &[
    Table {
        name: "words",
        stage: "counts",
        file: "words.parquet",
        row: "a word",
        rows: Parquet(&[Row("rank")]),
    },
    Table {
        name: "pairs",
        stage: "counts",
        file: "pairs.parquet",
        row: "two words that occur together",
        rows: Parquet(PAIR),
    },
    Table {
        name: "adjacent",
        stage: "counts",
        file: "adjacent.parquet",
        row: "two words that stand side by side",
        rows: Parquet(PAIR),
    },
    Table {
        name: "pmi_words",
        stage: "pmi",
        file: "words.parquet",
        row: "a word that may have a score",
        rows: Parquet(&[Row("rank")]),
    },
    Table {
        name: "pmi",
        stage: "pmi",
        file: "pairs.parquet",
        row: "two words and how strongly they are associated",
        rows: Parquet(&[
            Name("left_word", "left", &[PMI_WORD]),
            Name("right_word", "right", &[PMI_WORD]),
            As("count", "count"),
            As("score", "score"),
            As("relevance", "relevance"),
            As("score_turned", "score_turned"),
            As("relevance_turned", "relevance_turned"),
            As("left_rank", "left"),
            As("right_rank", "right"),
        ]),
    },
    Table {
        name: "maps",
        stage: "maps",
        file: "*.parquet",
        row: "a text and its maps",
        rows: Parquet(&[Part]),
    },
    Table {
        name: "examples",
        stage: "benchmark-*",
        file: "examples.jsonl",
        row: "an example of a benchmark",
        rows: Lines(
            json::whole,
            &[
                field("benchmark", "@star", Text),
                field("id", "/id", Text),
                field("part", "/part", Text),
                field("text", "/text", Text),
                field("pair", "/pair", Text),
                field("class", "/answer/class", Int),
                field("classes", "/answer/classes", Ints),
                field("score", "/answer/score", Float),
                field("words", "/answer/tags/words", Texts),
                field("tags", "/answer/tags/tags", Ints),
            ],
        ),
    },
    Table {
        name: "classes",
        stage: "benchmark-*",
        file: "index.json",
        row: "a class of a benchmark",
        rows: Document(
            json::classes,
            &[field("benchmark", "@star", Text), field("class", "/0", Int), field("name", "/1", Text)],
        ),
    },
    Table {
        name: "passages",
        stage: "benchmark-*",
        file: "*/passages.jsonl",
        row: "a passage of a retrieval benchmark",
        rows: Lines(
            json::whole,
            &[
                field("benchmark", "@star", Text),
                field("folder", "@folder", Text),
                field("passage", "/passage", Int),
                field("part", "/part", Text),
                field("title", "/title", Text),
                field("text", "/text", Text),
                field("key", "/key", Text),
                field("document", "/document", Text),
            ],
        ),
    },
    Table {
        name: "queries",
        stage: "benchmark-*",
        file: "*/queries.jsonl",
        row: "a query of a retrieval benchmark",
        rows: Lines(
            json::whole,
            &[
                field("benchmark", "@star", Text),
                field("folder", "@folder", Text),
                field("query", "/query", Int),
                field("part", "/part", Text),
                field("entity", "/entity", Text),
                field("aspect", "/aspect", Text),
                field("heading", "/heading", Text),
                field("candidates", "/candidates", Ints),
                field("relevant", "/relevant", Ints),
            ],
        ),
    },
];
