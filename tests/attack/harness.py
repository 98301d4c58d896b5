"""What all campaigns share: the binary and its reference run, trees of files compared byte by byte, and the tally.

A campaign disturbs engraft on purpose, then asks one question: is what it says it made what an undisturbed run makes? Three things may come of a disturbance:
the same bytes, a refusal that says why, or a fault of engraft's. There are two faults, and none of either is allowed:

- lost: an artifact half-written or other than before, a run that does not end with the undisturbed bytes once the disturbance is over, or a process that dies
  (panic, abort, signal of its own making, memory beyond its bound, no end) instead of refusing;
- unnoticed: exit status 0 with other bytes than the undisturbed ones.
"""

import hashlib
import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
CONFIG = HERE / "world.toml"
# Address space of a child that reads hostile input: far above what the small world needs, far below what a bomb takes.
MEMORY = 6_000_000_000
PATIENCE = 60


class Run:
    """What came of one command: its exit status (None: it did not end), what it said, and how long it took."""

    def __init__(self, code, text, seconds):
        self.code, self.text, self.seconds = code, text, seconds

    @property
    def died(self):
        """Whether it ended as no program should: by a panic, an abort, a signal, or not at all."""
        return self.code is None or self.code < 0 or self.code in (101, 134, 137, 139) or "panicked at" in self.text

    @property
    def last(self):
        lines = [line for line in self.text.strip().splitlines() if line.strip()]
        return lines[-1][-300:] if lines else ""


class Engraft:
    """The binary under attack."""

    def __init__(self, binary):
        self.binary = str(binary)

    def start(self, *args, wrap=(), env=None, stdin=subprocess.DEVNULL):
        environment = {**os.environ, "NO_COLOR": "1", "RUST_BACKTRACE": "0", **(env or {})}
        command = [*map(str, wrap), self.binary, *map(str, args)]
        return subprocess.Popen(
            command, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )

    def run(self, *args, wrap=(), env=None, text=None, timeout=PATIENCE):
        began = time.monotonic()
        stdin = subprocess.PIPE if text is not None else subprocess.DEVNULL
        process = self.start(*args, wrap=wrap, env=env, stdin=stdin)
        try:
            said, _ = process.communicate(text, timeout=timeout)
            code = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            said, _ = process.communicate()
            code = None
        return Run(code, said.decode("utf8", "replace"), time.monotonic() - began)

    def bounded(self, *args, **more):
        """The same with a bound on its address space, for hostile input."""
        wrap = ("prlimit", f"--as={MEMORY}") if shutil.which("prlimit") else ()
        return self.run(*args, wrap=wrap, **more)


def tree(out, keep=lambda path: True):
    """Every file of the artifacts below `out` by relative path, as digests. What is the runner's own (dot files, the ledger, links) is left out."""
    found = {}
    for folder, folders, files in os.walk(out):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            path = os.path.relpath(os.path.join(folder, name), out)
            if os.path.islink(os.path.join(folder, name)):
                continue
            if name.startswith(".") or name.startswith("ledger") or "/" not in path or not keep(path):
                continue
            with open(os.path.join(folder, name), "rb") as file:
                found[path] = hashlib.blake2b(file.read()).hexdigest()
    return found


def by_stage(files):
    stages = {}
    for path, digest in files.items():
        stages.setdefault(path.split("/")[0], {})[path] = digest
    return stages


