"""Whether shards in a bucket give the batches of the folder that they were copied from, and a state that either goes on from.

Usage: bucket.py FOLDER URL CACHE
PYTHONPATH names the package, the environment the server. Ends with status 0 if they do.
"""

import sys

import engraft
import numpy as np

folder, url, cache = sys.argv[1:]
how = {"schedule": "kimera", "items": 32, "seed": 3, "negatives": "stored"}
near, far = engraft.Stream(folder, **how), engraft.Stream(url, cache=cache, **how)


def same(one, other):
    assert one.keys() == other.keys()
    for task, batch in one.items():
        assert batch.keys() == other[task].keys() and all(np.array_equal(batch[name], other[task][name]) for name in batch), task


for _ in range(3):
    same(next(near), next(far))
again = engraft.Stream(url, cache=cache, **how)
again.load_state_dict(near.state_dict())
back = engraft.Stream(folder, **how)
back.load_state_dict(far.state_dict())
same(next(near), next(again))
same(next(far), next(back))
