"""Shards read as a trainer reads them: engraft beside pyarrow, `datasets` and MosaicML Streaming, in one run.

Usage: stream.py BENCH SHARDS REAL [--mosaic PYTHON]
BENCH is the built program `bench`, SHARDS a folder of four-task shards with some 10^6 rows, REAL one of HSDN and Rotmensch. This Python
needs benches/requirements.txt, that of --mosaic `mosaicml-streaming`. Readers take turns, each in a process of its own; speeds are
rows or tokens per second of the processor, so that other work on the machine does not count, and medians of three. Elasticity: the stream
is killed (SIGKILL to all ranks) at random batches and resumed from the last step that all ranks have shown, on 1, 3 and 2 ranks;
what it showed is compared with a run that nobody killed. Prints tables in Markdown.
"""

import argparse
import collections
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

RUNS = 3
ITEMS = 512
KILLS = 3
WORLDS = (1, 3, 2)
parser = argparse.ArgumentParser()
parser.add_argument("bench", type=Path)
parser.add_argument("shards", type=Path)
parser.add_argument("real", type=Path)
parser.add_argument("--mosaic", type=Path)
given = parser.parse_args()
bench, shards, real = given.bench.resolve(), given.shards.resolve(), given.real.resolve()
work = Path(tempfile.mkdtemp(prefix="engraft-stream-"))
peers = Path(__file__).resolve().parent / "stream_peer.py"
quiet = dict(os.environ, HF_HUB_OFFLINE="1", HF_HOME=str(work / "hf"), HF_DATASETS_DISABLE_PROGRESS_BARS="1")


def index_of(folder):
    return json.loads((folder / "index.json").read_text())


def part_of(folder, task):
    return next(part for entry in index_of(folder)["tasks"] if entry["task"] == task for part in entry["parts"] if part["part"] == "train")


def said(*command):
    ran = subprocess.run([str(word) for word in command], check=False, capture_output=True, text=True, env=quiet)
    if ran.returncode:
        sys.exit(f"{command}: {ran.stderr}")
    return json.loads(ran.stdout.splitlines()[-1])


def medians(commands, what):
    """Median of `what` per second of the processor, for each command; they take turns."""
    found = collections.defaultdict(list)
    for _ in range(RUNS):
        for name, command in commands.items():
            one = said(*command)
            found[name].append(one[what] / one["processor"])
    return {name: statistics.median(each) for name, each in found.items()}


