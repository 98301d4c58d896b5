"""Shards as batches of NumPy arrays in Python: engraft's wheel beside `datasets` and MosaicML Streaming, in one run.

Usage: python.py SHARDS [--mosaic PYTHON] [--task TASK] [--items 32 256]
This Python needs benches/requirements.txt and the package `engraft` (scripts/wheel.sh), that of --mosaic `mosaicml-streaming` and pyarrow. All give the rows of
the task's training part once, in shuffled order where the reader shuffles, as `input_ids` and `attention_mask` padded to the longest row of a batch,
and the labels. Readers take turns, each in a process of its own; speeds are rows per second of the processor, opening and importing left out, medians
of three. Then, what share of its speed another thread of Python keeps while steps of 4,096 triples are made and taken, at a trainer's pace and as fast as they are made, the
median of eight looks of a second (Linux); also where that thread has a processor of its own. Prints a table in Markdown.
"""

import argparse
import itertools
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from importlib.metadata import version
from pathlib import Path

RUNS = 3
# Steps of 4,096 triples of every task that a trainer is taken to want where another thread's speed is measured: 82,000 triples a second.
STEPS_PER_SECOND = 20
PEERS = Path(__file__).resolve().parent


def padded(rows, labels):
    """What a collate function does: two matrices, and the labels as they are or padded, too."""
    import numpy as np

    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    inside = np.arange(lengths.max()) < lengths[:, None]
    ids = np.zeros(inside.shape, np.int32)
    ids[inside] = np.concatenate(rows)
    if np.ndim(labels[0]) == 0:
        return ids, inside.astype(np.int32), np.asarray(labels, np.int64)
    answers = np.full(inside.shape, -100, np.int64)
    answers[inside] = np.concatenate(labels)
    return ids, inside.astype(np.int32), answers


def of_engraft(shards, task, items):
    import engraft

    stream = engraft.Stream(shards, items=items, negatives="stored")
    return lambda: sum(len(batch["labels"]) for step in stream for batch in step.values())


def collected(rows, ids, answer, items):
    """Rows one by one, in batches."""
    while held := list(itertools.islice(rows, items)):
        yield [row[ids] for row in held], [row[answer] for row in held]


def counted(batches):
    """How many rows there were, each batch put together as a trainer has it."""
    return sum(len(padded(rows, labels)[0]) for rows, labels in batches)


def of_datasets(shards, task, items, by_row):
    sys.path.insert(0, str(PEERS))
    from stream_peer import names, streamed

    ids, answer = names(task)
    dataset = streamed(shards, task).shuffle(seed=1, buffer_size=10_000)
    if by_row:
        return lambda: counted(collected(iter(dataset), ids, answer, items))
    arrays = dataset.with_format("numpy")
    return lambda: counted((list(batch[ids]), list(batch[answer])) for batch in arrays.iter(batch_size=items))


def of_mosaic(folder, task, items):
    sys.path.insert(0, str(PEERS))
    from stream_peer import names
    from streaming import StreamingDataset

    ids, answer = names(task)
    dataset = StreamingDataset(local=str(folder), shuffle=True, batch_size=items)
    return lambda: counted(collected(iter(dataset), ids, answer, items))


def lock(shards, apart):
    """How fast a thread counts while a stream makes steps, as a share of how fast it counts alone: on the clock while steps are taken as fast as they are made; then in the time for
    which the lock was all that it could wait for, without that in which it waited for a processor; and on the clock while a trainer takes steps at its own pace. `apart`: the thread alone has one processor, and the stream's
    threads have the others."""
    import engraft

    *others, own = sorted(os.sched_getaffinity(0))
    if apart:
        # What this thread starts later inherits it.
        os.sched_setaffinity(0, others)

    count, over = [0], threading.Event()

    def counting():
        if apart:
            os.sched_setaffinity(0, {own})
        while not over.is_set():
            for _ in range(1000):
                count[0] += 1

    def unscheduled():
        """Seconds for which the thread could have run and had no processor."""
        return int(Path(f"/proc/self/task/{thread.native_id}/schedstat").read_text().split()[1]) / 1e9

    def counted(steps):
        before, waited, began = count[0], unscheduled(), time.perf_counter()
        while time.perf_counter() < began + 1:
            next(steps)
        done, waited, took = count[0] - before, unscheduled() - waited, time.perf_counter() - began
        return done / took, done / (took - waited)

    def asleep():
        while True:
            yield time.sleep(0.1)

    def endless():
        while True:
            yield from stream

    def paced():
        """As a GPU takes them: between two steps the thread waits, and not for the lock."""
        steps = endless()
        while True:
            due = time.perf_counter() + 1 / STEPS_PER_SECOND
            next(steps)
            yield time.sleep(max(0.0, due - time.perf_counter()))

    stream = engraft.Stream(shards, items=4096, negatives="stored")
    thread = threading.Thread(target=counting, daemon=True)
    thread.start()
    looks = [(counted(asleep()), counted(endless()), counted(paced())) for _ in range(8)]
    over.set()
    return [[flat_out[0] / alone[0], flat_out[1] / alone[1], at_pace[0] / alone[0]] for alone, flat_out, at_pace in looks]


