from os import PathLike
from typing import Any, Literal, Self

import numpy as np

Schedule = Literal["kimera", "merged", "proportional"] | dict[str, float] | dict[str, str]
Batch = dict[str, np.ndarray]
"""`input_ids`, `attention_mask` and `token_type_ids` are int32 `[rows, width]`; `labels` are int64, one for each position (-100: not asked)
or one class for each sample. Packed rows also have `position_ids` and `segment_ids`, int32 `[rows, width]`, and `samples`, int64
`[samples, 3]`: row, first position and length of each."""

__version__: str

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
