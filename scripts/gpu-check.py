"""The stages of scripts/gpu-check.sh on a machine with a GPU: what is there, each kernel, training, sanitizers, speed, profile.

Usage: gpu-check.py [--only 0,2] [--seconds 540] [--tiny] [--libraries DIR]
Prints a line of JSON for what was found and one behind each stage, and writes the same lines to $OUT/gpu-check.jsonl (target/gpu-check.jsonl without OUT). The
last line sums up; the exit status is 1 if something failed. A stage that fails, or lacks what it needs, does not stop the others; one that takes longer than it
may is cut off, and what it had found is kept. --tiny leaves out sizes that take a GPU, and lets a stage take all the time that is left, for trying the script on the mock
driver.
"""

import argparse
import csv
import ctypes
import glob
import io
import json
import lzma
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "gpu-check"
PEER = ROOT / "benches" / "gpu_peer.py"
# The tests against golden numbers that go through trainers and predictors, and the one among them that asks for a checkpoint that does not travel.
GOLDENS = [ROOT / "tests" / "tests" / name for name in ("parity_machine.rs", "parity_head/retrain.rs")]
LEFT_OUT = "published_checkpoint"
LIBRARIES = ("libcuda.so.1", "libcublas.so.13", "libcublasLt.so.13", "libcurand.so.10", "libnvrtc.so.13")
# Seconds that a stage may take; speed takes what the others leave, less what the profile needs.
SECONDS = {0: 45, 1: 110, 2: 100, 3: 90, 4: 540, 5: 45}
PROFILE = 45
METRICS = {
    "gpu__time_duration.sum": "nanoseconds",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "sm_percent",
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": "memory_percent",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "dram_percent",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "occupancy_percent",
}


class Lacking(Exception):
    """Something that a stage needs is not on this machine."""


class Report:
    def __init__(self):
        path = Path(os.environ.get("OUT", ROOT / "target")) / "gpu-check.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        self.file, self.lock = path.open("w"), threading.Lock()

    def tell(self, line):
        text = json.dumps(line)
        with self.lock:
            print(text, flush=True)
            print(text, file=self.file, flush=True)


class Ran:
    """A program that has ended, or was ended."""

    def __init__(self, status, out, err, cut_off):
        self.status, self.out, self.err, self.cut_off = status, out, err, cut_off

    def why(self):
        lines = (self.err.strip() or self.out.strip()).splitlines()[-5:]
        return f"status {self.status}: " + " | ".join(lines)[-800:]


def run(command, seconds, env=None, given=None, each=None):
    """Runs a program with all that it starts, and ends them when the seconds are over. `each` sees every line of its output at once."""
    process = subprocess.Popen(
        [str(word) for word in command], stdin=subprocess.PIPE if given else subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, errors="replace", env={**os.environ, **(env or {})}, start_new_session=True,
    )
    out, err, cut_off = [], [], threading.Event()

    def end():
        cut_off.set()
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def read():
        for line in process.stdout:
            out.append(line)
            if each:
                each(line)

    clock = threading.Timer(max(1.0, seconds), end)
    readers = [threading.Thread(target=read), threading.Thread(target=lambda: err.extend(process.stderr))]
    for thread in (clock, *readers):
        thread.start()
    if given:
        try:
            process.stdin.write(given)
            process.stdin.close()
        except BrokenPipeError:
            pass
    status = process.wait()
    for thread in readers:
        thread.join()
    clock.cancel()
    return Ran(status, "".join(out), "".join(err), cut_off.is_set())


def of_json(line):
    """The object on a line, if there is one."""
    try:
        found = json.loads(line)
        return found if isinstance(found, dict) else None
    except ValueError:
        return None


