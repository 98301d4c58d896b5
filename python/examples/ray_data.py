"""Mentions of a graph's entities in texts, by Ray Data: each worker reads the graph once and tags one batch after the other.

Usage: ray_data.py TEXTS TRIPLES OUT
TEXTS is a Parquet file with the columns `id` and `text`, TRIPLES the folder of the stage `triples`, OUT a folder for Parquet files of mentions.
"""

import sys

import pyarrow as pa
import ray.data

import engraft


class Tag:
    def __init__(self, triples):
        self.tagger = engraft.Tagger(triples, min_letters=4)

    def __call__(self, texts):
        found = pa.table(self.tagger.tag(texts, column="text"))
        # `row` counts from the beginning of the batch: the text's own number stands in its place.
        return found.set_column(0, "id", texts["id"].combine_chunks().take(found["row"].combine_chunks()))


def main(texts, triples, out):
    how = {"batch_format": "pyarrow", "batch_size": 100, "fn_constructor_args": (triples,)}
    # Half a processor for each worker leaves room for what reads and writes: a kernel takes what threads it finds.
    ray.data.read_parquet(texts).map_batches(Tag, concurrency=2, num_cpus=0.5, **how).write_parquet(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
