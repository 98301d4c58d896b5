"""Whether `engraft.triples` gives of every source as many triples, between as many things, as are counted there.

Usage: kernel_sources.py FOLDER COUNTED
FOLDER has the files of COUNTED, the lines that sources.py printed. PYTHONPATH names the package. Ends with status 0 if all are the same.
"""

import json
import os
import sys
import tomllib
import warnings

import engraft
import pyarrow as pa

counted = [json.loads(line) for line in open(sys.argv[2], encoding="utf-8")]
os.chdir(sys.argv[1])
# Rows that are left out are told; they are counted elsewhere.
warnings.simplefilter("ignore")
for expected in counted:
    read = engraft.triples(tomllib.loads(expected["config"])["sources"])
    table = pa.table(read)
    ends = set(table["subject"].to_pylist()) | set(table["object"].to_pylist())
    assert (table.num_rows, len(ends)) == (expected["triples"], expected["entities"]), (expected, table.num_rows, len(ends))
    dropped = read.report["read"][0]["triples"]["dropped"]
    assert all(dropped[reason] == rows for reason, rows in expected["dropped"].items()), (expected, dropped)
print(len(counted), "sources")
