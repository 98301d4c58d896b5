"""What `engraft.load` and `python -m engraft` promise, beside the command line.

Usage: loaded.py MODEL ASKED SAID
ASKED holds the lines that `engraft predict MODEL ASKED` was given (JSON lines with `text` and perhaps `pair`), SAID what it said. ENGRAFT_BIN names the
program, PYTHONPATH the package, unless it is installed. Ends with status 0 if every promise holds.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import engraft
from engraft import _program

folder = sys.argv[1]
asked, said = ([json.loads(line) for line in open(path)] for path in sys.argv[2:])
for answer in said:
    answer.pop("id", None)  # lines of Python have none
program = os.environ["ENGRAFT_BIN"]


def refused(kind, words, work):
    try:
        work()
    except kind as error:
        assert words in str(error), error
        return
    raise AssertionError(f"nothing said {words!r}")


model = engraft.load(Path(folder))
assert model.tasks and repr(model) == f"engraft.load({folder!r})"
texts = [line["text"] for line in asked]
pairs = [line["pair"] for line in asked] if all("pair" in line for line in asked) else None
assert model.predict(texts, pairs) == said
assert model.predict(iter(texts), pairs) == said
assert model.predict(texts[0], pairs and pairs[0]) == said[0]
assert model.predict([]) == [] and model.encode([]).shape == (0, model.encode("a").shape[0])
strange = ["fever\u2028\u0085 and a cough"]
assert len(model.predict(strange, pairs and pairs[:1])) == 1
vectors = model.encode(texts, pooling="mean")
assert vectors.dtype == np.float32 and vectors.shape[0] == len(texts)
lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
by_program = subprocess.run([program, "encode", folder, "--lines", "json", "--pooling", "mean"], input=lines, check=True, capture_output=True, text=True)
assert np.array_equal(vectors, np.array([json.loads(line)["vector"] for line in by_program.stdout.splitlines()], dtype=np.float32))
assert np.array_equal(model.encode(texts[0], pooling="mean"), vectors[0])

refused(FileNotFoundError, "config.json", lambda: engraft.load("/nowhere"))
refused(ValueError, "was not fine-tuned on", lambda: model.predict(texts, pairs, task="none of them"))
refused(TypeError, "one text each", lambda: model.predict("a", ["b"]))
refused(ValueError, "shorter", lambda: model.predict(["a", "b"], ["c"]))

# The same program as a module, with its arguments and its exit code.
as_module = [sys.executable, "-m", "engraft"]
version = subprocess.run([*as_module, "--version"], check=True, capture_output=True, text=True).stdout
assert version.startswith(f"engraft {engraft.__version__}\n"), version
assert subprocess.run([*as_module, "plan", "--set", "nonsense"], capture_output=True).returncode == 2
os.environ["ENGRAFT_BIN"] = "/nowhere/engraft"
ran = subprocess.run([*as_module, "--version"], capture_output=True, text=True)
assert ran.returncode == 1 and "ENGRAFT_BIN is /nowhere/engraft" in ran.stderr, ran
# A program, but not this one.
os.environ["ENGRAFT_BIN"] = sys.executable
_program.program.cache_clear()
refused(RuntimeError, "is Python", lambda: model.predict(texts))
del os.environ["ENGRAFT_BIN"]
os.environ["PATH"] = "/nowhere"
_program.program.cache_clear()
refused(FileNotFoundError, "the wheel engraft_cli", lambda: model.predict(texts))
print(len(asked), "lines")