def reading():
    """Rows of one task into arrays, by every reader."""
    of = [entry["task"] for entry in index_of(shards)["tasks"]]
    print("Decoded rows per second of one core, row group after row group, from the page cache. Both sides decode the same columns of the training "
          "rows: `input_ids` and `labels`, in relation and triplet `label`.\nengraft checks the XXH3 of every row group as well; "
          "that `token_type_ids` are all 0 it knows from the footer.\n")
    print("| task | rows | bytes per row | engraft | pyarrow `read_row_group` | ratio | pyarrow, checking CRCs | ratio |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for task in of:
        part = part_of(shards, task)
        rounds = max(1, 3_000_000 // part["rows"])
        speed = medians({
            "engraft": [bench, "stream", "decode", shards, task, rounds],
            "pyarrow": [sys.executable, peers, "pyarrow", task, shards, rounds],
            "crc": [sys.executable, peers, "pyarrow-crc", task, shards, rounds],
        }, "rows")
        size = sum(file["bytes"] for file in part["files"]) / part["rows"]
        ours = speed["engraft"]
        print(f"| {task} | {part['rows']:,} | {size:.1f} | {ours:,.0f} | {speed['pyarrow']:,.0f} | {ours / speed['pyarrow']:.2f} "
              f"| {speed['crc']:,.0f} | {ours / speed['crc']:.2f} |")


def readers(task):
    """Rows of `task` by those who stream."""
    mds, rows = work / "mds", part_of(shards, task)["rows"]
    commands = {
        "engraft, row groups": [bench, "stream", "decode", shards, task, max(1, 3_000_000 // rows)],
        "pyarrow, row groups": [sys.executable, peers, "pyarrow", task, shards, max(1, 3_000_000 // rows)],
        "`datasets` streaming, Arrow batches of 2048": [sys.executable, peers, "datasets-batches", task, shards, max(1, 3_000_000 // rows)],
        "`datasets` streaming, per row": [sys.executable, peers, "datasets-rows", task, shards, max(1, 500_000 // rows)],
    }
    if given.mosaic:
        size = said(given.mosaic, peers, "to-mds", task, shards, mds)["bytes"]
        commands[f"MosaicML Streaming, per row (MDS, {size / rows:.0f} bytes per row)"] = [given.mosaic, peers, "mosaic", task, mds, 1]
    else:
        print("SKIPPED: MosaicML Streaming (--mosaic names no Python)", file=sys.stderr)
    speed = medians(commands, "rows")
    ours = next(iter(speed.values()))
    print(f"\nThe same columns of the {rows:,} training rows of task {task}, by all readers; each is opened before the clock runs.\n")
    print("| reader | rows per second of one core | engraft is faster by |\n|---|--:|--:|")
    for name, each in speed.items():
        print(f"| {name} | {each:,.0f} | {ours / each:.2f} |")


def collating():
    """Batches of the real shards."""
    longest = max(int(length) for entry in index_of(real)["tasks"] for part in entry["parts"] for length in part["lengths"])
    wide = max(128, longest)
    ways = {"32 items": ("items:32", "one"), "32 items of like length (pool of 100 batches)": ("bucketed:32:100", "one"),
            f"32 items, packed into rows of {wide}": ("items:32", f"packed:{wide}"), "256 items": ("items:256", "one"),
            f"256 items, packed into rows of {wide}": ("items:256", f"packed:{wide}")}
    commands = {name: [bench, "stream", "collate", real, batching, fill, 3] for name, (batching, fill) in ways.items()}
    speed, padding = medians(commands, "tokens"), {name: said(*command)["padding"] for name, command in commands.items()}
    rows = sum(part["rows"] for entry in index_of(real)["tasks"] for part in entry["parts"])
    print(f"\nHSDN and Rotmensch as published ({rows:,} rows of four tasks, the longest of {longest} tokens): batches in KIMERA's order, padded to the "
          "longest row, reading included, on one core.\n")
    print("| batch | tokens per second of one core | share of padding |\n|---|--:|--:|")
    for name in ways:
        print(f"| {name} | {speed[name]:,.0f} | {padding[name]:.1%} |")


def shown(command, states, world, end, kill):
    """Lines of all ranks, by rank; with `kill` all ranks are killed once rank `kill[0]` has shown step `kill[1]`."""
    ranks = []
    for rank in range(world):
        state = work / f"state-{rank}.json"
        if states:
            state.write_text(json.dumps(states[rank] if rank < len(states) else states[0]))
        full = [*command, state if states else "-", rank, world, *end]
        out = open(work / f"lines-{rank}", "w+b")
        ranks.append((subprocess.Popen([str(word) for word in full], stdout=out, stderr=subprocess.PIPE, env=quiet), out))
    if kill:
        rank, step = kill
        watched, seen = open(work / f"lines-{rank}", "rb"), 0
        while seen < step and ranks[rank][0].poll() is None:
            found = watched.read(1 << 20)
            seen += found.count(b"\n")
            time.sleep(0 if found else 0.001)
        for process, _ in ranks:
            process.kill()
    lines = []
    for process, out in ranks:
        error = process.communicate()[1]
        if not kill and process.returncode:
            sys.exit(error.decode())
        out.seek(0)
        # A line without its end is what a kill leaves.
        lines.append([json.loads(line) for line in out if line.endswith(b"\n")])
        out.close()
    return lines


def elastic(command, size, steps, same):
    """Samples of a run that is killed and resumed on other numbers of ranks, and of one that is not, step by step."""
    [whole] = shown(command, None, 1, [size, steps], None)
    unbroken = [line["samples"] for line in whole]
    chance, states, broken, kills = random.Random(7), None, [], 0
    for phase, world in enumerate(WORLDS):
        end = steps * (phase + 1) // len(WORLDS)
        for last in [False] * KILLS + [True]:
            left = end - len(broken)
            if left <= 0:
                break
            # With a number of steps to go, the kill comes after a random one of them.
            kill = None if last else (chance.randrange(world), chance.randint(1, max(1, left // 2)))
            kills += bool(kill)
            lines = shown(command, states, world, [size, end], kill)
            common = min(len(of) for of in lines)
            for step in range(common):
                at = [of[step] for of in lines]
                tasks = range(len(at[0]["samples"]))
                broken.append([[sample for one in at for sample in one["samples"][task]] for task in tasks])
            if common:
                states = [of[common - 1]["state"] for of in lines]
                assert not same or all(state == states[0] for state in states), "ranks disagree about where the stream stands"
            if last and common < left:
                break
    flat = lambda run: collections.Counter(sample for step in run for task in step for sample in task)
    was, is_ = flat(unbroken), flat(broken)
    return {"samples": sum(was.values()), "kills": kills, "lost": sum((was - is_).values()), "repeated": sum((is_ - was).values()),
            "same": broken == unbroken}


def elasticity():
    triples = part_of(shards, "subject")["items"]
    rows = sum(part_of(shards, entry["task"])["rows"] for entry in index_of(shards)["tasks"])
    steps = triples // ITEMS
    ours = elastic([bench, "stream", "steps", shards], ITEMS, steps, same=True)
    theirs = elastic([sys.executable, peers, "steps", shards], rows // steps, steps, same=False)
    print(f"\nKilled at random batches and resumed from the last step that all ranks had shown, on {', '.join(map(str, WORLDS))} ranks; one epoch in "
          f"{steps} steps. `datasets` streams the same files with a shuffle buffer of 10,000 rows, `split_dataset_by_node` and `state_dict`; where its "
          "state fails on another number of ranks, what was shown is passed over with `skip`.\n")
    print("| | samples | kills | lost | repeated | order of the unbroken run |\n|---|--:|--:|--:|--:|---|")
    for name, found in (("engraft", ours), ("`datasets`", theirs)):
        order = "yes" if found["same"] else "no"
        print(f"| {name} | {found['samples']:,} | {found['kills']} | {found['lost']:,} | {found['repeated']:,} | {order} |")
    return ours


def shuffling():
    print(f"\nHow well row groups shuffled over the epoch and {ITEMS} items a batch are mixed, by the row groups that are shuffled together: how often "
          "neighbours come from one row group, and how much more a batch's mean place in the files varies than under a perfect shuffle (1 for both).\n")
    print("| row groups together | neighbours from one row group | variance of a batch | correlation with the files |\n|--:|--:|--:|--:|")
    for window in (1, 4, 16, 64, 10**9):
        found = said(bench, "stream", "shuffle", shards, window, ITEMS)
        name = f"all {found['row_groups']}" if window > found["row_groups"] else window
        quality = found["quality"]
        print(f"| {name} | {quality['neighbours']:.2f} | {quality['batches']:.2f} | {quality['correlation']:.3f} |")


reading()
readers("subject")
collating()
shuffling()
found = elasticity()
mosaic = ", MosaicML Streaming beside them" if given.mosaic else ""
print(f"\n{os.cpu_count()} cores, {platform.system()}; medians of {RUNS}; pyarrow {version('pyarrow')}, datasets {version('datasets')}{mosaic}, "
      f"Python {platform.python_version()}.")
if found["lost"] or found["repeated"] or not found["same"]:
    sys.exit("engraft lost, repeated or reordered samples")
