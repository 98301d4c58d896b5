"""The peers of `stream.py`, each in a process of its own. Prints lines of JSON; times are of the processor, as the program's.

Usage: stream_peer.py READER TASK FOLDER ROUNDS      READER: pyarrow, pyarrow-crc, datasets-rows, datasets-batches
       stream_peer.py to-mds TASK FOLDER OUT         the same rows as MosaicML's MDS
       stream_peer.py mosaic TASK OUT ROUNDS         reads them
       stream_peer.py steps FOLDER STATE RANK WORLD ROWS END
All readers read `input_ids` and `labels` (or `label`) of the task's training rows.
"""

import hashlib
import json
import os
import sys
import time
from pathlib import Path

BATCH = 2048


def files(folder, task):
    index = json.loads((Path(folder) / "index.json").read_text())
    part = next(part for entry in index["tasks"] if entry["task"] == task for part in entry["parts"] if part["part"] == "train")
    return [str(Path(folder) / file["path"]) for file in part["files"]]


def names(task):
    """What engraft decodes."""
    answer = "label" if task in ("relation", "triplet") else "labels"
    return ["input_ids", answer]


def row_groups(task, paths, rounds, check):
    """Row group after row group into Arrow arrays, on one thread."""
    import pyarrow.parquet as pq

    rows = 0
    for _ in range(rounds):
        for path in paths:
            file = pq.ParquetFile(path, page_checksum_verification=check)
            for group in range(file.num_row_groups):
                rows += file.read_row_group(group, columns=names(task), use_threads=False).num_rows
    return rows


def streamed(folder, task):
    from datasets import load_dataset

    return load_dataset("parquet", data_files=files(folder, task), split="train", streaming=True, columns=names(task))


def rows_of_datasets(dataset, rounds):
    """Row after row as Python objects."""
    return sum(1 for _ in range(rounds) for _ in dataset)


def batches_of_datasets(dataset, rounds):
    """Batches of 2048 rows as Arrow tables, the fastest format that there is."""
    dataset = dataset.with_format("arrow")
    return sum(batch.num_rows for _ in range(rounds) for batch in dataset.iter(batch_size=BATCH))


def to_mds(task, folder, out):
    import numpy as np
    import pyarrow.parquet as pq
    from streaming import MDSWriter

    ids, answer = names(task)[-2:]
    kinds = {ids: "ndarray:int32", answer: "ndarray:int32" if answer == "labels" else "int"}
    with MDSWriter(out=out, columns=kinds) as writer:
        for path in files(folder, task):
            for row in pq.read_table(path, columns=[ids, answer]).to_pylist():
                asked = np.array(row[answer], np.int32) if answer == "labels" else row[answer]
                writer.write({ids: np.array(row[ids], np.int32), answer: asked})
    return sum(path.stat().st_size for path in Path(out).rglob("*.mds"))


def mosaic(folder):
    """Rows as NumPy arrays, in the order of the files."""
    from streaming import StreamingDataset

    return StreamingDataset(local=folder, shuffle=False, batch_size=BATCH)


def prepared(what, task, folder):
    """What reads, opened before any clock runs: a function of the number of rounds."""
    if what.startswith("pyarrow"):
        paths = files(folder, task)
        return lambda rounds: row_groups(task, paths, rounds, what == "pyarrow-crc")
    if what == "mosaic":
        dataset = mosaic(folder)
        return lambda rounds: rows_of_datasets(dataset, rounds)
    dataset = streamed(folder, task)
    read = batches_of_datasets if what == "datasets-batches" else rows_of_datasets
    return lambda rounds: read(dataset, rounds)


def resumed(shuffled, saved, rank, rows, world):
    """The rank's stream from where `saved` was taken, and the rows passed over before it. A state for another number of ranks is taken if
    `datasets` can go on from it; where it cannot, what was shown is passed over with `skip` and the stream begins anew behind it."""
    from datasets.distributed import split_dataset_by_node

    def behind(skip):
        return split_dataset_by_node(shuffled.skip(skip) if skip else shuffled, rank=rank, world_size=world)

    if saved is None:
        return behind(0), 0
    dataset = behind(saved["skip"])
    try:
        dataset.load_state_dict(saved["state"])
        if saved["world"] != world:
            next(iter(dataset), None)
            dataset.load_state_dict(saved["state"])
        return dataset, saved["skip"]
    except (IndexError, KeyError, TypeError, ValueError):
        if saved["world"] == world:
            raise
        skip = saved["step"] * rows
        return behind(skip), skip


def steps(folder, state, rank, world, rows, end):
    """Batches of all tasks' rows, shuffled by a buffer, and the state after each: what a trainer on `datasets` does."""
    from datasets import load_dataset

    tasks = [entry["task"] for entry in json.loads((Path(folder) / "index.json").read_text())["tasks"]]
    paths = [path for task in tasks for path in files(folder, task)]
    dataset = load_dataset("parquet", data_files=paths, split="train", streaming=True, columns=["input_ids"])
    saved = json.loads(Path(state).read_text()) if state != "-" else None
    dataset, skip = resumed(dataset.shuffle(seed=1, buffer_size=10_000), saved, rank, rows, world)
    step = saved["step"] if saved else 0
    mine = rows * (rank + 1) // world - rows * rank // world
    batch = []
    for row in dataset:
        if step >= end:
            return
        batch.append(hashlib.blake2b(json.dumps(row["input_ids"]).encode(), digest_size=8).hexdigest())
        if len(batch) == mine:
            step += 1
            place = {"step": step, "skip": skip, "world": world, "state": dataset.state_dict()}
            print(json.dumps({"step": step, "samples": [batch], "state": place}), flush=True)
            batch = []


def main():
    what, *words = sys.argv[1:]
    if what == "steps":
        folder, state, *numbers = words
        return steps(folder, state, *map(int, numbers))
    task, folder, last = words
    if what == "to-mds":
        return print(json.dumps({"bytes": to_mds(task, folder, last)}))
    read = prepared(what, task, folder)
    if what.startswith("pyarrow"):
        import pyarrow.parquet  # noqa: F401 (importing is not reading)
    start, clock = time.process_time(), time.perf_counter()
    rows = read(int(last))
    print(json.dumps({"rows": rows, "seconds": time.perf_counter() - clock, "processor": time.process_time() - start}))


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    # Threads that `datasets` leaves behind may abort the interpreter's end, which is no part of what is measured.
    os._exit(0)
