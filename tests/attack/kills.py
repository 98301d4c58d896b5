"""Ends: SIGKILL at random times and at the n-th system call of a kind, and system calls that fail."""

import os
import shutil
import signal
import subprocess
import time

from harness import CONFIG, Tally, by_stage, copied, tree

CALLS = {
    # How far into a run the n-th call of a kind may lie: as powers of two, so that early ones are tried as often as late ones.
    "fsync": 8, "openat": 8.5, "fcntl": 8.5, "write": 7, "renameat": 6.5, "mkdir": 6, "unlink": 4, "rename": 4, "unlinkat": 3.5, "ftruncate": 3, "renameat2": 3,
}
ERRORS = {
    "write": ["ENOSPC", "EIO", "EDQUOT"], "fsync": ["EIO", "ENOSPC"], "renameat": ["EIO", "ENOSPC", "EROFS"], "rename": ["EIO", "ENOSPC"],
    "renameat2": ["EINVAL", "EIO"], "openat": ["EMFILE", "ENOSPC", "EACCES", "EIO"], "mkdir": ["ENOSPC", "EROFS"], "unlink": ["EIO", "EROFS"], "unlinkat": ["EIO"],
    "ftruncate": ["EIO", "ENOSPC"], "read": ["EIO"], "pread64": ["EIO"], "statx": ["EIO"], "getdents64": ["EIO"], "clone3": ["EAGAIN"],
    "flock": ["ENOLCK", "EIO"], "lseek": ["EIO"],
}


def at_any_time(bench, seconds):
    """One to three kills in a row on one folder, each at a random moment of a run; then an undisturbed run."""
    tally, chance, until = Tally("kill"), bench.chance("kill"), time.monotonic() + seconds
    while time.monotonic() < until:
        out = bench.scratch("kill")
        for _ in range(chance.choice([1, 1, 2, 3])):
            jobs = chance.choice(["1", "2", "3"])
            process = bench.engraft.start("run", "--config", CONFIG, "--out", out, "-j", jobs)
            moment = chance.uniform(0.02, bench.took)
            tally.runs += 1
            try:
                said, _ = process.communicate(timeout=moment)
                if process.returncode != 0:
                    tally.lose(f"undisturbed after kills, but {process.returncode}: {said[-300:]!r}")
                break
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.communicate()
                tally.disturbed += 1
            bench.complain_about_halves(tally, out, f"killed after {moment:.2f} s with -j {jobs}")
        bench.complain_about_end(tally, out, "killed")
    return tally


def back_and_forth(bench, seconds):
    """Between two settings, both made: each run restores what the other kept, and a kill at any moment of it loses neither."""
    tally, chance = Tally("restore"), bench.chance("restore")
    settings = [(), ("--set", "shards.seed=2")]
    out = copied(bench.reference, bench.folder / "restore")
    files = []
    for other in reversed(settings):
        run = bench.run(out, "-j", "2", *other, timeout=300)
        files.insert(0, tree(out))
    if run.code != 0 or files[0] != bench.files or files[1] == bench.files:
        tally.lose(f"back in the first settings, a run ended with {run.code} and other bytes: {run.last}")
        return tally
    wholes, now, took, until = [by_stage(tree_) for tree_ in files], 0, run.seconds, time.monotonic() + seconds
    while time.monotonic() < until:
        now = 1 - now
        process = bench.engraft.start("run", "--config", CONFIG, "--out", out, "-j", chance.choice(["1", "2"]), *settings[now])
        moment = chance.uniform(0.01, took)
        tally.runs += 1
        try:
            process.communicate(timeout=moment)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            tally.disturbed += 1
        for stage, found in by_stage(tree(out)).items():
            if all(found != whole[stage] for whole in wholes):
                tally.lose(f"restoring, killed after {moment:.2f} s: {stage} is neither the one nor the other")
        # The run after a kill goes on or back, and has nothing to make either way.
        now = chance.choice([0, 1])
        again = bench.run(out, "-j", "1", *settings[now], timeout=300)
        tally.runs += 1
        if again.code != 0 or tree(out) != files[now] or ": started" in again.text:
            tally.lose(f"restoring, killed after {moment:.2f} s: the next run ended with {again.code}, or made something: {again.text[-600:]}")
            break
        took = again.seconds if ": restored" in again.text else took
    verified = bench.verify(out)
    tally.runs += 1
    if verified.code != 0:
        tally.lose(f"restoring: verify ended with {verified.code}: {verified.last}")
    return tally


def at_a_call(bench, seconds):
    """A kill, or an error of the system, at the n-th call of one kind, counted over all threads."""
    tally, chance, until = Tally("call"), bench.chance("call"), time.monotonic() + seconds
    if not shutil.which("strace") or subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], capture_output=True).returncode != 0:
        tally.skipped = "there is no strace here that may trace"
        return tally
    while time.monotonic() < until:
        out = bench.scratch("call")
        if chance.random() < 0.5:
            call = chance.choice(sorted(CALLS))
            inject = f"inject={call}:signal=SIGKILL:when={int(2 ** chance.uniform(0, CALLS[call]))}"
            kills = True
        else:
            call = chance.choice(sorted(ERRORS))
            error = chance.choice(ERRORS[call])
            lasting = chance.choice(["", "+"]) if error in ("ENOSPC", "EROFS", "EDQUOT") else ""
            inject = f"inject={call}:error={error}:when={int(round(2 ** chance.uniform(0, 9)))}{lasting}"
            kills = False
        wrap = ("strace", "-f", "-qq", "-e", f"trace={call}", "-e", inject, "-o", bench.folder / "strace")
        run = bench.run(out, "-j", chance.choice(["1", "2"]), wrap=wrap, timeout=180)
        if kills:
            # strace ends as its child did.
            tally.runs += 1
            tally.disturbed += 1
        else:
            tally.judge(run, tree(out) == bench.files if os.path.isdir(out) else False, inject)
        if os.path.isdir(out):
            bench.complain_about_halves(tally, out, inject)
        bench.complain_about_end(tally, out, inject)
    return tally
