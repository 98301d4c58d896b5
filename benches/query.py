"""SQL over a large triple table: `engraft query` beside DuckDB on the same Parquet files, in one run.

Usage: query.py ENGRAFT OUT [RUNS]
ENGRAFT is the binary, OUT an output folder with stage `triples` finished. engraft's time is that of the whole process, from start to end, with and
without comparing the files' digests; DuckDB's is that of connecting and asking within a running Python, with as many threads. They take turns; the best of
RUNS (3) counts. The script fails unless both give the same rows. Prints a table in Markdown.
"""

import csv
import io
import os
import platform
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

import duckdb

engraft, out = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
runs = int(sys.argv[3]) if len(sys.argv) > 3 else 3
threads = len(os.sched_getaffinity(0))


def file(name):
    return f"'{out}/triples/{name}.parquet'"


QUERIES = {
    "triples by relation": (
        "select relation, count(*) n from triples group by relation",
        f"select r.key, count(*) n from {file('triples')} t join {file('relations')} r on t.relation = r.id group by r.key",
    ),
    "the 100 subjects with the most triples": (
        "select subject_key, subject, count(*) n from triples group by subject_key, subject order by n desc, subject_key limit 100",
        f"select e.key, e.text, count(*) n from {file('triples')} t join {file('entities')} e on t.subject = e.id "
        "group by e.key, e.text order by n desc, e.key limit 100",
    ),
    "objects of one relation, distinct": (
        "select count(distinct object_id) n from triples where relation in (select max(key) from relations)",
        f"select count(distinct t.object) n from {file('triples')} t join {file('relations')} r on t.relation = r.id "
        f"where r.key = (select max(key) from {file('relations')})",
    ),
    "statements by source and direction": (
        "select source, direction, count(*) n from origins group by source, direction",
        f"select o.source, o.direction, count(*) n from (select unnest(origins) o from {file('triples')}) group by 1, 2",
    ),
}


def ours(sql, *more):
    start = time.perf_counter()
    said = subprocess.run([engraft, "query", sql, "--format", "csv", "--out", out, *more], check=True, capture_output=True, text=True).stdout
    return time.perf_counter() - start, sorted(tuple(row) for row in list(csv.reader(io.StringIO(said)))[1:])


def theirs(sql):
    start = time.perf_counter()
    rows = duckdb.connect(config={"threads": threads}).execute(sql).fetchall()
    return time.perf_counter() - start, sorted(tuple(str(value) for value in row) for row in rows)


count = duckdb.execute(f"select count(*) from {file('triples')}").fetchone()[0]
size = sum((out / "triples" / f"{name}.parquet").stat().st_size for name in ("triples", "entities", "relations"))
print(f"{count:,} triples, {size / 1e6:,.1f} MB of Parquet; rows compared and equal.\n")
print("| query | engraft, s | `--unchecked`, s | DuckDB, s | DuckDB / engraft | DuckDB / `--unchecked` |")
print("|---|--:|--:|--:|--:|--:|")
for name, (mine, peer) in QUERIES.items():
    checked, unchecked, duck = [], [], []
    for _ in range(runs):
        seconds, rows = ours(mine)
        checked.append(seconds)
        unchecked.append(ours(mine, "--unchecked")[0])
        seconds, expected = theirs(peer)
        duck.append(seconds)
        if rows != expected:
            sys.exit(f"{name}: {rows[:3]} ... is not {expected[:3]} ...")
    a, b, c = min(checked), min(unchecked), min(duck)
    print(f"| {name} | {a:.2f} | {b:.2f} | {c:.2f} | {c / a:.2f} | {c / b:.2f} |", flush=True)
print(f"\n{threads} cores ({platform.machine()}), best of {runs}; DuckDB {duckdb.__version__}, Python {platform.python_version()}; {date.today()}.")
