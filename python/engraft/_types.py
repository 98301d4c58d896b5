"""Types of what is handed in and of what comes of it."""

import os
from typing import Any, Literal, Protocol, TypedDict

import numpy.typing as npt

AnyPath = str | os.PathLike[str]
Case = Literal["uncased", "cased"]
Offsets = Literal["characters", "bytes", "both"]
Slot = Literal["subject", "relation", "object"]
Strings = list[str] | tuple[str, ...]

Batch = dict[str, npt.NDArray[Any]]
"""`input_ids`, `attention_mask` and `token_type_ids` are int32 `[rows, width]`; `labels` are int64, one for each position (-100: not asked)
or one class for each sample. Packed rows also have `position_ids` and `segment_ids`, int32 `[rows, width]`, and `samples`, int64
`[samples, 3]`: row, first position and length of each."""


class ArrowStream(Protocol):
    """A column or table of pyarrow, polars, DuckDB or another library that speaks the Arrow PyCapsule Interface."""

    def __arrow_c_stream__(self) -> object: ...


class ArrowArray(Protocol):
    """The same for what is one array or one batch."""

    def __arrow_c_array__(self) -> tuple[object, object]: ...


Table = ArrowStream | ArrowArray
Texts = list[str] | list[str | None] | tuple[str | None, ...] | ArrowStream | ArrowArray
"""A list or tuple of strings, a column of them (string, large_string, string_view or a dictionary of these; chunked, sliced, with nulls), or a table,
of which `column` names the column that has the texts, unless it is the only one."""


class Temperature(TypedDict):
    """The schedule that samples tasks by their number of batches to the power of 1 / `temperature`."""

    temperature: float


class RoundRobin(TypedDict):
    """The schedule in which tasks take turns."""

    round_robin: Literal["paper", "reference"]


Schedule = Literal["kimera", "merged", "proportional"] | Temperature | RoundRobin


class Filters(TypedDict, total=False):
    """Settings of `tag.dictionary` of a config, each with its default."""

    min_letters: int  # 3
    max_words: int  # 12
    numbers: Literal["keep", "drop"]  # "drop"
    stop_words: Literal["english", "none"]  # "english"
    common_words: Strings  # disease, disorder, syndrome, sign, symptom, and their plurals
    ambiguous: Literal["keep"] | dict[Literal["drop", "first"], int]  # "keep"
    types: Literal["all"] | dict[Literal["only", "all_but"], Strings]  # "all"
    plurals: Literal["as_written", "both"]  # "both"
    inverted: Literal["as_written", "both"]  # "both"
    possessives: Literal["keep", "drop"]  # "drop"
    upper_case: int  # 4


class Near(TypedDict, total=False):
    """Settings of `tag.near`, each with its default."""

    threshold: float  # 0.8
    min_letters: int  # 6
    max_words: int  # 6


class TaggerSettings(Filters, total=False):
    """Settings of `[tag]`, each with its default; filters of `tag.dictionary` by themselves."""

    near: Near | None  # None: no name that is written nearly so
    abbreviations: Literal["defined", "plain"]  # "defined"
    candidates: int  # 10
    context: Literal["english", "none"] | AnyPath  # "english"


class Neighbours(TypedDict, total=False):
    """Settings of `maps.phrases.neighbours`, each with its default."""

    min_count: int  # 10
    threshold: float  # 0.5
    max_words: int  # 6
    connectors: Strings  # - ' /


class MapsSettings(TypedDict, total=False):
    """Settings of `maps`, each with its default."""

    unit: Literal["sentence", "document"]  # "sentence"
    limits: dict[Literal["tokens", "terms", "auxiliary"], int]  # 128, 5, 16
    entities: Literal["none"] | dict[Literal["dictionary"], Filters]  # {"dictionary": {}}
    phrases: Literal["none"] | dict[Literal["neighbours"], Neighbours]  # {"neighbours": {}}
    terms: Literal["none", "relevance"]  # "relevance"
    graph: Literal["none", "adjacent"]  # "none"


class NegativesSettings(TypedDict, total=False):
    """Settings of `shards.negatives`, each with its default."""

    sampler: Literal["uniform", "bernoulli", "any_entity", "typed_by_type", "typed_by_range"]  # "uniform"
    slots: list[Slot] | tuple[Slot, ...]  # all three
    same: Literal["ids", "texts"]  # "texts"
    max_draws: int  # 1000


class StreamSettings(TypedDict, total=False):
    """Arguments of `Stream` by name, but for those that say which rank this is."""

    part: Literal["train", "valid", "test"]
    schedule: Schedule
    items: int | None
    pool: int | None
    tokens: int | None
    window: int | None
    pack: int | None
    seed: int
    negatives: Literal["fresh", "stored"] | None
    graph: AnyPath | None
    windows_ahead: int
    threads: int
    steps_ahead: int
    cache: AnyPath | None