def libraries(first):
    """Where each library of CUDA lies: in the folders said first, beside PyTorch, where the loader looks, or in a toolkit."""
    given = [folder for folder in (*first, *os.environ.get("LD_LIBRARY_PATH", "").split(":")) if folder]
    site = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    beside = [folder for base in sorted(site) for folder in sorted(glob.glob(f"{base}/nvidia/*/lib"))]
    toolkits = [folder for pattern in ("/usr/local/cuda*/lib64", "/usr/local/cuda*/targets/x86_64-linux/lib", "/usr/local/nvidia/lib64", "/usr/lib/x86_64-linux-gnu")
                for folder in sorted(glob.glob(pattern), reverse=True)]
    cache = shutil.which("ldconfig") or "/sbin/ldconfig"
    known = run([cache, "-p"], 20).out if os.path.exists(cache) else ""
    found = {}
    for name in LIBRARIES:
        listed = [os.path.dirname(path) for path in re.findall(rf"{re.escape(name)} .*x86-64.* => (\S+)", known)]
        for folder in (*given, *beside, *listed, *toolkits):
            if os.path.exists(os.path.join(folder, name)):
                found[name] = folder
                break
    return found


def verdicts_of(said):
    """The verdict of each test that the program of golden numbers tells of, and what is missing: of the tests that it ran, or of those that the sources have.
    It calls it a success when a filter fits the name of no test."""
    found = dict(re.findall(r"^test (\S+) \.\.\. (\w+)", said, re.MULTILINE))
    asked = re.search(r"running (\d+) test", said)
    each = {path.name: re.findall(r"#\[test\]\s+fn (\w+)", path.read_text()) if path.exists() else [] for path in GOLDENS}
    least = sum(LEFT_OUT not in name for names in each.values() for name in names)
    none = [name for name, names in each.items() if not names]
    if none:
        return found, f"{', '.join(none)}: no test is there"
    if not asked or len(found) != int(asked[1]) or len(found) < least:
        return found, f"{len(found)} tests told a verdict of {asked[1] if asked else 'none'} that ran, and the sources have {least}"
    return found, None


