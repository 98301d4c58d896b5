"""What an answer costs: `engraft predict` beside transformers and ONNX Runtime, in one run.

Usage: predict.py ENGRAFT MEDQUAD CHECKPOINT [--python PYTHON] [--threads 2 1] [--rounds 3] [--questions 4000] [--answers 600]
ENGRAFT is the built program, MEDQUAD the unpacked collection, CHECKPOINT a BERT checkpoint (MiniLM). PYTHON has torch, transformers, onnx, onnxscript and
onnxruntime (benches/requirements.txt). A classifier of questions (treatment or symptoms) is fine-tuned by engraft for one step; then all three read the
same lines from standard input and print each line's class and its share: MedQuAD's questions, some 14 tokens each, and its answers, most of them cut at 128
tokens. The peers are predict_peer.py: batches of 32 lines as they come, padded to the longest of them, in f32; and once more with all lines sorted by length
first, which a stream of lines does not allow. They take turns, each in a process of its own.

What a line costs is the time of all lines less that of the first tenth, over the lines between: loading the model is told apart, as what the first tenth takes
beyond that. The run fails where a share differs by more than 1e-3. Figures are medians over the rounds. Prints tables in Markdown.
"""

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as xml
from pathlib import Path

CONFIG = """version = 5
[encoder]
from = "checkpoint"
path = "checkpoint"
[[benchmarks]]
name = "kinds"
set = { format.separated = { between = "tabs", fields = { text = "text", answer.class = "kind" } }, train = ["lines.tsv"] }
[finetune]
from = "encoder"
max_steps = 1
"""
SLACK = 1e-3
PEERS = ["transformers", "transformers, sorted", "onnx", "onnx, sorted"]


def collection(folder):
    """Questions with their kinds, and answers, in an order of no meaning."""
    questions, answers = [], []
    for file in sorted(folder.glob("*/*.xml")):
        for pair in xml.parse(file).getroot().iter("QAPair"):
            question, answer = pair.find("Question"), pair.find("Answer")
            said = " ".join((question.text or "").split())
            if said:
                questions.append((said, question.get("qtype")))
            told = " ".join("".join(answer.itertext()).split()) if answer is not None else ""
            if told:
                answers.append(told)
    for each in (questions, answers):
        random.Random(7).shuffle(each)
    return questions, answers


def timed(command, lines, threads):
    """Seconds, and the share of the first class of each line."""
    environment = {**os.environ, "RAYON_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads), "TOKENIZERS_PARALLELISM": "true"}
    began = time.perf_counter()
    ran = subprocess.run([str(word) for word in command], input="".join(f"{line}\n" for line in lines), check=False, capture_output=True, text=True, env=environment)
    seconds = time.perf_counter() - began
    if ran.returncode:
        sys.exit(f"{command[:2]}: {ran.stderr}")
    return seconds, [json.loads(line)["shares"]["symptoms"] for line in ran.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("engraft", "medquad", "checkpoint"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--threads", type=int, nargs="+", default=[2, 1])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--questions", type=int, default=4000)
    parser.add_argument("--answers", type=int, default=600)
    given = parser.parse_args()
    questions, answers = collection(given.medquad)
    peer, engraft = Path(__file__).resolve().parent / "predict_peer.py", given.engraft.resolve()
    before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        two = [(said, kind) for said, kind in questions if kind in ("treatment", "symptoms")][:64]
        (place / "lines.tsv").write_text("text\tkind\n" + "".join(f"{said}\t{kind}\n" for said, kind in two))
        (place / "engraft.toml").write_text(CONFIG)
        (place / "checkpoint").symlink_to(given.checkpoint.resolve())
        subprocess.run([str(engraft), "run", "--data", "."], cwd=place, check=True, capture_output=True)
        model, graph = place / "out/finetune-base-kinds-1/model", place / "model.onnx"
        said = subprocess.run([given.python, str(peer), str(model), "export", str(graph)], check=True, capture_output=True, text=True).stdout
        versions = json.loads(said.splitlines()[-1])
        sides = {"engraft": lambda threads: [engraft, "predict", model, "--jobs", threads]}
        for name in PEERS:
            how, _, is_sorted = name.partition(", ")
            words = [given.python, peer, model, how, *([graph] if how == "onnx" else []), *(["--sorted"] if is_sorted else [])]
            sides[name] = lambda threads, words=words: [*words, "--threads", threads]
        print(f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, load {before:.1f} before; {versions}\n")
        for what, lines in (("questions", [said for said, _ in questions[: given.questions]]), ("answers", answers[: given.answers])):
            few = len(lines) // 10
            for threads in given.threads:
                costs, loads, expected = {name: [] for name in sides}, {name: [] for name in sides}, None
                for _ in range(given.rounds):
                    for name, command in sides.items():
                        short, _ = timed(command(threads), lines[:few], threads)
                        whole, shares = timed(command(threads), lines, threads)
                        expected = expected or shares
                        apart = max(abs(a - b) for a, b in zip(shares, expected, strict=True))
                        if apart > SLACK:
                            sys.exit(f"{name}: a share of {what} is {apart} off")
                        cost = (whole - short) / (len(lines) - few)
                        costs[name].append(cost)
                        loads[name].append(short - few * cost)
                ours = statistics.median(costs["engraft"])
                print(f"{len(lines)} {what}, {threads} thread{'s' if threads > 1 else ''}:\n\n| | ms a line | engraft is faster by | loading, s |\n|---|--:|--:|--:|")
                for name in sides:
                    cost = statistics.median(costs[name])
                    print(f"| {name} | {1000 * cost:.2f} | {cost / ours:.2f} | {statistics.median(loads[name]):.1f} |")
                print()


if __name__ == "__main__":
    main()