def one(reader, shards, task, items):
    """One reading, in a process of its own."""
    if reader in ("lock", "lock-apart"):
        return print(json.dumps({"kept": lock(shards, reader == "lock-apart")}), flush=True)
    kinds = {
        "engraft": lambda: of_engraft(shards, task, items),
        "datasets-batches": lambda: of_datasets(shards, task, items, False),
        "datasets-rows": lambda: of_datasets(shards, task, items, True),
        "mosaic": lambda: of_mosaic(shards, task, items),
    }
    read = kinds[reader]()
    began = time.process_time()
    rows = read()
    print(json.dumps({"rows": rows, "processor": time.process_time() - began}), flush=True)


def said(python, reader, shards, task, items):
    command = [python, __file__, "--reader", reader, shards, "--task", task, "--items", items]
    ran = subprocess.run([str(word) for word in command], check=False, capture_output=True, text=True)
    if not ran.stdout:
        sys.exit(f"{reader}: {ran.stderr}")
    found = json.loads(ran.stdout.splitlines()[-1])
    return found["rows"] / found["processor"], found["rows"]


def kept_of(reader, shards):
    """What another thread keeps of its speed, as `lock` measures it in a process of its own."""
    ran = subprocess.run([sys.executable, __file__, "--reader", reader, shards], check=True, capture_output=True, text=True)
    return [f"{statistics.median(of):.2f} of its speed ({min(of):.2f} to {max(of):.2f})" for of in zip(*json.loads(ran.stdout)["kept"])]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shards", type=Path)
    parser.add_argument("--mosaic", type=Path)
    parser.add_argument("--task", default="relation")
    parser.add_argument("--items", type=int, nargs="+", default=[32, 256])
    parser.add_argument("--reader")
    given = parser.parse_args()
    if given.reader:
        return one(given.reader, given.shards, given.task, given.items[0])
    print("| reader | items | rows | rows per second of the processor | engraft is faster by |\n|---|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as work:
        if given.mosaic:
            to_mds = [given.mosaic, PEERS / "stream_peer.py", "to-mds", given.task, given.shards, f"{work}/mds"]
            subprocess.run([str(word) for word in to_mds], check=True, capture_output=True)
        for items in given.items:
            readers = [("engraft, all tasks of a step", sys.executable, "engraft", given.shards), ("`datasets`, batches of arrays", sys.executable, "datasets-batches", given.shards), ("`datasets`, row by row", sys.executable, "datasets-rows", given.shards)]
            if given.mosaic:
                readers.append(("MosaicML Streaming, row by row", given.mosaic, "mosaic", Path(work) / "mds"))
            found = {}
            for _ in range(RUNS):
                for name, *how in readers:
                    found.setdefault(name, []).append(said(*how, given.task, items))
            ours = statistics.median(speed for speed, _ in found["engraft, all tasks of a step"])
            for name, runs in found.items():
                speed = statistics.median(speed for speed, _ in runs)
                print(f"| {name} | {items} | {runs[0][1]:,} | {speed:,.0f} | {ours / speed:.1f} |")
    clock, lock_alone, at_pace = kept_of("lock", given.shards)
    print(f"\nAnother thread of Python keeps {at_pace} on the clock while a trainer takes {STEPS_PER_SECOND} steps of 4,096 triples a second. While steps are taken as fast as they are made it keeps")
    print(f"{lock_alone} while it has a processor, and {clock} on the clock, where the stream's threads want the same {len(os.sched_getaffinity(0))} processors.")
    if len(os.sched_getaffinity(0)) > 1:
        print(f"With a processor of its own, which the stream's threads have not, it keeps {kept_of('lock-apart', given.shards)[0]} on the clock while steps are taken as fast as they are made.")
    if not given.mosaic:
        print("\nMosaicML Streaming was not run (--mosaic names no Python).")
    print(f"\ndatasets {version('datasets')}, Python {platform.python_version()}, {platform.machine()}.")


if __name__ == "__main__":
    main()
