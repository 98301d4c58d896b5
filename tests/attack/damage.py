"""Damage to what engraft made: artifacts under unchanged time stamps, model folders, training states, the ledger."""

import json
import os
import shutil
import signal
import subprocess
import time

from harness import CONFIG, Tally, copied, mutated, tree

TEXTS = b"What drug may treat fever?\nwhat are the signs of disease\n"
# A training long enough to be killed in the middle of, with everything that a state can hold.
LONG = [
    "retrain.max_steps=80", "retrain.epochs=6", "retrain.checkpoint_every=3", "retrain.patience={every=5,evaluations=50,batches=2}",
    'split.parts={ratio={train=0.8,valid=0.1,test=0.1,seed=1,cover="leave"}}',
]


def settings(values):
    return [word for value in values for word in ("--set", value)]


def forge(out, path):
    """Makes the runner's memory of digests believe that the file is as it was: what a disk that rots in silence looks like."""
    memory = os.path.join(out, ".cache", "digests.json")
    with open(memory) as file:
        text = json.load(file)
    data = os.stat(path)
    stamp = {
        "bytes": data.st_size, "modified": [data.st_mtime_ns // 10**9, data.st_mtime_ns % 10**9],
        "changed": [data.st_ctime_ns // 10**9, data.st_ctime_ns % 10**9], "inode": data.st_ino,
    }
    found = [0]

    def visit(value, key=None):
        if isinstance(value, dict):
            if key == str(path) and "stamp" in value:
                value["stamp"] = stamp
                found[0] += 1
            for name, inner in value.items():
                visit(inner, name)

    visit(text)
    if not found[0]:
        raise SystemExit(f"{path} is not in {memory}: the forger does not know this format of it")
    with open(memory, "w") as file:
        json.dump(text, file)


def rot(bench, seconds):
    """A flipped bit in any file of any artifact, under the time stamp that it had; whatever comes after it is gone and has to be made."""
    tally, chance, until = Tally("rot"), bench.chance("rot"), time.monotonic() + seconds
    stages = ["world", "triples", "split", "vocabulary", "shards", "counts", "pmi", "encoder", "pretrain", "retrain"]
    stages += [name for name in sorted({path.split("/")[0] for path in bench.files}) if name.startswith("benchmark-")]
    paths = [path for path in sorted(bench.files) if path.split("/")[0] in stages and os.path.getsize(bench.reference / path)]
    chance.shuffle(paths)
    for path in paths:
        if time.monotonic() >= until:
            break
        out = copied(bench.reference, bench.folder / "rot")
        bench.run(out, "-j", "1")
        file = out / path
        data = bytearray(file.read_bytes())
        place = chance.randrange(len(data))
        data[place] ^= 1 << chance.randrange(8)
        with open(file, "r+b") as handle:
            handle.write(data)
        forge(out, file)
        stage = path.split("/")[0]
        # What does not depend on the stage is found up to date; what does is made again from the rotten file, or not at all.
        for made in {name.split("/")[0] for name in bench.files} - {stage, "world"}:
            shutil.rmtree(out / made, ignore_errors=True)
        run = bench.run(out, "-j", "1", timeout=300)
        now = {name: digest for name, digest in tree(out).items() if name != path}
        undisturbed = {name: digest for name, digest in bench.files.items() if name != path}
        tally.judge(run, now == undisturbed, f"{path}, bit of byte {place} of {len(data)}")
    return tally


def models(bench, seconds):
    """Any change in any file of a model folder, then a question to the model."""
    tally, chance = Tally("model"), bench.chance("model")
    folders = [path for path in sorted(bench.reference.glob("*/model")) if (path / "task.json").exists()]
    # Models that attend by maps are asked with the config; plain ones need nothing.
    plain = [path for path in folders if path.parent.name.startswith(("finetune-base", "recipe"))]
    asked = []
    for folder in plain:
        copy = copied(folder, bench.folder / f"model-{folder.parent.name}")
        task = ["--task", "questions"] if folder.parent.name.startswith("recipe") else []
        text = b"a\tb\n" if "entailed" in folder.parent.name else TEXTS
        before = bench.engraft.run("predict", copy, *task, text=text)
        if before.code == 0:
            asked.append((copy, task, text, before.text))
    if not asked:
        raise SystemExit("no model of the undisturbed run answers")
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        copy, task, text, answer = chance.choice(asked)
        file = chance.choice(sorted(path for path in copy.rglob("*") if path.is_file()))
        whole = file.read_bytes()
        if chance.random() < 0.05:
            file.unlink()
            what = "removed"
        else:
            data, what = mutated(whole, chance)
            file.write_bytes(data)
        run = bench.engraft.bounded("predict", copy, *task, text=text)
        tally.judge(run, run.text == answer, f"{copy.name}/{file.relative_to(copy)}: {what}")
        file.write_bytes(whole)
    return tally


def states(bench, seconds):
    """Any change in any file that a killed training left; then the training goes on."""
    tally, chance = Tally("state"), bench.chance("state")
    whole = copied(bench.reference, bench.folder / "state-whole")
    undisturbed = bench.run(whole, "-j", "1", *settings(LONG), stages=["retrain"], timeout=300)
    if undisturbed.code != 0:
        raise SystemExit(f"the undisturbed training failed:\n{undisturbed.text}")
    expected = tree(whole, lambda path: path.startswith("retrain/"))
    base = killed_in_training(bench, undisturbed.seconds)
    work = next(path for path in base.glob(".work/retrain-*/state/state.json")).parents[1]
    files = sorted(path.relative_to(base) for path in work.rglob("*") if path.is_file())
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        out = copied(base, bench.folder / "state")
        name = chance.choice(files)
        file = out / name
        if chance.random() < 0.1:
            file.unlink()
            what = "removed"
        else:
            data, what = mutated(file.read_bytes(), chance)
            file.write_bytes(data)
        run = bench.run(out, "-j", "1", *settings(LONG), stages=["retrain"], timeout=300)
        tally.judge(run, tree(out, lambda path: path.startswith("retrain/")) == expected, f"{name}: {what}")
    return tally


def killed_in_training(bench, seconds):
    """A folder in which `retrain` was killed after it had written a state."""
    chance = bench.chance("state-kill")
    base = copied(bench.reference, bench.folder / "state-base")
    bench.run(base, "-j", "1", *settings(LONG), stages=["shards", "audit", "pretrain"], timeout=300)
    for _ in range(50):
        process = bench.engraft.start("run", "retrain", "--config", CONFIG, "--out", base, "-j", "1", *settings(LONG))
        try:
            process.communicate(timeout=chance.uniform(0.3, 0.8) * seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
        if list(base.glob(".work/retrain-*/state/state.json")):
            return base
        base = copied(bench.reference, bench.folder / "state-base")
        bench.run(base, "-j", "1", *settings(LONG), stages=["shards", "audit", "pretrain"], timeout=300)
    raise SystemExit("no kill in fifty met a training with a state")


def ledgers(bench, seconds):
    """Any change in the ledger: `verify` says so, and the next run ends with the undisturbed bytes."""
    tally, chance = Tally("ledger"), bench.chance("ledger")
    out = copied(bench.reference, bench.folder / "ledger")
    bench.run(out, "-j", "1")
    ledger = out / "ledger.jsonl"
    whole = ledger.read_bytes()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        data, what = mutated(whole, chance)
        if chance.random() < 0.2:
            lines = whole.splitlines(True)
            del lines[chance.randrange(len(lines))]
            data, what = b"".join(lines), "a line removed"
        data = bytes(data)
        ledger.write_bytes(data)
        verified = bench.engraft.run("verify", "--out", out)
        # A line less, or a last line that ends early, is what an interrupted run leaves, too: the artifact is then none that the ledger speaks of.
        told = what == "a line removed" or whole.startswith(data)
        tally.judge(verified, told, f"ledger: {what}: verify")
        run = bench.run(out, "-j", "1", timeout=300)
        tally.judge(run, tree(out) == bench.files, f"ledger: {what}: run")
        if run.code != 0 or tree(out) != bench.files:
            out = copied(bench.reference, bench.folder / "ledger")
            bench.run(out, "-j", "1")
        ledger.write_bytes(whole)
    return tally
