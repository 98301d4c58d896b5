"""python/examples/ddp.py: killed at random and resumed on other numbers of processes, it shows every row of every step once, in order.

Usage: ddp.py OUT
PYTHONPATH names the package. Ends with status 0 if nothing was lost or repeated.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import engraft

STEPS = 240
shards = Path(sys.argv[1]) / "shards"
example = Path(__file__).resolve().parents[2] / "python/examples/ddp.py"


def lines(folder):
    """What all processes have said so far; a line that a kill has cut is none."""
    found = []
    for file in folder.glob("*.jsonl"):
        for line in file.read_text().splitlines():
            try:
                found.append(json.loads(line))
            except json.JSONDecodeError:
                pass
    return found


def in_short(said):
    """What processes said, and once more without the stacks and torchrun's own report in which it drowns."""
    told = [line for line in said.splitlines() if not line.startswith(("  File", "    ", "W1", "E1"))]
    return "\n".join([said, "in short:", *told[:40]])


def below(process):
    """The processes that one has started, which torchrun puts into groups of their own."""
    children = [int(child) for task in Path(f"/proc/{process}/task").glob("*/children") for child in task.read_text().split()]
    return [process, *(found for child in children for found in below(child))]


def run(work, processes, kill_at):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", processes, example, shards, work / "checkpoint", "--steps", STEPS]
    folder = work / f"shown-{len(list(work.glob('shown-*')))}"
    folder.mkdir()
    # A process that a signal ends says where it was.
    telling = {**os.environ, "PYTHONFAULTHANDLER": "1"}
    ran = subprocess.Popen([str(word) for word in [*command, "--shown", folder]], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=telling)
    while kill_at and ran.poll() is None and sum(file.read_bytes().count(b"\n") for file in folder.glob("0.jsonl")) < kill_at:
        time.sleep(0.01)
    if kill_at and ran.poll() is None:
        for process in below(ran.pid):
            os.kill(process, signal.SIGKILL)
    said = ran.communicate()[0].decode()
    if kill_at or ran.returncode == 0:
        return [folder]
    # Gloo throws where nobody catches when a connection goes at a bad moment (pytorch/gloo#514), and a thread of PyTorch's that still runs when its process ends
    # makes the C++ library call that off, too: one more death to go on from.
    assert "terminate called" in said and "panicked" not in said and len(list(work.glob("shown-*"))) < 6, in_short(said)
    print("PyTorch ended a process:", in_short(said))
    return [folder, *run(work, processes, kill_at)]


def main():
    with tempfile.TemporaryDirectory() as work:
        work = Path(work)
        folders = [*run(work, 2, 40), *run(work, 1, 60), *run(work, 3, None)]
        # What was done since the last checkpoint before a kill was lost with the weights, and is done again: the later run counts.
        told = {}
        for folder in folders:
            steps = {}
            for line in lines(folder):
                steps.setdefault(line["step"], {})[line["rank"]] = line
            told.update({step: ranks for step, ranks in steps.items() if len(ranks) == next(iter(ranks.values()))["of"]})
        assert sorted(told) == list(range(1, STEPS + 1)), sorted(told)
        on = {number: [step for step, ranks in told.items() if len(ranks) == number] for number in (1, 2, 3)}
        assert all(on.values()), f"not every run has its steps: {on}"
        alone, steps = engraft.Stream(shards, items=32, seed=1), 0
        while steps < STEPS:
            for step in alone:
                steps += 1
                batch = step["relation"]
                rows = [ids[mask == 1].tolist() for ids, mask in zip(batch["input_ids"], batch["attention_mask"])]
                ranks = told[steps]
                assert [row for rank in sorted(ranks) for row in ranks[rank]["rows"]] == rows, steps
                if steps == STEPS:
                    break
    print(STEPS, "steps on 2, 1 and 3 processes")


if __name__ == "__main__":
    main()
