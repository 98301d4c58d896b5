"""What programs cost, and runs of engraft, for the benchmarks beside this file."""

import json
import os
import subprocess
import sys
import tempfile
import time

import ledger


def timed(*command, stdin=None, stdout=None):
    """Processor seconds, peak MiB and seconds of a program that succeeds; if it does not, what it says is shown, but for what goes to `stdout`."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen([str(word) for word in command], stdin=stdin, stdout=stdout or said, stderr=said)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.monotonic() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            said.seek(0)
            sys.exit(f"{command} failed with {child.returncode}: {said.read().decode()}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, seconds


class Runs:
    """Runs of engraft, with output folders in `work`."""

    def __init__(self, engraft, work):
        self.engraft, self.work = engraft, work

    def run(self, stages, out, *options, jobs=1):
        """What stages cost whose inputs are there or made with them."""
        return timed(self.engraft, "run", *stages.split(), "--jobs", jobs, "--out", self.work / out, *options)

    def size(self, folder):
        """Bytes of what lies in a folder."""
        return sum(file.stat().st_size for file in (self.work / folder).rglob("*") if file.is_file())

    def facts(self, out, stage):
        """What the last run of a stage has recorded."""
        return ledger.made(self.work / out, stage)["facts"]

    def parts(self, stage, out, *options):
        """The stages of the parts of a stage."""
        command = [self.engraft, "plan", "--graph", "--json", "--out", self.work / out, *options]
        plan = subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout
        names = [json.loads(line)["stage"] for line in plan.splitlines()]
        return [name for name in names if name.startswith(f"{stage}.part-")]
