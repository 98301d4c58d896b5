#!/usr/bin/env bash
# The annotations of Python's package: those of its native part are what it takes (mypy's stubtest, and Rust's own refusals), the others go together, and
# a program that uses them is taken where it is right and refused where it is wrong (mypy --strict).
#
#   scripts/stubs.sh PYTHON      a Python (3.11 or later) in which the package engraft is installed, or which finds it by PYTHONPATH
#
# Needs pip, and PyPI or another index for mypy. Without torch in PYTHON the annotations of engraft.torch are not tried.
set -euo pipefail
python=$(realpath -s "$(command -v "${1:?the Python that has the package: scripts/stubs.sh PYTHON}")")
export PYTHONSAFEPATH=1 # What lies in the present folder is not meant.
package=$("$python" -c 'import engraft, os.path as of; print(of.dirname(of.dirname(of.abspath(engraft.__file__))))')
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$python" -m pip install --quiet --disable-pip-version-check --target tools 'mypy>=2.4,<3'
export PYTHONPATH=$work/tools:$package${PYTHONPATH:+:$PYTHONPATH}

# A base that cannot be joined with another such base has a decorator in Python 3.15 (PEP 800), which older checkers do not know.
"$python" -m mypy.stubtest engraft._engraft --ignore-disjoint-bases

# Where Rust takes `**settings`, stubtest cannot see their names and values: Rust tells them when it refuses others.
cat > names.py <<'NAMES'
import inspect
import re
from typing import Literal, get_args, get_origin, get_type_hints

import engraft
from engraft import _types as of


def expected(make, *places, **settings):
    """The names that a refusal offers instead."""
    try:
        make(*(places or ("nowhere",)), **settings)
    except (ValueError, TypeError) as error:
        return set(re.findall(r"""[`"](\w+)[`"]""", str(error).split("expected", 1)[-1]))
    raise AssertionError(f"{make} takes {settings}")


def literals(hint):
    """All strings of a type."""
    inner = get_args(hint)
    return set(inner) if get_origin(hint) is Literal else set().union(*map(literals, inner))


def same(what, said, annotated):
    assert said == annotated, f"{what}: Rust has {sorted(said)}, the annotations {sorted(annotated)}"


maps = get_type_hints(of.MapsSettings)
for make, wrap, fields in [
    (engraft.Tagger, lambda it: it, of.Filters.__optional_keys__),
    (engraft.Tagger, lambda it: {"near": it}, of.Near.__optional_keys__),
    (engraft.Maps, lambda it: it, maps.keys()),
    (engraft.Maps, lambda it: {"limits": it}, literals(maps["limits"])),
    (engraft.Maps, lambda it: {"entities": {"dictionary": it}}, of.Filters.__optional_keys__),
    (engraft.Maps, lambda it: {"phrases": {"neighbours": it}}, of.Neighbours.__optional_keys__),
    (engraft.Negatives, lambda it: it, of.NegativesSettings.__optional_keys__),
]:
    same(f"{make.__name__} {wrap('...')}", expected(make, **wrap({"nothing": 0})), set(fields))
settings = inspect.signature(engraft.Stream).parameters.keys() - {"path", "rank", "world_size"}
same("Stream", settings, set(of.StreamSettings.__optional_keys__))
for name in settings:
    try:
        engraft.Stream("nowhere", **{name: None})
    except OSError:
        pass  # Nothing is there, which is found out once the arguments are taken.

for make, hints, names in [
    (engraft.Tagger, of.TaggerSettings, "numbers stop_words ambiguous types plurals inverted possessives abbreviations"),
    (engraft.Maps, of.MapsSettings, "unit entities phrases terms graph"),
    (engraft.Negatives, of.NegativesSettings, "sampler same"),
    (engraft.Stream, of.StreamSettings, "part negatives"),
]:
    for name in names.split():
        # What is marked is in files alone, and refused in a column of texts.
        said = expected(make, **{name: "nothing"}) - {"marked"}
        same(f"{make.__name__} {name}", said, literals(get_type_hints(hints)[name]))
in_turn = get_type_hints(of.RoundRobin)
schedules = literals(of.Schedule) | of.Temperature.__required_keys__ | in_turn.keys() | literals(in_turn["round_robin"])
same("Stream schedule", expected(engraft.Stream, schedule="nothing"), schedules)
same("Negatives slots", expected(engraft.Negatives, slots=["nothing"]), literals(of.Slot))
same("word_counts", expected(engraft.word_counts, [], case="nothing"), literals(of.Case))
same("Tokenizer", expected(engraft.Tokenizer, case="nothing"), literals(of.Case))
NAMES
"$python" names.py

cat > use.py <<'USE'
from pathlib import Path
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import engraft


class Own(engraft.Stream):
    """Streams may be bases."""


