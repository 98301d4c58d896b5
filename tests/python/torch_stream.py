"""What `engraft.torch.Stream` promises to PyTorch's loaders: `DataLoader` and `torchdata.StatefulDataLoader`.

Usage: torch_stream.py OUT
PYTHONPATH names the package. Ends with status 0 if every promise holds.
"""

import itertools
import json
import multiprocessing
import os
import pickle
import sys
import tempfile
import time
from pathlib import Path

import torch
from torch.utils.data import DataLoader
from torchdata.stateful_dataloader import StatefulDataLoader

import engraft
from engraft.torch import Stream

shards = Path(sys.argv[1]) / "shards"
HOW = {"items": 100, "seed": 3, "window": 4}


def stream(**how):
    return Stream(shards, **(HOW | how))


def loader(of, workers, **how):
    return StatefulDataLoader(of, batch_size=None, num_workers=workers, **how)


def key(step):
    """A step as a value that is equal where all of its numbers are."""
    return tuple((task, name, tuple(of.flatten().tolist())) for task, batch in step.items() for name, of in batch.items())


def keys(steps):
    return [key(step) for step in steps]


def together(parts):
    """The shares of all ranks side by side, without padding."""
    found = []
    for task in parts[0]:
        for part in parts:
            ids, mask = part[task]["input_ids"], part[task]["attention_mask"]
            found.append([row[kept == 1].tolist() for row, kept in zip(ids, mask)])
    return [[row for of in found[at : at + len(parts)] for row in of] for at in range(0, len(found), len(parts))]


def epochs(number, **how):
    """The steps of each epoch, as the stream itself has them."""
    one = stream(**how)
    return [keys(one) for _ in range(number)]


def tensors_are_the_arrays():
    arrays, one = engraft.Stream(shards, **HOW), stream()
    step = next(iter(one))
    for task, batch in next(arrays).items():
        for name, of in batch.items():
            assert torch.equal(step[task][name], torch.from_numpy(of))
    assert len(one) == len(arrays) and step["subject"]["labels"].dtype == torch.int64
    for array in (array for batch in next(engraft.Stream(shards, **HOW)).values() for array in batch.values()):
        assert torch.from_numpy(array).data_ptr() == array.ctypes.data == torch.from_dlpack(array).data_ptr()


def ranks_are_those_of_the_launcher():
    """RANK and WORLD_SIZE, as torchrun sets them, where no process group tells."""
    os.environ |= {"RANK": "1", "WORLD_SIZE": "3"}
    try:
        told = keys(stream())
        assert told == keys(stream(rank=1, world_size=3)) and told != keys(stream(rank=0, world_size=3))
    finally:
        del os.environ["RANK"], os.environ["WORLD_SIZE"]
    for alone in ({"rank": 1}, {"world_size": 3}):
        try:
            stream(**alone)
        except TypeError as error:
            assert "go together" in str(error), error
        else:
            raise AssertionError(alone)


def every_loader_shows_every_epoch_in_order():
    # Epochs of a dozen steps, and of fewer than there are workers.
    for how in ({}, {"schedule": "merged", "items": 300}, {"items": 900}):
        expected = epochs(3, **how)
        assert expected[0] != expected[1]
        for kind in (DataLoader, StatefulDataLoader):
            for workers, persistent in ((0, False), (2, False), (3, True)):
                of = kind(stream(**how), batch_size=None, num_workers=workers, persistent_workers=persistent)
                assert len(of) == len(expected[0])
                found = [keys(of) for _ in range(3)]
                assert found == expected, (kind, workers, persistent)


def gone_on(shown, workers, of=None, **how):
    """A loader with the state of another one that has shown these steps."""
    first = loader(stream(**of or {}), workers, **how)
    at = iter(first)
    assert [key(next(at)) for _ in shown] == shown, (workers, of, how)
    state = json.loads(json.dumps(first.state_dict()))
    del at, first
    second = loader(stream(**of or {}), workers, **how)
    second.load_state_dict(state)
    return second


