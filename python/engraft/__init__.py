"""engraft's streams in Python: shuffled multi-task batches of shards, with exact resume on any number of ranks.

>>> import engraft
>>> for step in engraft.Stream("out/shards", schedule="kimera", items=32):
...     for task, batch in step.items():
...         batch["input_ids"], batch["attention_mask"], batch["labels"]

`engraft.torch.Stream` gives the same as tensors, for PyTorch's loaders. `engraft.load` asks models.
"""

from ._engraft import Stream, __version__
from ._model import Model, load

__all__ = ["Model", "Stream", "__version__", "load"]


def _restored(kind, path, settings, state, turns):
    """A stream as it was pickled."""
    stream = kind(path, **settings)
    stream.load_state_dict(state)
    stream.take_turns(*turns)
    return stream