def taken(folder: Path, words: list[str], gaps: list[str | None], rows: engraft.Batches) -> None:
    stream = engraft.Stream(folder, schedule="kimera", items=32)
    for step in stream:
        assert_type(step, dict[str, dict[str, npt.NDArray[Any]]])
    stream.load_state_dict(stream.state_dict())
    engraft.Stream("out/shards", schedule={"temperature": 2.0}, tokens=1500, pool=300, window=None)
    engraft.Stream("out/shards", schedule={"round_robin": "paper"}, negatives="stored", cache=folder)
    assert_type(next(Own(folder, rank=1, world_size=2)), dict[str, dict[str, npt.NDArray[Any]]])

    for texts in (words, gaps, ("one", None), rows):
        assert_type(engraft.word_counts(texts, case="cased"), engraft.Batches)
    engraft.word_counts([])
    engraft.word_counts(["one", None], column=None)
    tokenizer = engraft.Tokenizer(folder, case="uncased")
    assert_type(tokenizer.encode(words, offsets=None, max_tokens=128, first_row=7), engraft.Batches)
    assert_type(tokenizer.special, list[int])
    assert_type(engraft.tokenize(rows, tokenizer, offsets="both", column="text"), engraft.Batches)
    engraft.tokenize(gaps, "out/vocabulary", case="cased")

    tagger = engraft.Tagger(folder, types={"only": ["T047"]}, near={"threshold": 0.8, "max_words": 4}, context=folder / "triggers.tsv")
    assert_type(tagger.report, dict[str, Any])
    tagger.tag(("one", "two"), first_row=2)
    assert_type(engraft.tag(words, folder, min_letters=4, ambiguous={"first": 1}, common_words=("disease",), column="text"), engraft.Batches)

    maps = engraft.Maps(folder, folder, limits={"tokens": 64}, entities={"dictionary": {"max_words": 5}}, phrases="none", terms="none")
    assert_type(maps.make(words), engraft.Batches)
    made = engraft.maps(rows, folder, None, folder, entities="none", phrases={"neighbours": {"connectors": ["-"]}}, graph="adjacent", column="text")
    assert_type(made.report, dict[str, Any] | None)

    graph = engraft.triples("hsdn", path=folder / "hsdn.tsv", min_tfidf=3.5)
    engraft.triples({"hsdn": {"path": "a.tsv"}}, canon={"self_loops": "keep"})
    assert_type(engraft.negatives(graph, triples=folder, per=2, seed=1, slots=["subject", "object"]), engraft.Batches)
    engraft.Negatives(folder, sampler="typed_by_range", slots=("relation",)).draw(graph, epoch=1)

    model = engraft.load(folder, ["--cpu"])
    assert_type(model.encode(words, pooling="mean"), npt.NDArray[np.float32])
    model.predict("one", "two", top=3)


def refused(folder: Path, words: set[str], stream: engraft.Stream) -> None:
    engraft.word_counts("text")  # type: ignore[arg-type]
    engraft.word_counts(words)  # type: ignore[arg-type]
    engraft.word_counts([1])  # type: ignore[arg-type]
    engraft.tokenize("text", folder)  # type: ignore[arg-type]
    engraft.tokenize([], folder, offsets="words")  # type: ignore[arg-type]
    engraft.tag([], folder, shortest=3)  # type: ignore[call-arg]
    engraft.Tagger(folder, common_words="disease")  # type: ignore[arg-type]
    engraft.Tagger(folder, near={"max_words": 0.5})  # type: ignore[arg-type]
    engraft.Negatives(folder, slots="subject")  # type: ignore[arg-type]
    engraft.negatives(["text"], triples=folder)  # type: ignore[arg-type]
    engraft.maps([], folder, entities="marked")  # type: ignore[arg-type]
    engraft.Stream(folder, schedule={"temperature": "paper"})  # type: ignore[arg-type]
    engraft.Stream(folder, rows=32)  # type: ignore[call-arg]
    stream.step = 1  # type: ignore[misc]

    class Mine(engraft.Batches):  # type: ignore[misc]
        pass
USE
modules=(engraft engraft.__main__ engraft._kernels engraft._model engraft._program engraft._types)
uses=(use.py)
if "$python" -c 'import torch' 2> said; then
  modules+=(engraft.torch)
  uses+=(use_torch.py)
  cat > use_torch.py <<'USE'
from typing import assert_type

import torch

from engraft.torch import Stream

for step in Stream("out/shards", schedule={"temperature": 2.0}, tokens=1500, rank=0, world_size=2):
    assert_type(step, dict[str, dict[str, torch.Tensor]])
Stream("out/shards", rows=32)  # type: ignore[call-arg]
USE
elif grep -q "No module named 'torch'" said; then
  echo "$python has no torch: the annotations of engraft.torch were not tried"
else
  cat said >&2
  exit 1
fi
# Some functions of torch have no annotations.
"$python" -m mypy --strict --untyped-calls-exclude torch "${modules[@]/#/--module=}"
"$python" -m mypy --strict "${uses[@]}"