class Check:
    def __init__(self, given, report):
        self.given, self.report = given, report
        self.deadline = time.monotonic() + given.seconds
        self.libraries = libraries(given.libraries)
        before = [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder]
        # For engraft's own programs; PyTorch brings its libraries.
        self.env = {"LD_LIBRARY_PATH": ":".join(dict.fromkeys([*given.libraries, *before, *self.libraries.values()]))}
        self.program = FOLDER / "gpu_check"
        self.ceiling = None

    def tool(self, name):
        """A program of the toolkit."""
        found = shutil.which(name) or next(iter(sorted(glob.glob(f"/usr/local/cuda*/bin/{name}"), reverse=True)), None)
        found = found or next(iter(sorted(glob.glob(f"/opt/nvidia/nsight-compute/*/{name}"), reverse=True)), None)
        if not found:
            raise Lacking(f"{name} is not on this machine")
        return found

    def built(self):
        if not self.program.exists():
            raise Lacking(f"{self.program} is not there: run scripts/gpu-check.sh build, and carry its folder")

    def has_torch(self):
        if run([sys.executable, "-c", "import torch"], 60).status != 0:
            raise Lacking("PyTorch is not on this machine")

    # Stage 0.
    def facts(self, seconds):
        self.built()
        line = {"cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version(), "libraries": self.libraries}
        query = "name,compute_cap,driver_version,memory.total,memory.used,clocks.max.sm,clocks.max.mem"
        try:
            told = run([self.tool("nvidia-smi"), f"--query-gpu={query}", "--format=csv,noheader,nounits"], 20).out.strip().splitlines()
            line["gpu"] = dict(zip(query.split(","), [cell.strip() for cell in told[0].split(",")])) if told else "nvidia-smi names none"
        except Lacking as lacking:
            line["gpu"] = str(lacking)
        # The loader's own word, with every function that the program asks for.
        loaded = run([self.program], 30, self.env)
        line["program"] = "loads" if "expected `train`" in loaded.err else loaded.why()
        line["cublasLt"] = self.version_of_products()
        ceilings = None if self.given.tiny else run([sys.executable, PEER, "ceilings"], seconds - 10)
        if ceilings:
            found = of_json(ceilings.out.strip().splitlines()[-1]) if ceilings.out.strip() else None
            line["ceilings"] = found or ceilings.why()
            self.ceiling = (found or {}).get("bf16_teraflops")
        return line, line["program"] == "loads" and isinstance(line["gpu"], dict)

    def version_of_products(self):
        folder = self.libraries.get("libcublasLt.so.13")
        code = "import ctypes, sys; f = ctypes.CDLL(sys.argv[1]).cublasLtGetVersion; f.restype = ctypes.c_size_t; print(f())"
        told = run([sys.executable, "-c", code, f"{folder}/libcublasLt.so.13"], 30, self.env) if folder else None
        return told.out.strip() or told.why() if told else "libcublasLt.so.13 was not found"

    def capability(self):
        """The device's, 0 where there is none; asked of the driver."""
        try:
            driver = ctypes.CDLL(os.path.join(self.libraries["libcuda.so.1"], "libcuda.so.1"))
            device, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
            driver.cuInit(0)
            driver.cuDeviceGet(ctypes.byref(device), 0)
            driver.cuDeviceGetAttribute(ctypes.byref(major), 75, device)
            driver.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
            return 10 * major.value + minor.value
        except (OSError, KeyError, AttributeError):
            return 0

    def of_tests(self, quick):
        """The environment of the kernels' tests: few shapes, or all."""
        image = "engraft.sm_90.cubin" if self.capability() == 90 else "engraft.compute_80.ptx"
        env = {**self.env, "ENGRAFT_IMAGES": f"{FOLDER / image}:{FOLDER / 'tests.compute_80.ptx'}"}
        return {**env, "ENGRAFT_QUICK": "1"} if quick else env

    def tests(self):
        self.built()
        # The longest first.
        return sorted((FOLDER / "tests").iterdir(), key=lambda path: (path.name not in ("attention_test", "kam_test", "labels_test"), path.name))

    # Stage 1.
    def kernels(self, seconds):
        env, ends = self.of_tests(self.given.tiny), time.monotonic() + seconds
        with ThreadPoolExecutor(max(2, min(8, os.cpu_count() or 2))) as pool:
            ran = list(pool.map(lambda test: (test.name, run([test], ends - time.monotonic(), env)), self.tests()))
        found, failures = {}, {}
        for name, of in ran:
            for line in of.out.splitlines():
                told = re.match(r"(\S+) +(\d+) cases +(\d+) launches  error (\S+)  (\S+)", line)
                if told:
                    kernel, cases, launches, error, verdict = told.groups()
                    one = found.setdefault(kernel, {"cases": 0, "launches": 0, "error": 0.0, "ok": True})
                    one["cases"] += int(cases)
                    one["launches"] += int(launches)
                    one["error"] = max(one["error"], float(error))
                    one["ok"] = one["ok"] and verdict == "ok"
            if of.status != 0:
                said = [line for line in of.err.splitlines() if line.startswith("FAILED")]
                failures[name] = "cut off" if of.cut_off else {"said": said[:6] or of.why(), "lines": len(said)}
        kernels = (FOLDER / "kernels.txt").read_text().split()
        untested = [kernel for kernel in kernels if kernel not in found]
        worst = sorted(found, key=lambda kernel: -found[kernel]["error"])[:5]
        line = {
            "kernels": len(kernels) - len(untested), "cases": sum(one["cases"] for one in found.values()), "launches": sum(one["launches"] for one in found.values()),
            "failed": sorted(kernel for kernel, one in found.items() if not one["ok"]), "untested": untested, "failures": failures,
            "largest_errors": {kernel: found[kernel]["error"] for kernel in worst},
        }
        return line, not (line["failed"] or untested or failures)

    # Stage 2.
    def training(self, seconds):
        self.built()
        cases = []

        def each(text):
            line = of_json(text)
            if line and "case" in line:
                cases.append(line)
                self.report.tell({"stage": 2, **line})

        # The trainings have at least half of the time.
        ends, goldens = time.monotonic() + seconds, self.goldens(seconds / 2)
        ran = run([self.program, "train", *(["tiny"] if self.given.tiny else [])], ends - time.monotonic(), self.env, each=each)
        failed = [line["case"] for line in cases if not line["passed"]] + [name for name, verdict in goldens.items() if verdict != "ok"]
        line = {"goldens": len(goldens), "cases": len(cases), "failed": failed}
        if ran.cut_off:
            line["cut_off"] = True
        elif ran.status not in (0, 1):
            line["error"] = ran.why()
        return line, bool(cases) and ran.status == 0 and not failed

    def goldens(self, seconds):
        """The verdict of each test against PyTorch's numbers."""
        env = {**self.env, "ENGRAFT_GOLDENS": str(ROOT / "tests" / "fixtures" / "golden"), "ENGRAFT_GOLDENS_DEVICE": "cuda:0"}
        packed = FOLDER / "goldens.xz"
        if not packed.exists():
            return {"goldens": f"{packed} is not there: run scripts/gpu-check.sh build"}
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "goldens"
            program.write_bytes(lzma.decompress(packed.read_bytes()))
            program.chmod(0o755)
            ran = run([program, "parity_machine", "retrain", "--skip", LEFT_OUT], seconds, env)
        found, missing = verdicts_of(ran.out)
        whole = ran.status == 0 and not missing
        why = "cut off" if ran.cut_off else missing if ran.status == 0 else ran.why()
        self.report.tell({"stage": 2, "goldens": found} | ({} if whole else {"error": why}))
        return found if whole else found | {"goldens": "not whole"}

    # Stage 3.
    def sanitizers(self, seconds):
        tool, ends = self.tool("compute-sanitizer"), time.monotonic() + seconds
        env, work = self.of_tests(True), []
        work += [("memcheck", test.name, [test]) for test in self.tests()] + [("memcheck", "steps", [self.program, "few"])]
        # Races are those of shared memory: of our kernels, whose tests launch no others.
        work += [("racecheck", test.name, [test]) for test in self.tests()]

        def one(of):
            kind, name, command = of
            if time.monotonic() > ends - 3:
                return kind, name, "left out"
            ran = run([tool, "--tool", kind, "--error-exitcode", "97", "--print-limit", "10", *command], ends - time.monotonic(), env)
            if ran.cut_off:
                return kind, name, "cut off"
            told = re.search(r"ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard", ran.out + ran.err)
            if not told:
                return kind, name, ran.why()
            errors = int(told[1] or told[2])
            if errors == 0 and ran.status == 0:
                return kind, name, 0
            said = [line.strip("= ") for line in ran.out.splitlines() if line.startswith("=========") and line.strip("= ")]
            return kind, name, {"errors": errors, "status": ran.status, "said": said[1:8]}

        with ThreadPoolExecutor(max(2, min(6, os.cpu_count() or 2))) as pool:
            found = list(pool.map(one, work))
        clean = sum(result == 0 for _, _, result in found)
        unfinished = [f"{kind} {name}: {result}" for kind, name, result in found if result in ("left out", "cut off")]
        wrong = {f"{kind} {name}": result for kind, name, result in found if result != 0 and result not in ("left out", "cut off")}
        return {"clean": clean, "of": len(work), "wrong": wrong, "unfinished": unfinished}, "unfinished" if unfinished and not wrong else not wrong

    # Stage 4.
    def speed(self, seconds):
        self.built()
        self.has_torch()
        found = []

        def each(text):
            line = of_json(text)
            if not line:
                return
            if self.ceiling and "teraflops" in line:
                line["of_ceiling"] = round(line["teraflops"] / self.ceiling, 3)
            found.append(line)
            self.report.tell({"stage": 4, **line})

        tiny = ["--tiny", "--turn", "0.3"] if self.given.tiny else []
        command = [sys.executable, PEER, "speed", self.program, "--libraries", self.env["LD_LIBRARY_PATH"], "--seconds", max(10, seconds - 25), *tiny]
        ran = run(command, seconds, each=each)
        ratios = {f"{line['model']}, {line['shape']}, dropout {line['dropout']}": line["ratio"] for line in found if "ratio" in line}
        line = {"ratios": ratios, "least": min(ratios.values(), default=None)}
        # Whoever reads the least ratio has to know of which cases it is not.
        left = [name for told in found for name in told.get("left_out", [])]
        left += [f"{told['model']}, {told['shape']}, dropout {told['dropout']}: {', '.join(told['errors'])}" for told in found if "errors" in told]
        if left:
            line["unfinished"] = left
        if ran.cut_off:
            line["cut_off"] = True
        elif ran.status != 0:
            line["error"] = ran.why()
        passed = bool(ratios) and ran.status == 0 and all("ratio" in told for told in found if "model" in told)
        return line, "unfinished" if passed and left else passed

    # Stage 5.
    def profile(self, seconds):
        self.built()
        tool, ends = self.tool("ncu"), time.monotonic() + seconds
        model = {"layers": 12, "hidden": 768, "heads": 12, "feed_forward": 3072, "vocabulary": 30522, "longest": 128, "dropout": 0.1, "dtype": "bf16"}
        asked = "".join(json.dumps(line) + "\n" for line in ({"model": model}, {"batches": [[128] * 64]}, {"steps": 1}))
        times = self.measured(tool, ends, asked, ["--metrics", "gpu__time_duration.sum"])
        by_kernel = {}
        for name, of in times:
            one = by_kernel.setdefault(name, {"launches": 0, "nanoseconds": 0.0})
            one["launches"] += 1
            one["nanoseconds"] += of["nanoseconds"]
        total = sum(of["nanoseconds"] for of in by_kernel.values())
        order = sorted(by_kernel, key=lambda name: -by_kernel[name]["nanoseconds"])
        line = {"milliseconds": round(total / 1e6, 3), "launches": len(times),
                "largest": {name[:80]: {"share": round(by_kernel[name]["nanoseconds"] / total, 4), **by_kernel[name]} for name in order[:12]}}
        self.report.tell({"stage": 5, **line})
        ours = set((FOLDER / "kernels.txt").read_text().split())
        three = [name for name in order if name in ours][:3]
        how = ["--metrics", ",".join(METRICS), "--kernel-name", f"regex:^({'|'.join(three)})$", "--launch-count", "12"]
        looked = self.measured(tool, ends, asked, how) if three else []
        # The first launch of each that was looked at.
        return {"looked_at": {name: next((of for found, of in looked if found == name), None) for name in three}}, bool(three)

    def measured(self, tool, ends, asked, how):
        """What ncu says of every launch: names and metrics."""
        command = [tool, "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none", *how, self.program, "speed"]
        ran = run(command, ends - time.monotonic(), self.env, given=asked)
        rows = [line for line in ran.out.splitlines() if line.startswith('"')]
        found = []
        # Behind the names comes a row of units.
        for row in list(csv.DictReader(io.StringIO("\n".join(rows))))[1:]:
            of = {METRICS[metric]: float(row[metric].replace(",", "")) for metric in METRICS if row.get(metric)}
            if of:
                found.append((row["Kernel Name"].split("(")[0], of))
        if not found:
            raise RuntimeError("cut off" if ran.cut_off else ran.why())
        return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="0,1,2,3,4,5", help="stages, with ',' between them")
    parser.add_argument("--seconds", type=float, default=540.0, help="for all stages together")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--libraries", action="append", default=[], help="a folder in which CUDA's libraries are looked for first")
    given = parser.parse_args()
    report = Report()
    check = Check(given, report)
    stages = {0: check.facts, 1: check.kernels, 2: check.training, 3: check.sanitizers, 4: check.speed, 5: check.profile}
    verdicts = {}
    for number in sorted(int(stage) for stage in given.only.split(",")):
        stage, began = stages[number], time.monotonic()
        left = check.deadline - began - (PROFILE if number == 4 and "5" in given.only else 0)
        if left < 10:
            line, verdict = {}, "left out: the time is spent"
        else:
            try:
                line, passed = stage(left if given.tiny else min(SECONDS[number], left))
                verdict = passed if isinstance(passed, str) else "passed" if passed else "failed"
            except Lacking as lacking:
                line, verdict = {"why": str(lacking)}, "lacking"
            except Exception as error:  # noqa: BLE001 - the other stages go on
                line, verdict = {"why": f"{type(error).__name__}: {error}"}, "failed"
        verdicts[stage.__name__] = verdict
        report.tell({"stage": number, "name": stage.__name__, "verdict": verdict, "seconds": round(time.monotonic() - began, 1), **line})
    # The profile only informs.
    failed = [name for name, verdict in verdicts.items() if verdict != "passed" and name != "profile"]
    report.tell({"stages": verdicts, "passed": not failed})
    sys.exit(bool(failed))


main()
