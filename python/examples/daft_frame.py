"""Texts as token ids, by Daft: a function of whole batches that keeps its vocabulary.

Usage: daft_frame.py TEXTS VOCABULARY OUT
TEXTS is a Parquet file with the columns `id` and `text`, VOCABULARY that of a model or of the stage `vocabulary`, OUT a folder for Parquet files.
"""

import sys

import daft
import pyarrow as pa

import engraft


@daft.cls
class Tokens:
    def __init__(self, vocabulary):
        self.tokenizer = engraft.Tokenizer(vocabulary)

    @daft.method.batch(return_dtype=daft.DataType.list(daft.DataType.int32()))
    def encode(self, texts: daft.Series):
        encoded = pa.table(self.tokenizer.encode(texts.to_arrow(), offsets=None, max_tokens=128))
        return encoded["input_ids"].combine_chunks()


def main(texts, vocabulary, out):
    tokens = Tokens(vocabulary)
    frame = daft.read_parquet(texts)
    frame.select("id", tokens.encode(frame["text"]).alias("input_ids")).write_parquet(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