def mutated(bytes_, random_):
    """`bytes_` with one change of a kind that disks, copies and editors make, and its name; never the same bytes."""
    data = bytearray(bytes_)
    kind = random_.random()
    if kind < 0.6 or len(data) < 40:
        if not data:
            return bytearray(b"\0"), "a byte where there was none"
        place = random_.randrange(len(data))
        data[place] ^= 1 << random_.randrange(8)
        return data, f"bit of byte {place} of {len(data)} flipped"
    if kind < 0.7:
        length = random_.randrange(len(data))
        return data[:length], f"cut to {length} of {len(data)} bytes"
    if kind < 0.8:
        return data + random_.randbytes(random_.choice([1, 8, 100])), "bytes appended"
    place = random_.randrange(len(data) - 16)
    if kind < 0.9:
        data[place : place + 8] = random_.choice([b"\xff" * 8, b"\0" * 8, b"\x7f" + b"\xff" * 7])
        what = f"8 bytes at {place} overwritten"
    else:
        del data[place : place + random_.randrange(1, 16)]
        what = f"bytes at {place} removed"
    return (data, what) if data != bytes_ else mutated(bytes_, random_)


def copied(source, target):
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, symlinks=True)
    return target


class Tally:
    """Counts of one campaign, and its faults in words."""

    def __init__(self, name):
        self.name, self.runs, self.disturbed, self.refused, self.same = name, 0, 0, 0, 0
        self.lost, self.unnoticed, self.skipped = [], [], ""

    def judge(self, run, same, what):
        """Counts a run that was disturbed. `same` says whether it left the undisturbed bytes."""
        self.runs += 1
        self.disturbed += 1
        if run.died:
            self.lose(f"{what}: ended with {run.code} after {run.seconds:.1f} s: {run.last}")
        elif run.code == 0 and not same:
            self.unnoticed.append(what)
            print(f"  UNNOTICED {self.name}: {what}", flush=True)
        elif run.code == 0:
            self.same += 1
        else:
            self.refused += 1

    def lose(self, what):
        self.lost.append(what)
        print(f"  LOST {self.name}: {what}", flush=True)

    def line(self):
        if self.skipped:
            return f"{self.name:<10} skipped: {self.skipped}"
        return (
            f"{self.name:<10} runs {self.runs:>5}, disturbed {self.disturbed:>5}: refused {self.refused:>5}, same bytes {self.same:>5}, "
            f"lost {len(self.lost)}, unnoticed {len(self.unnoticed)}"
        )


class Bench:
    """A folder with an undisturbed run of the small world in it, and the time and chance that a campaign has."""

    def __init__(self, engraft, folder, seed):
        self.engraft, self.folder, self.seed = engraft, Path(folder), seed
        self.reference = self.folder / "reference"
        self.took, self.files = 0.0, {}

    def make(self):
        run = self.run(self.reference, "-j", "2", timeout=300)
        if run.code != 0:
            raise SystemExit(f"the undisturbed run failed:\n{run.text}")
        self.took, self.files = run.seconds, tree(self.reference)

    def run(self, out, *args, stages=(), timeout=PATIENCE, **more):
        return self.engraft.run("run", *stages, "--config", CONFIG, "--out", out, *args, timeout=timeout, **more)

    def verify(self, out):
        return self.engraft.run("verify", "--config", CONFIG, "--out", out)

    def scratch(self, name):
        path = self.folder / name
        shutil.rmtree(path, ignore_errors=True)
        return path

    def chance(self, name):
        return random.Random(f"{self.seed} {name}")

    def complain_about_halves(self, tally, out, what):
        """Whatever has its final name must be whole: each stage's files as the undisturbed run made them."""
        whole = by_stage(self.files)
        for stage, files in by_stage(tree(out)).items():
            if stage in whole and files != whole[stage]:
                tally.lose(f"{what}: {stage} is there, but not as it should be")

    def complain_about_end(self, tally, out, what):
        """Once nobody disturbs any more, a run ends with the undisturbed bytes, and `verify` agrees."""
        again = self.run(out, "-j", "1", timeout=300)
        tally.runs += 1
        if again.code != 0 or tree(out) != self.files:
            tally.lose(f"{what}: the next run ended with {again.code} and {'the same' if tree(out) == self.files else 'other'} bytes: {again.last}")
            return
        verified = self.verify(out)
        tally.runs += 1
        if verified.code != 0:
            tally.lose(f"{what}: verify ended with {verified.code}: {verified.last}")
