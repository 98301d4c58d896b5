from typing import Any, Literal, Self, Unpack, final

from ._types import AnyPath, Batch, Case, MapsSettings, NegativesSettings, Offsets, Schedule, Table, TaggerSettings, Texts

__all__ = ["Batches", "Maps", "Negatives", "Stream", "Tagger", "Tokenizer", "__version__", "triples", "word_counts"]

__version__: str

@final
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

def word_counts(texts: Texts, *, case: Case = "uncased", column: str | None = None) -> Batches:
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

@final
class Tokenizer:
    """A vocabulary that turns texts into token ids, as shards are encoded: `vocab.txt`, `tokenizer.json`, or a folder that has one."""

    def __new__(cls, vocabulary: AnyPath, *, case: Case | None = None) -> Self: ...
    def encode(
        self,
        texts: Texts,
        *,
        max_tokens: int | None = None,
        offsets: Offsets | None = "characters",
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

@final
class Tagger:
    """The names of a graph's entities, which `tag` finds in texts. `triples` is the folder of the stage `triples`; arguments are those of `[tag]` of a
    config, filters of `tag.dictionary` by themselves."""

    def __new__(cls, triples: AnyPath, **settings: Unpack[TaggerSettings]) -> Self: ...
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

@final
class Maps:
    """Makes the samples that the stage `maps` makes: token ids, their words, and which words are a mention, a phrase, or related. `triples`, `counts` and `pmi`
    are the folders of these stages, as far as the settings need them; settings are those of `maps` of a config."""

    def __new__(
        cls,
        vocabulary: AnyPath,
        triples: AnyPath | None = None,
        counts: AnyPath | None = None,
        pmi: AnyPath | None = None,
        *,
        case: Case | None = None,
        **settings: Unpack[MapsSettings],
    ) -> Self: ...
    def make(self, texts: Texts, *, column: str | None = None, first_row: int = 0) -> Batches:
        """A row for each sentence, or text, that has a word: `row` (int64, the text), `chunk` (int64, from 0 in each text), `real`, `auxiliary` (int32), `cut` (int64),
        and lists: `input_ids` (int32), `token_type_ids` (int8), `words`, `entities`, `phrases`, `types`, `term_first`, `term_second` (int32), `relevance`
        (float32), `graph_first`, `graph_second` (int32). docs/formats.md has what they mean."""

@final
class Negatives:
    """Draws negatives of triples, none of which a triple of the graph in the folder `triples` states."""

    def __new__(cls, triples: AnyPath, *, per: int = 1, seed: int = 0, **settings: Unpack[NegativesSettings]) -> Self: ...
    def draw(self, rows: Table, *, epoch: int = 0, first_row: int = 0) -> Batches:
        """`per` negatives of each row of a table with `subject`, `relation` and `object`, keys or ids: `row` (int64), the three as keys, their names
        (`subject_text` ...), and which was `replaced`. A function of the triple, the seed, the row's number and the epoch."""

class Stream:
    """The batches of each step of a shard folder, in an order that is a function of the shards, the settings and the seed alone.
    A batch has 32 items where neither `items` nor `tokens` is given; the two do not go together."""

    def __new__(
        cls,
        path: AnyPath,
        *,
        part: Literal["train", "valid", "test"] = "train",
        schedule: Schedule = "kimera",
        items: int | None = ...,
        pool: int | None = None,
        tokens: int | None = None,
        window: int | None = 16,
        pack: int | None = None,
        seed: int = 0,
        rank: int = 0,
        world_size: int = 1,
        negatives: Literal["fresh", "stored"] | None = None,
        graph: AnyPath | None = None,
        windows_ahead: int = 1,
        threads: int = 1,
        steps_ahead: int = 2,
        cache: AnyPath | None = None,
    ) -> Self: ...
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
