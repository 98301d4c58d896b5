"""Models of engraft's, asked through its program: what it says on the command line, as Python's values."""

import json
import os
import subprocess
import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ._program import program

Pooling = Literal["cls", "mean", "max", "learned_pooler"]


class Model:
    """A model's folder. `engraft.load` opens one."""

    def __init__(self, folder: str | os.PathLike[str], options: Sequence[str] = ()) -> None:
        self.folder = os.fspath(folder)
        self.options = tuple(options)
        if not os.path.isfile(os.path.join(self.folder, "config.json")):
            raise FileNotFoundError(f"{self.folder}: no config.json is there; expected a model's folder, such as out/finetune-base-mortality-1/model")
        self._tasks: list[dict[str, Any]] | None = None

    def __repr__(self) -> str:
        return f"engraft.load({self.folder!r})"

    @property
    def tasks(self) -> list[dict[str, Any]]:
        """What it was fine-tuned for: `name`, `asked`, `pairs`, `classes` of each task; none of an encoder."""
        if self._tasks is None:
            path = os.path.join(self.folder, "task.json")
            told = json.load(open(path, encoding="utf-8"))["tasks"] if os.path.isfile(path) else []
            self._tasks = [{key: task[key] for key in ("name", "asked", "pairs", "classes")} for task in told]
        return self._tasks

    def predict(
        self,
        texts: str | Iterable[str],
        pairs: str | Iterable[str] | None = None,
        *,
        task: str | None = None,
        top: int = 10,
        mask: str | os.PathLike[str] | None = None,
    ) -> Any:
        """What the model says of each text, or of each text and the second one beside it, as `engraft predict` says it: `class` and `shares`, `classes`,
        `score`, `entities`, `masks`, or `answer` and `spans`; of several tasks under `tasks`. One answer for one text, a list for several. The model is
        read once for each call: ask for many texts together."""
        told = ["--top", str(top)]
        told += ["--task", task] if task is not None else []
        told += ["--mask", os.fspath(mask)] if mask is not None else []
        return self._ask("predict", texts, pairs, told)

    def encode(
        self,
        texts: str | Iterable[str],
        pairs: str | Iterable[str] | None = None,
        *,
        pooling: Pooling | None = None,
        max_tokens: int | None = None,
    ) -> npt.NDArray[np.float32]:
        """The vectors of texts, float32 `[texts, width]`, or `[width]` of one text, as `engraft encode` gives them; without `pooling` as the model's folder says."""
        told = ["--pooling", pooling] if pooling is not None else []
        told += ["--max-tokens", str(max_tokens)] if max_tokens is not None else []
        said = self._ask("encode", texts, pairs, told)
        rows = [said] if isinstance(said, dict) else said
        if not rows:
            width = json.load(open(os.path.join(self.folder, "config.json"), encoding="utf-8"))["hidden_size"]
            return np.empty((0, width), dtype=np.float32)
        vectors = np.array([row["vector"] for row in rows], dtype=np.float32)
        return vectors[0] if isinstance(said, dict) else vectors

    def _ask(self, verb: str, texts: str | Iterable[str], pairs: str | Iterable[str] | None, told: list[str]) -> Any:
        one = isinstance(texts, str)
        if isinstance(pairs, str) != one and pairs is not None:
            raise TypeError("texts and pairs are either one text each, or as many of the one as of the other")
        rows = [{"text": text} for text in ([texts] if one else texts)]
        if pairs is not None:
            for row, pair in zip(rows, [pairs] if one else pairs, strict=True):
                row["pair"] = pair
        if not rows:
            return []
        asked = "".join(json.dumps(row) + "\n" for row in rows)
        command = [program(), verb, self.folder, "--lines", "json", *told, *self.options]
        ran = subprocess.run(command, input=asked, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8")
        if ran.returncode != 0:
            raise ValueError(ran.stderr.removeprefix("error: ").strip())
        for line in filter(None, ran.stderr.split("\n")):
            warnings.warn(line.removeprefix("warning: "), stacklevel=3)
        # Texts may hold characters that str.splitlines takes for ends of lines.
        said = [json.loads(line) for line in ran.stdout.split("\n")[:-1]]
        return said[0] if one else said


def load(folder: str | os.PathLike[str], options: Sequence[str] = ()) -> Model:
    """A fine-tuned model, or any checkpoint of BERT or RoBERTa, to be asked (`predict`, `encode`). Needs the program `engraft` (the wheel engraft-cli, or ENGRAFT_BIN).
    `options` are further ones of its command line: a model with knowledge-assisted attention needs `["--config", ..., "--data", ..., "--out", ...]`."""
    return Model(folder, options)
