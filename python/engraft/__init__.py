"""engraft in Python: streams of shards, kernels over Arrow, and models.

>>> import engraft
>>> for step in engraft.Stream("out/shards", schedule="kimera", items=32):   # shuffled multi-task batches, with exact resume on any number of ranks
...     for task, batch in step.items():
...         batch["input_ids"], batch["attention_mask"], batch["labels"]

`engraft.torch.Stream` gives the same as tensors, for PyTorch's loaders. `word_counts`, `tokenize`, `tag`, `maps`, `negatives` and `triples` take and give tables of
pyarrow, polars, DuckDB and whatever else speaks Arrow. `engraft.load` asks models.
"""

from typing import Any

from ._engraft import Batches, Maps, Negatives, Stream, Tagger, Tokenizer, __version__, triples, word_counts
from ._kernels import maps, negatives, tag, tokenize
from ._model import Model, load

__all__ = [
    "Batches",
    "Maps",
    "Model",
    "Negatives",
    "Stream",
    "Tagger",
    "Tokenizer",
    "__version__",
    "load",
    "maps",
    "negatives",
    "tag",
    "tokenize",
    "triples",
    "word_counts",
]


def _restored(kind: type[Stream], path: str, settings: dict[str, Any], state: dict[str, Any], turns: tuple[int, int, int]) -> Stream:
    """A stream as it was pickled."""
    stream = kind(path, **settings)
    stream.load_state_dict(state)
    stream.take_turns(*turns)
    return stream
