from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal, Protocol, Self

import numpy as np

Schedule = Literal["kimera", "merged", "proportional"] | dict[str, float] | dict[str, str]
Batch = dict[str, np.ndarray]
"""`input_ids`, `attention_mask` and `token_type_ids` are int32 `[rows, width]`; `labels` are int64, one for each position (-100: not asked)
or one class for each sample. Packed rows also have `position_ids` and `segment_ids`, int32 `[rows, width]`, and `samples`, int64
`[samples, 3]`: row, first position and length of each."""

class ArrowStream(Protocol):
    """A column or table of pyarrow, polars, DuckDB or another library that speaks the Arrow PyCapsule Interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class ArrowArray(Protocol):
    """The same for what is one array or one batch."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

Texts = Sequence[str | None] | ArrowStream | ArrowArray
"""A list or tuple of strings, a column of them (string, large_string, string_view or a dictionary of these; chunked, sliced, with nulls), or a table, of which
`column` names the column that has the texts, unless it is the only one."""

__version__: str

class Batches:
    """Record batches in Arrow's memory, which other libraries read in place, any number of times: `pyarrow.table(batches)`,
    `pyarrow.RecordBatchReader.from_stream(batches)`, `polars.DataFrame(batches)`, `duckdb.sql("from batches")`. No column is unsigned."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...
    def __len__(self) -> int:
        """Rows of all batches."""
    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
    @property
    def report(self) -> dict[str, Any] | None:
        """What became of the input; None where all of it was taken."""

def word_counts(
    texts: Texts, *, case: Literal["uncased", "cased"] = "uncased", column: str | None = None
) -> Batches:
    """How often each word occurs: `word` (string) and `occurrences` (int64), the most frequent first. Counts are additive: those of parts, summed by
    word, are those of the whole.

    >>> engraft.word_counts(["Fever and pain.", "No fever"])
    <engraft.Batches of 5 rows: word, occurrences>
    """

def triples(
    sources: str | dict[str, Any],
    *,
    canon: dict[str, Any] | None = None,
    **options: Any,
) -> Batches:
    """Publishers' files of medical knowledge graphs as one canonical graph: a row for each triple, with its `origins`. Sources and options have the names
    of a config (docs/config.md, `[sources]`).

    >>> engraft.triples("hsdn", path="hsdn/Combined-Input.tsv", min_tfidf=3.5)
    >>> engraft.triples({"hsdn": {"path": "a.tsv"}, "rotmensch": {"path": "b.csv"}}, canon={"self_loops": "keep"})
    """

class Tokenizer:
    """A vocabulary that turns texts into token ids, as shards are encoded: `vocab.txt`, `tokenizer.json`, or a folder that has one."""

    def __init__(
        self, vocabulary: str | PathLike[str], *, case: Literal["uncased", "cased"] | None = None
    ) -> None: ...
    def encode(
        self,
        texts: Texts,
        *,
        max_tokens: int | None = None,
        offsets: Literal["characters", "bytes", "both"] | None = "characters",
        column: str | None = None,
        first_row: int = 0,
    ) -> Batches:
        """A row for each text: `row` (int64, from `first_row`), `input_ids` (list of int32, no special tokens), and where each token begins and
        ends: `starts` and `ends` in characters, `byte_starts` and `byte_ends` in bytes of UTF-8. A null text has null lists."""
    def __len__(self) -> int:
        """Number of entries."""
    def token(self, id: int) -> str | None:
        """The entry of a token id."""
    @property
    def special(self) -> list[int]:
        """Ids of the special tokens: padding, unknown, [CLS], [SEP], [MASK]."""

class Tagger:
    """The names of a graph's entities, which `tag` finds in texts. `triples` is the folder of the stage `triples`; arguments are those of `[tag]` of a
    config, filters of `tag.dictionary` by themselves."""

    def __init__(
        self,
        triples: str | PathLike[str],
        *,
        min_letters: int = 3,
        max_words: int = 12,
        numbers: Literal["keep", "drop"] = "drop",
        stop_words: Literal["english", "none"] = "english",
        common_words: Sequence[str] = ...,
        ambiguous: Literal["keep"] | dict[Literal["drop", "first"], int] = "keep",
        types: Literal["all"] | dict[Literal["only", "all_but"], list[str]] = "all",
        plurals: Literal["as_written", "both"] = "both",
        inverted: Literal["as_written", "both"] = "both",
        possessives: Literal["keep", "drop"] = "drop",
        upper_case: int = 4,
        near: dict[Literal["threshold", "min_letters", "max_words"], float] | None = None,
        abbreviations: Literal["defined", "plain"] = "defined",
        candidates: int = 10,
        context: Literal["english", "none"] | str | PathLike[str] = "english",
    ) -> None: ...
    def tag(self, texts: Texts, *, column: str | None = None, first_row: int = 0) -> Batches:
        """The mentions, in order and without overlaps: `row` (int64), `mention` (int32, from 0 in each text), `candidate` (int32, 0 for the most likely entity),
        `start` and `end` (int32, characters), `byte_start` and `byte_end` (int32), `text`, `how`, `entity` (key), `name`, `types` (list of struct of `code`
        and `name`), `score` (float32), `negated`, `uncertain`, `historical`, `hypothetical`, `other_person` (bool). A mention that may name several entities
        has a row for each, with the same `mention`."""
    def __len__(self) -> int:
        """Number of terms that are looked for."""
    @property
    def report(self) -> dict[str, Any]:
        """What became of the graph's terms, and why some are not looked for."""

