"""NumPy, the peer that expanding maps is measured beside.

Usage: maps_peer.py FOLDER, with FOLDER as the program `maps` wrote it. Expands the same samples in the same batches of 32 to entity, phrase and term
maps, by comparing numbers all at once and looking relevances up in a square of words. What a batch needs is read before the clock runs. Prints JSON:
seconds of the processor, and the sum and the number of values above 0 for each map.
"""

import json
import os
import sys
import time
from pathlib import Path

# One thread, as the other side has.
os.environ.update({name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")})
import numpy as np
import pyarrow.parquet as pq

BATCH = 32
NO_WORD = 65535
COLUMNS = ["words", "entities", "phrases", "types", "term_first", "term_second", "relevance"]


def batches(folder):
    """Batches of rows; a row has its columns as arrays."""
    batch = []
    for file in sorted(folder.glob("train-*.parquet")):
        columns = []
        for name in COLUMNS:
            column = pq.read_table(file, columns=[name])[name].combine_chunks()
            ends, values = column.offsets.to_numpy(), column.values.to_numpy()
            columns.append(np.split(values, ends[1:-1]) if len(ends) > 1 else [])
        for row in zip(*columns):
            batch.append(row)
            if len(batch) == BATCH:
                yield batch
                batch = []
    if batch:
        yield batch


def expand(batch):
    """B x 3 x T x T."""
    tokens, words = max(len(row[0]) for row in batch), max(len(row[3]) for row in batch)
    # What a token has: the number of its mention and phrase, 0 for none, and its word's first place, the last place for none.
    entity, phrase = (np.zeros((len(batch), tokens), np.int32) for _ in range(2))
    kind = np.full((len(batch), tokens), words, np.int64)
    relevance = np.zeros((len(batch), words + 1, words + 1), np.float32)
    for at, (of, entities, phrases, types, first, second, value) in enumerate(batch):
        some = np.flatnonzero(of != NO_WORD)
        own = of[some]
        entity[at, some], phrase[at, some], kind[at, some] = entities[own], phrases[own], types[own]
        relevance[at, first, second] = relevance[at, second, first] = value
    diagonal = np.arange(words)
    relevance[:, diagonal, diagonal] = 1
    cells = np.empty((len(batch), 3, tokens, tokens), np.float32)
    for map_, numbers in enumerate((entity, phrase)):
        np.equal(numbers[:, :, None], numbers[:, None, :], out=cells[:, map_], casting="unsafe")
        cells[:, map_] *= (numbers > 0)[:, :, None]
    cells[:, 2] = relevance[np.arange(len(batch))[:, None, None], kind[:, :, None], kind[:, None, :]]
    return cells


def main(folder):
    seconds, samples, sums, above = 0.0, 0, np.zeros(3), np.zeros(3, np.int64)
    for batch in batches(folder):
        start = time.process_time()
        cells = expand(batch)
        seconds += time.process_time() - start
        samples += len(batch)
        sums += cells.sum(axis=(0, 2, 3), dtype=np.float64)
        above += (cells > 0).sum(axis=(0, 2, 3))
    print(json.dumps({"numpy": np.__version__, "samples": samples, "expand_seconds": seconds, "sums": sums.tolist(), "above": above.tolist()}))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
