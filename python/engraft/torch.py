"""Streams of shards as datasets of PyTorch, for `DataLoader` and `torchdata.StatefulDataLoader`, with or without worker processes.

>>> from engraft.torch import Stream
>>> loader = StatefulDataLoader(Stream("out/shards", items=32), batch_size=None)
>>> for step in loader:
...     for task, batch in step.items():
...         model(batch["input_ids"], batch["attention_mask"], ...)

A step is a whole batch of all ranks' share, so loaders take `batch_size=None`. Threads of engraft's own make steps ahead without Python's
lock: `num_workers=0` is the fastest unless the step is worked on in Python.
"""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Self, Unpack

import torch
from torch.utils.data import IterableDataset, get_worker_info

import engraft

from ._types import AnyPath, Batch, StreamSettings

if TYPE_CHECKING:
    from torch.utils.data._utils.worker import WorkerInfo

__all__ = ["Stream"]


def _rank() -> tuple[int, int]:
    """This process among those that train together: as `torch.distributed` has it, else by the variables of `torchrun`."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))


def _tensors(step: dict[str, Batch]) -> dict[str, dict[str, torch.Tensor]]:
    """The same numbers in the same memory."""
    return {task: {name: torch.from_numpy(of) for name, of in batch.items()} for task, batch in step.items()}


class _Loops:
    """Which epoch a loop shows, by numbers in memory that worker processes share: what they are copies of never moves.

    An epoch is over when every worker has given all of its steps. Workers start at different times, and in a short epoch one may have ended
    before another has begun; so whoever begins first says for all which epoch the loop shows.
    """

    MOST = 1024

    def __init__(self) -> None:
        # The mark of the present set of processes, the epoch that its first loop shows, and for each worker the epochs behind it.
        self._numbers: torch.Tensor = torch.zeros(2 + self.MOST, dtype=torch.int64).share_memory_()
        self._numbers[0] = -1
        self._mark: int | None = None

    def _behind(self, workers: int = MOST) -> torch.Tensor:
        return self._numbers[2 : 2 + workers]

    def with_workers(self) -> bool:
        """Whether a loop of worker processes has begun and is not over."""
        return int(self._numbers[0]) != -1

    def place(self, epoch: int, info: "WorkerInfo | None" = None) -> None:
        """The next loop shows `epoch`; a worker says so for itself."""
        if info:
            self._behind()[info.num_workers :] = epoch
            self._end(info, epoch)
        else:
            self._behind().fill_(epoch)
            self._numbers[0] = -1

    def begin(self, info: "WorkerInfo | None") -> int:
        """The epoch of a loop that begins."""
        if info is None:
            return int(self._behind().min())
        if info.num_workers > self.MOST:
            raise ValueError(f"num_workers={info.num_workers}: expected at most {self.MOST}")
        mark = info.seed - info.id
        if self._mark == mark:  # a process that is kept from loop to loop: all begin before any goes on
            epoch = int(self._behind(info.num_workers).min())
        else:
            if int(self._numbers[0]) != mark:
                self._numbers[1] = self._behind().min()
                self._behind().fill_(self._numbers[1])
                self._numbers[0] = mark
            self._mark, epoch = mark, int(self._numbers[1])
        self._behind()[info.id] = epoch
        return epoch

    def end(self, info: "WorkerInfo | None", epoch: int) -> None:
        """All steps of `epoch` are behind this worker."""
        if info is None:
            self.place(epoch + 1)
        else:
            self._end(info, epoch + 1)

    def _end(self, info: "WorkerInfo", behind: int) -> None:
        self._behind()[info.id] = behind
        if int(self._behind(info.num_workers).min()) == behind:
            self._behind().fill_(behind)
            self._numbers[0] = -1


class Stream(IterableDataset[dict[str, dict[str, torch.Tensor]]]):
    """`engraft.Stream` whose steps are dictionaries of tensors, by task.

    A loop gives the steps of one epoch. The first begins at epoch 0 or where a state was loaded, each other one at the beginning of the next
    epoch; after a loop that was left early, at the beginning of the same epoch once more (workers that had made its last steps ahead count it
    as over: `set_epoch` says which is meant). Worker processes take turns with the steps, which
    come in the same order whatever the number of workers.

    Takes the arguments of `engraft.Stream`; `rank` and `world_size` are those of `torch.distributed`, or else of the variables RANK and
    WORLD_SIZE, unless they are given.
    """

    def __init__(self, path: AnyPath, *, rank: int | None = None, world_size: int | None = None, **settings: Unpack[StreamSettings]) -> None:
        if rank is None and world_size is None:
            rank, world_size = _rank()
        elif rank is None or world_size is None:
            raise TypeError("rank and world_size go together: give both, or neither")
        #: The stream of arrays behind this one.
        self.stream = engraft.Stream(path, rank=rank, world_size=world_size, **settings)
        # The epoch of the present loop, and the step with which its worker 0 began.
        self._epoch, self._begin = 0, 0
        # Whether a state was loaded and no step taken since; whether steps of the epoch have been taken.
        self._loaded, self._within = False, False
        self._loops = _Loops()

    def __len__(self) -> int:
        return len(self.stream)

    def __iter__(self) -> Iterator[dict[str, dict[str, torch.Tensor]]]:
        info = get_worker_info()
        epoch = self._loops.begin(info)
        if self._loaded and self._epoch == epoch and self.stream.epoch == epoch:
            pass  # goes on within the epoch
        elif self._within or self.stream.epoch != epoch:
            self.stream.seek(epoch)
        self._within = False
        self._epoch, self._begin = epoch, self.stream.step
        worker, workers = (info.id, info.num_workers) if info else (0, 1)
        self.stream.take_turns(worker, workers, self._begin)
        return _Steps(self)

    def __next__(self) -> dict[str, dict[str, torch.Tensor]]:
        """The next step of the loop that began last: what a stream of another kind of steps overrides."""
        self._loaded = False
        if self.stream.epoch == self._epoch:
            for step in self.stream:
                self._within = True
                return _tensors(step)
        self._within = False
        self._loops.end(get_worker_info(), self._epoch)
        raise StopIteration

    def set_epoch(self, epoch: int) -> None:
        """Goes to the beginning of an epoch, which the next loop shows."""
        self.stream.seek(epoch)
        self._epoch, self._loaded, self._within = epoch, False, False
        self._loops.place(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Where the stream stands, the same on all ranks. What stands under `stream` is engraft's own state (`engraft.Stream.state_dict`).

        While workers make the steps, they alone know: a `StatefulDataLoader` asks them, and this is an error in the process that has the loader.
        """
        if get_worker_info() is None and self._loops.with_workers():
            raise RuntimeError("worker processes make the steps, and they alone know how far they are: take the state of a StatefulDataLoader, or num_workers=0")
        return {"stream": self.stream.state_dict(), "epoch": self._epoch, "begin": self._begin}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes to where a state was taken, on this or another number of ranks and of workers: that of a stream, or that of a
        `StatefulDataLoader` over one. The next loop goes on from there."""
        state, more = _state_of(state)
        self.stream.take_turns(0, 1)
        self.stream.load_state_dict(state["stream"])
        self._epoch = state.get("epoch", self.stream.epoch)
        self._begin, self._loaded, self._within = state.get("begin", self.stream.step), True, True
        for _ in range(more):
            next(self.stream)
        info = get_worker_info()
        if info:
            self.stream.take_turns(info.id, info.num_workers, self._begin)
        self._loops.place(max(self._epoch, self.stream.epoch), info)


class _Steps:
    """The steps of a loop. Unlike its stream, of which each loop begins anew, it goes on where it is however often it is asked for itself."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> dict[str, dict[str, torch.Tensor]]:
        return next(self._stream)

    def state_dict(self) -> dict[str, Any]:
        return self._stream.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._stream.load_state_dict(state)


def _state_of(state: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """The state of the stream in what was given, and how many steps have been taken since."""
    if "version" in state:
        return {"stream": state}, 0
    if "stream" in state:
        return state, 0
    if "_snapshot" in state:  # a StatefulDataLoader with workers
        workers = state["_snapshot"]["_worker_snapshots"].values()
        found = [worker["fetcher_state"]["dataset_iter_state"] for worker in workers]
        # The workers take turns, so the one that is furthest has everything behind it.
        furthest = max(found, key=lambda of: of["stream"]["step"])
        return {"stream": furthest["stream"]}, state["_steps_since_snapshot"]
    if "_num_yielded" in state:  # and without
        return {"stream": state["fetcher_state"]["dataset_iter_state"]["stream"]}, 0
    raise ValueError(f"this is neither the state of a stream nor that of a StatefulDataLoader over one: it has {sorted(state)}")
