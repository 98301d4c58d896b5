"""The search of stage `link` beside FAISS: the five nearest names of each mention, among as many names as a large terminology has.

Usage: nearest.py BENCH [--names 150000 1000000] [--hnsw 150000] [--mentions 9000] [--width 384] [--threads 2]
BENCH is the program `bench`. Vectors are invented: an entity is a direction, its five names lie around it, and mentions around names. FAISS's flat index compares with all
vectors as engraft does; its HNSW (32 neighbours, 40 looked at while it is made, 64 and 256 while it is asked), made of up to
--hnsw names, is what is taken where that is too slow. Prints, as Markdown, seconds to be ready, seconds to be asked, and of how many mentions the nearest name and how many of the five nearest are FAISS's flat index's. Needs faiss-cpu and numpy.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import faiss
import numpy as np

MOST, NAMES = 5, 5
BLOCK = 65_536


def around(numbers, centres, spread):
    """Vectors of length 1 around others."""
    found = centres + float(spread / np.sqrt(centres.shape[1])) * numbers.standard_normal(centres.shape, dtype=np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def invented(names, mentions, width):
    """Names' vectors, entity after entity, and those of mentions."""
    numbers = np.random.default_rng(1)
    of_names = np.empty((names, width), dtype=np.float32)
    for start in range(0, names, BLOCK):
        count = min(BLOCK, names - start)
        entities = np.arange(start, start + count) // NAMES
        centres = np.stack([np.random.default_rng([2, entity]).standard_normal(width, dtype=np.float32) for entity in range(entities[0], entities[-1] + 1)])
        centres /= np.linalg.norm(centres, axis=1, keepdims=True)
        of_names[start : start + count] = around(numbers, centres[entities - entities[0]], 0.7)
    return of_names, around(numbers, of_names[numbers.choice(names, mentions)], 0.7)


def seconds(work):
    began = time.perf_counter()
    found = work()
    return time.perf_counter() - began, found


def ours(bench, of_names, of_mentions, threads):
    with tempfile.TemporaryDirectory() as work:
        files = [Path(work) / name for name in ("names", "mentions", "found")]
        of_names.tofile(files[0])
        of_mentions.tofile(files[1])
        command = [bench, "nearest", files[0], files[1], of_names.shape[1], threads, files[2]]
        told = json.loads(subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout)
        return told, np.fromfile(files[2], dtype=np.uint32).reshape(-1, MOST).astype(np.int64)


def indexes(of_names, of_mentions, most):
    """Name, seconds to be ready, seconds to be asked, and the five nearest, of each of FAISS's; HNSW of `most` names at most."""
    flat = faiss.IndexFlatIP(of_names.shape[1])
    ready, _ = seconds(lambda: flat.add(of_names))
    asked, (_, found) = seconds(lambda: flat.search(of_mentions, MOST))
    yield "FAISS, flat", ready, asked, found
    del flat
    if len(of_names) > most:
        return
    graph = faiss.IndexHNSWFlat(of_names.shape[1], 32, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = 40
    ready, _ = seconds(lambda: graph.add(of_names))
    for looked in (64, 256):
        graph.hnsw.efSearch = looked
        asked, (_, found) = seconds(lambda: graph.search(of_mentions, MOST))
        yield f"FAISS, HNSW, {looked} looked at", ready, asked, found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bench", type=Path)
    parser.add_argument("--names", type=int, nargs="+", default=[150_000, 1_000_000])
    parser.add_argument("--hnsw", type=int, default=150_000)
    parser.add_argument("--mentions", type=int, default=9_000)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--threads", type=int, default=min(2, len(os.sched_getaffinity(0))))
    given = parser.parse_args()
    faiss.omp_set_num_threads(given.threads)
    print("| names | search | s to be ready | s to be asked | the nearest is the flat index's | the five nearest |\n|--:|---|--:|--:|--:|--:|")
    for names in given.names:
        of_names, of_mentions = invented(names, given.mentions, given.width)
        told, mine = ours(given.bench, of_names, of_mentions, given.threads)
        right = None
        for name, ready, asked, found in indexes(of_names, of_mentions, given.hnsw):
            rows = [(name, f"{ready:.1f}", asked, found)]
            if right is None:
                right = found
                rows.insert(0, ("engraft", "none", told["seconds"], mine))
            for name, ready, asked, found in rows:
                first = np.mean(found[:, 0] == right[:, 0])
                five = np.mean([len(np.intersect1d(one, other)) / MOST for one, other in zip(found, right)])
                print(f"| {names:,} | {name} | {ready} | {asked:.1f} | {100 * first:.2f} % | {100 * five:.2f} % |", flush=True)
        print(f"| | engraft's peak | | {told['mib']:.0f} MiB | | |", flush=True)
    print(f"\n{given.mentions:,} mentions, vectors of {given.width} numbers, {given.threads} threads; faiss-cpu {version('faiss-cpu')}.")


if __name__ == "__main__":
    main()