def every_state_goes_on_with_the_step_that_would_have_come():
    expected = epochs(2)
    steps = len(expected[0])
    cases = [(workers, 1, taken) for workers in (0, 2) for taken in (0, 1, steps // 2, steps - 1, steps)]
    for workers, every, taken in [*cases, (2, 3, steps // 2), (3, 1, steps - 2)]:
        second = gone_on(expected[0][:taken], workers, snapshot_every_n_steps=every)
        where = (workers, every, taken)
        assert keys(second) == expected[0][taken:], where
        assert keys(second) == expected[1], where


def budgets_and_packed_rows_go_on_too():
    for how in ({"items": None, "tokens": 2000}, {"pack": 96}, {"pool": 4}):
        expected = epochs(1, **how)[0]
        for workers in (0, 2):
            assert keys(gone_on(expected[:3], workers, how)) == expected[3:], (how, workers)


def states_before_the_first_step_and_of_persistent_workers():
    expected = epochs(2)
    half = len(expected[0]) // 2
    for workers, persistent in ((0, False), (2, False), (2, True)):
        how = {"persistent_workers": persistent}
        first = loader(stream(), workers, **how)
        begin = json.loads(json.dumps(first.state_dict()))
        # Asking for the state shows nothing of the stream.
        at = iter(first)
        assert [key(next(at)) for _ in range(half)] == expected[0][:half], (workers, persistent)
        middle = json.loads(json.dumps(first.state_dict()))
        del at, first
        second = loader(stream(), workers, **how)
        second.load_state_dict(begin)
        at = iter(second)
        assert key(next(at)) == expected[0][0]
        # Again, on a loader in the middle of a loop; and the state that was just loaded is the loader's own.
        second.load_state_dict(middle)
        third = loader(stream(), workers, **how)
        third.load_state_dict(json.loads(json.dumps(second.state_dict())))
        for of in (second, third):
            assert [keys(of), keys(of)] == [expected[0][half:], expected[1]], (workers, persistent)


def loop_with_a_killed_worker(shown):
    """A training that loses a worker after four steps, and ends of it with one error or another; `shown` keeps each step and the state after it."""
    of = loader(stream(), 2)
    with shown.open("wb", buffering=0) as file:
        for number, step in enumerate(of, 1):
            file.write(pickle.dumps((key(step), json.dumps(of.state_dict()))))
            if number == 4:
                multiprocessing.active_children()[0].kill()


def a_killed_worker_loses_nothing_that_was_shown():
    expected = epochs(1)[0]
    # In a process of its own: the loader's error may come at any moment from then on, as a signal's.
    with tempfile.TemporaryDirectory() as folder:
        shown = Path(folder) / "shown"
        training = multiprocessing.get_context("fork").Process(target=loop_with_a_killed_worker, args=(shown,))
        training.start()
        training.join()
        assert training.exitcode != 0, "the loop went on without its worker"
        found = []
        with shown.open("rb") as file:
            while True:
                try:
                    step, state = pickle.load(file)
                except EOFError:
                    break
                found.append(step)
    assert 4 <= len(found) < len(expected)
    second = loader(stream(), 2)
    second.load_state_dict(json.loads(state))
    assert found + keys(second) == expected


def a_state_of_another_number_of_workers_is_refused_by_the_loader():
    first = loader(stream(), 2)
    next(iter(first))
    second = loader(stream(), 3)
    second.load_state_dict(first.state_dict())
    try:
        keys(second)
    except AssertionError:  # torchdata's, without a word
        pass
    else:
        raise AssertionError("three workers took the states of two")


def a_state_at_the_end_begins_the_next_epoch():
    expected = epochs(3)
    for workers in (0, 2):
        first = loader(stream(), workers)
        for epoch in range(2):
            assert keys(first) == expected[epoch]
        state = json.loads(json.dumps(first.state_dict()))
        second = loader(stream(), workers)
        second.load_state_dict(state)
        assert keys(second) == expected[2], workers
        # The same state to the stream, without a loader.
        alone = stream()
        alone.load_state_dict(state)
        assert keys(alone) == expected[2], workers


def a_second_epochs_state_after_a_resumed_first():
    expected = epochs(3)
    for workers in (0, 2):
        state = None
        found = []
        # Interrupted after every ninth step.
        while len(found) < 2 * len(expected[0]):
            of = loader(stream(), workers)
            if state:
                of.load_state_dict(state)
            before = len(found)
            while len(found) < before + 9 and len(found) < 2 * len(expected[0]):
                for step in of:
                    found.append(key(step))
                    state = json.loads(json.dumps(of.state_dict()))
                    if len(found) >= before + 9:
                        break
        assert found[: 2 * len(expected[0])] == expected[0] + expected[1], workers


def states_are_good_for_any_number_of_ranks_and_workers():
    whole = [together([step]) for _ in range(1) for step in stream(items=100)]
    third = len(whole) // 3
    one = loader(stream(items=100), 2)
    at = iter(one)
    assert [together([next(at)]) for _ in range(third)] == whole[:third]
    state = json.loads(json.dumps(one.state_dict()))
    del at, one
    for workers in ((0, 0, 0), (1, 2, 3)):
        ranks = [stream(items=100, rank=rank, world_size=3) for rank in range(3)]
        for rank in ranks:
            rank.load_state_dict(state)
        loaders = [loader(rank, of) for rank, of in zip(ranks, workers)]
        iterators = [iter(of) for of in loaders]
        found = [together([next(of) for of in iterators]) for _ in range(third)]
        assert found == whole[third : 2 * third], workers
        states = [json.loads(json.dumps(of.state_dict())) for of in loaders]
        del iterators, loaders
        ranks = [stream(items=100, rank=rank, world_size=2) for rank in range(2)]
        for rank, each in enumerate(ranks):
            each.load_state_dict(states[rank])
        rest = list(zip(*[loader(rank, 2) for rank in ranks]))
        assert [together(parts) for parts in rest] == whole[2 * third :], workers


def a_loop_that_was_left_early_begins_anew():
    expected = epochs(2)
    for workers, persistent in ((0, False), (2, False), (2, True)):
        of = DataLoader(stream(), batch_size=None, num_workers=workers, persistent_workers=persistent)
        for _, step in zip(range(3), of):
            pass
        try:
            assert of.dataset.state_dict()["stream"]["step"] >= 3 and not workers
        except RuntimeError as error:
            assert workers and "StatefulDataLoader" in str(error), error
        assert [keys(of), keys(of)] == expected, (workers, persistent)
        of.dataset.set_epoch(1)
        assert keys(of) == expected[1], (workers, persistent)
        of.dataset.set_epoch(0)
        assert keys(of) == expected[0], (workers, persistent)


def an_iterator_goes_on_however_often_it_is_asked_for():
    of = iter(stream())
    assert [key(next(of)), *keys(itertools.islice(of, 2)), *keys(of)] == epochs(1)[0]


def states_of_others_are_refused():
    state = stream().state_dict()
    for words, work in (
        ("seed was 3", lambda: stream(seed=4).load_state_dict(state)),
        ("neither the state of a stream", lambda: stream().load_state_dict({"epoch": 3})),
    ):
        try:
            work()
        except ValueError as error:
            assert words in str(error), error
        else:
            raise AssertionError(words)
    # In a worker, the loader raises it.
    first = loader(stream(), 2)
    next(iter(first))
    second = loader(stream(seed=4), 2)
    second.load_state_dict(first.state_dict())
    try:
        list(second)
    except ValueError as error:
        assert "seed was 3" in str(error), error
    else:
        raise AssertionError("a worker took the state of another order")


def the_own_state_is_the_same_on_all_ranks():
    ranks = [stream(rank=rank, world_size=2) for rank in range(2)]
    for rank in ranks:
        next(iter(rank))
    assert ranks[0].state_dict() == ranks[1].state_dict()
    own = ranks[0].state_dict()["stream"]
    alone = engraft.Stream(shards, **HOW)
    alone.load_state_dict(own)
    other = stream()
    other.load_state_dict(own)
    assert torch.equal(next(iter(other))["object"]["input_ids"], torch.from_numpy(next(alone)["object"]["input_ids"]))


if __name__ == "__main__":
    torch.set_num_threads(1)
    for check in (
        tensors_are_the_arrays,
        ranks_are_those_of_the_launcher,
        every_loader_shows_every_epoch_in_order,
        every_state_goes_on_with_the_step_that_would_have_come,
        budgets_and_packed_rows_go_on_too,
        states_before_the_first_step_and_of_persistent_workers,
        a_killed_worker_loses_nothing_that_was_shown,
        a_state_of_another_number_of_workers_is_refused_by_the_loader,
        a_state_at_the_end_begins_the_next_epoch,
        a_second_epochs_state_after_a_resumed_first,
        states_are_good_for_any_number_of_ranks_and_workers,
        a_loop_that_was_left_early_begins_anew,
        an_iterator_goes_on_however_often_it_is_asked_for,
        states_of_others_are_refused,
        the_own_state_is_the_same_on_all_ranks,
    ):
        began = time.perf_counter()
        check()
        print(f"{check.__name__}: {time.perf_counter() - began:.2f} s", flush=True)
