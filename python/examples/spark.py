"""How often each word occurs in texts, by Spark: `mapInArrow` counts the words of each batch, and a sum by word adds them up, as counts are additive.

Usage: spark.py TEXTS OUT
TEXTS is a Parquet file with a column `text`, OUT a folder for Parquet files of words and occurrences. Needs Java.
"""

import os
import sys

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

import engraft


def count(batches):
    for batch in batches:
        yield from pa.table(engraft.word_counts(batch, column="text")).to_batches()


def main(texts, out):
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False).getOrCreate()
    counted = spark.read.parquet(texts).select("text").repartition(4).mapInArrow(count, "word string, occurrences long")
    counted.groupBy("word").agg(f.sum("occurrences").alias("occurrences")).write.parquet(out)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