class Maps:
    """Makes the samples that the stage `maps` makes: token ids, their words, and which words are a mention, a phrase, or related. `triples`, `counts` and `pmi`
    are the folders of these stages, as far as the settings need them; settings are those of `maps` of a config."""

    def __init__(
        self,
        vocabulary: str | PathLike[str],
        triples: str | PathLike[str] | None = None,
        counts: str | PathLike[str] | None = None,
        pmi: str | PathLike[str] | None = None,
        *,
        case: Literal["uncased", "cased"] | None = None,
        unit: Literal["sentence", "document"] = "sentence",
        limits: dict[Literal["tokens", "terms", "auxiliary"], int] = ...,
        entities: Literal["none"] | dict[Literal["dictionary"], dict[str, Any]] = ...,
        phrases: Literal["none"] | dict[Literal["neighbours"], dict[str, Any]] = ...,
        terms: Literal["none", "relevance"] = "relevance",
        graph: Literal["none", "adjacent"] = "none",
    ) -> None: ...
    def make(self, texts: Texts, *, column: str | None = None, first_row: int = 0) -> Batches:
        """A row for each sentence, or text, that has a word: `row` (int64, the text), `chunk` (int64, from 0 in each text), `real`, `auxiliary` (int32), `cut` (int64),
        and lists: `input_ids` (int32), `token_type_ids` (int8), `words`, `entities`, `phrases`, `types`, `term_first`, `term_second` (int32), `relevance`
        (float32), `graph_first`, `graph_second` (int32). docs/formats.md has what they mean."""

class Negatives:
    """Draws negatives of triples, none of which a triple of the graph in the folder `triples` states."""

    def __init__(
        self,
        triples: str | PathLike[str],
        *,
        per: int = 1,
        seed: int = 0,
        sampler: Literal["uniform", "bernoulli", "typed_by_type", "typed_by_range"] = "uniform",
        slots: Sequence[Literal["subject", "relation", "object"]] = ("subject", "relation", "object"),
        same: Literal["ids", "texts"] = "texts",
        max_draws: int = 1000,
    ) -> None: ...
    def draw(self, rows: ArrowStream | ArrowArray, *, epoch: int = 0, first_row: int = 0) -> Batches:
        """`per` negatives of each row of a table with `subject`, `relation` and `object`, keys or ids: `row` (int64), the three as keys, their names
        (`subject_text` ...), and which was `replaced`. A function of the triple, the seed, the row's number and the epoch."""

class Stream:
    """The batches of each step of a shard folder, in an order that is a function of the shards, the settings and the seed alone."""

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        part: Literal["train", "valid", "test"] = "train",
        schedule: Schedule = "kimera",
        items: int | None = 32,
        pool: int | None = None,
        tokens: int | None = None,
        window: int | None = 16,
        pack: int | None = None,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
        negatives: Literal["fresh", "stored"] | None = None,
        graph: str | PathLike[str] | None = None,
        windows_ahead: int = 1,
        threads: int = 1,
        steps_ahead: int = 2,
        cache: str | PathLike[str] | None = None,
    ) -> None: ...
    def __iter__(self) -> Self:
        """The stream itself, which goes on where it stands."""
    def __next__(self) -> dict[str, Batch]:
        """The batches of the next step, by task. Ends with the epoch; the next loop shows the next one."""
    def __len__(self) -> int:
        """Steps of an epoch; a TypeError with a token budget, where only reading tells."""
    def state_dict(self) -> dict[str, Any]:
        """Where the stream stands, which JSON holds: the same on all ranks, and good for any number of them."""
    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes to where `state` was taken, on this or another number of ranks."""
    def seek(self, epoch: int) -> None:
        """Goes to the beginning of an epoch, from 0."""
    def take_turns(self, worker: int, workers: int, begin: int | None = None) -> None:
        """Takes every `workers`-th step from `begin` on (None: from the present one), the first being `worker` steps away."""
    @property
    def epoch(self) -> int:
        """The epoch that the next step is of, from 0."""
    @property
    def step(self) -> int:
        """Steps taken in all epochs."""
    @property
    def tasks(self) -> list[str]:
        """The tasks that are shown."""
    @property
    def relations(self) -> list[str]:
        """What the classes of task `relation` are called, by number."""
    @property
    def tags(self) -> list[str]:
        """What the classes of task `tagging` are called, by number."""
    @property
    def vocabulary_size(self) -> int:
        """Entries of the vocabulary that token ids belong to."""
