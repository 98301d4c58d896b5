"""What `engraft.Stream` promises, on the shards of an output folder.

Usage: stream.py OUT [EXPECTED]
PYTHONPATH names the package, unless it is installed. EXPECTED has the input ids of the first steps, as Rust's own stream gives them: JSON, for
arguments of many kinds, epoch by epoch, step by step and task by task.
Ends with status 0 if every promise holds.
"""

import json
import multiprocessing
import os
import pickle
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import engraft

out, shards = Path(sys.argv[1]), Path(sys.argv[1]) / "shards"
HOW = {"items": 48, "seed": 3, "window": 4}


def stream(**how):
    return engraft.Stream(shards, **(HOW | how))


def rows(batch):
    """The samples of a batch, without padding."""
    labels = batch["labels"]
    for row, (ids, mask) in enumerate(zip(batch["input_ids"], batch["attention_mask"])):
        label = labels[row][mask == 1] if labels.ndim == 2 else labels[row]
        yield tuple(ids[mask == 1].tolist()), tuple(np.atleast_1d(label).tolist())


def endless(of):
    while True:
        yield from of


def plain(step):
    return {task: list(rows(batch)) for task, batch in step.items()}


def together(parts):
    """The shares of all ranks side by side."""
    return {task: [row for part in parts for row in plain(part)[task]] for task in parts[0]}


def refused(kind, words, work):
    try:
        work()
    except kind as error:
        assert all(word in str(error) for word in words), error
        return
    raise AssertionError(f"nothing was refused: {words}")


def stored(task):
    files = sorted((shards / task).glob("train-*.parquet"))
    for row in (row for file in files for row in pq.read_table(file).to_pylist()):
        yield tuple(row["input_ids"]), tuple(row.get("labels") or [row["label"]])


def the_order_is_that_of_rust():
    if len(sys.argv) < 3:
        return
    for case in json.loads(Path(sys.argv[2]).read_text()):
        found = stream(**case["how"])
        for epoch, steps in enumerate(case["epochs"]):
            found.seek(epoch)
            for number, step in enumerate(steps):
                batch = {task: of["input_ids"].tolist() for task, of in next(found).items()}
                assert batch == step, f"{case['how']}, epoch {epoch}, step {number}"


def a_folder_may_be_named_by_its_url():
    here, there = stream(), engraft.Stream((out / "shards").absolute().as_uri(), **HOW)
    assert plain(next(here)) == plain(next(there))


def an_epoch_shows_every_row_once():
    one = stream(items=50)
    triples = json.loads((shards / "index.json").read_text())["triples"]["train"]
    assert len(one) == -(-triples // 50) and one.tasks == ["subject", "object", "relation", "triplet"]
    shown = {task: [] for task in one.tasks}
    for step in one:
        for task, of in plain(step).items():
            shown[task] += of
    assert one.step == len(one) and one.epoch == 1
    for task, found in shown.items():
        # The last batch goes on into the next epoch, which has other negatives.
        every = Counter(stored(task))
        assert not every - Counter(found), f"{task}: a row was not shown"
    again = [plain(step) for step in one]
    assert len(again) == len(one) and one.epoch == 2
    # Fresh negatives: the same triples, other corruptions of them.
    ones, zeros = ([{row for row in of if row[1] == (label,)} for of in (shown["triplet"], [row for step in again for row in step["triplet"]])] for label in (1, 0))
    assert len(ones[0] - ones[1]) <= 50, "the same triples, but for those of the batch between the epochs"
    repeated = len(zeros[0] & zeros[1]) / len(zeros[0])
    assert repeated < 0.9, f"{repeated:.2f} of the negatives are those of the first epoch"
    same = stream(items=50, negatives="stored")
    same.seek(1)
    every = Counter(stored("triplet"))
    assert all(row in every for step in same for row in plain(step)["triplet"])


def states_are_good_for_any_number_of_ranks():
    one = endless(stream())
    whole = [plain(next(one)) for _ in range(90)]
    first = stream()
    steps = endless(first)
    [next(steps) for _ in range(30)]
    state = json.loads(json.dumps(first.state_dict()))
    three = [stream(rank=rank, world_size=3) for rank in range(3)]
    [rank.load_state_dict(state) for rank in three]
    steps = [endless(rank) for rank in three]
    for step in range(30, 60):
        assert together([next(rank) for rank in steps]) == whole[step], step
    assert all(rank.state_dict() == three[0].state_dict() for rank in three)
    # Two ranks, each with two that take turns.
    two = [[stream(rank=rank, world_size=2) for _ in range(2)] for rank in range(2)]
    for rank in two:
        for worker, each in enumerate(rank):
            each.load_state_dict(three[0].state_dict())
            each.take_turns(worker, 2)
    steps = [[endless(each) for each in rank] for rank in two]
    for step in range(60, 90):
        assert together([next(rank[step % 2]) for rank in steps]) == whole[step], step


def the_beginning_of_an_epoch_is_found():
    for how in ({}, {"pool": 4}, {"schedule": "merged"}, {"schedule": "proportional"}, {"schedule": {"round_robin": "paper"}}, {"schedule": {"temperature": 2.0}}, {"items": None, "tokens": 1500, "pool": 300}):
        one, other = stream(**how), stream(**how)
        for epoch in range(3):
            assert one.epoch == epoch, how
            state = one.state_dict()
            other.seek(epoch)
            assert other.state_dict() == state, (how, epoch)
            for _ in one:
                pass
        assert list(iter(lambda: next(one, None), None)) == [], "an end stays an end until the next loop"


def arrays_are_what_the_types_say_and_nothing_is_copied():
    for task, batch in next(stream(pack=64)).items():
        matrix = {name: batch[name] for name in ("input_ids", "attention_mask", "token_type_ids", "position_ids", "segment_ids")}
        assert all(of.dtype == np.int32 and of.shape == batch["input_ids"].shape for of in matrix.values())
        assert batch["input_ids"].shape[1] <= 64 and batch["samples"].dtype == np.int64
        samples = batch["samples"]
        assert batch["attention_mask"].sum() == samples[:, 2].sum() and len(samples) > len(batch["input_ids"])
        assert batch["labels"].dtype == np.int64
    for how in ({}, {"pack": 64}):
        for array in (array for batch in next(stream(**how)).values() for array in batch.values()):
            assert np.from_dlpack(array).ctypes.data == array.ctypes.data and array.flags.writeable and array.flags.c_contiguous
            # Its memory is Rust's, which gave it away: NumPy has made none.
            whole = array if array.base is None else array.base
            assert not array.flags.owndata and type(whole).__name__ == "PySliceContainer", type(whole)


def in_fork(holds):
    """Asserts that something holds in a process forked from this one, which is given up after a minute."""
    if os.fork() == 0:
        ended = 1
        try:
            signal.alarm(60)
            ended = int(not holds())
        finally:
            os._exit(ended)
    assert os.wait()[1] == 0, "in a fork"


def copies_go_on_where_the_first_stood():
    one = stream(rank=1, world_size=2)
    next(one)
    copy = pickle.loads(pickle.dumps(one))
    assert repr(copy) == repr(one)
    assert plain(next(one)) == plain(next(copy))
    # Of a fork, whose threads are not there; and one that is made in a fork, of which others were made before.
    expected = [plain(next(copy)) for _ in range(3)]
    anew = plain(next(stream()))
    in_fork(lambda: [plain(next(one)) for _ in range(3)] == expected)
    in_fork(lambda: plain(next(stream())) == anew)
    assert [plain(next(one)) for _ in range(3)] == expected
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(len, (one,)) == len(one)


def python_goes_on_meanwhile():
    """Another thread of Python gets its turn while a step is made: had the stream kept the lock, none of its turns would fall into the time."""
    turns, over = [], threading.Event()

    def count():
        while not over.is_set():
            turns.append(time.perf_counter())
            time.sleep(0)

    thread = threading.Thread(target=count)
    thread.start()
    made = stream(items=4096, windows_ahead=0)
    began = time.perf_counter()
    next(made)
    ended = time.perf_counter()
    over.set()
    thread.join()
    within = sum(began < turn < ended for turn in turns)
    assert within > 10, f"{within} turns in {ended - began:.3f} s"


def ahead_of(before):
    """Names of the stream's threads that were not there before, and their priorities; threads that end while one looks are left out."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        try:
            name, priority = (task / "comm").read_text().strip(), os.getpriority(os.PRIO_PROCESS, int(task.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(task.name) not in before and name in ("engraft-stream", "engraft-read", "engraft-read-0"):
            found.append((name, priority))
    return sorted(found)


def threads_that_work_ahead_stand_behind():
    """They take no processor from the program's own threads. Linux alone has priorities of threads."""
    if sys.platform != "linux":
        return
    behind = min(os.getpriority(os.PRIO_PROCESS, 0) + 10, 19)
    for windows, names in ((1, ["engraft-read", "engraft-read-0", "engraft-stream"]), (0, ["engraft-read-0", "engraft-stream"])):
        before = {int(task.name) for task in Path("/proc/self/task").iterdir()}
        made = stream(items=50, windows_ahead=windows)
        next(made)
        expected, late = [(name, behind) for name in names], time.monotonic() + 20
        # A pool that only found out whether the settings fit may be ending still, and the others beginning.
        while (found := ahead_of(before)) != expected:
            assert time.monotonic() < late, f"{found}, expected {expected}"
            os.sched_yield()


def a_fork_gives_up_a_stream_whose_threads_it_has_not():
    held = [stream(items=50)]
    next(held[0])
    in_fork(lambda: held.clear() is None)
    held.clear()


def shards_of_a_server_are_the_same():
    """Over HTTP, from a server that gives ranges."""
    asked = []

    class Server(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            file = shards / self.path.removeprefix("/shards/")
            whole = file.read_bytes() if file.is_file() else None
            first, last = 0, len(whole or b"") - 1
            if span := self.headers.get("Range"):
                begin, end = span.removeprefix("bytes=").split("-")
                first, last = (int(begin), min(int(end or last), last)) if begin else (max(0, last + 1 - int(end)), last)
            body = (whole or b"")[first : last + 1]
            asked.append(self.path)
            self.send_response(404 if whole is None else 206 if span else 200)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", '"one"')
            if span:
                self.send_header("Content-Range", f"bytes {first}-{last}/{len(whole or b'')}")
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with tempfile.TemporaryDirectory() as cache:
            how = HOW | {"negatives": "stored", "cache": cache}
            far = engraft.Stream(f"http://127.0.0.1:{server.server_port}/shards", **how)
            near = stream(negatives="stored")
            for _ in range(3):
                assert plain(next(far)) == plain(next(near))
            assert far.state_dict() == near.state_dict()
            assert any(path.endswith(".parquet") for path in asked)
            # Fresh negatives, too, of the graph that lies here; the second epoch has others.
            how = HOW | {"negatives": "fresh", "graph": out, "cache": cache}
            far, near = engraft.Stream(f"http://127.0.0.1:{server.server_port}/shards", **how), stream(negatives="fresh", graph=out)
            for epoch in (0, 1):
                far.seek(epoch), near.seek(epoch)
                assert plain(next(far)) == plain(next(near)), epoch
            refused(ValueError, ["graph=None"], lambda: engraft.Stream(f"http://127.0.0.1:{server.server_port}/shards", **(how | {"graph": None})))
            refused(OSError, ["nowhere", "404"], lambda: engraft.Stream(f"http://127.0.0.1:{server.server_port}/nowhere", **how))
    finally:
        server.shutdown()


def what_is_wrong_is_named():
    refused(ValueError, ["items=0", "from 1 to 1000000"], lambda: stream(items=0))
    refused(ValueError, ["items=True"], lambda: stream(items=True))
    refused(TypeError, ["no argument itens"], lambda: stream(itens=3))
    refused(ValueError, ["tokens=5", "items=48"], lambda: stream(tokens=5))
    refused(ValueError, ["schedule='kimaera'", '"kimera"'], lambda: stream(schedule="kimaera"))
    refused(ValueError, ["temperature"], lambda: stream(schedule={"temperature": 0}))
    refused(ValueError, ['part="dev"', '"valid"'], lambda: stream(part="dev"))
    refused(ValueError, ["rank=2", "world_size=2"], lambda: stream(rank=2, world_size=2))
    refused(ValueError, ["budget", "items"], lambda: stream(items=None, tokens=900, schedule="merged"))
    refused(OSError, ["nowhere", "engraft run shards"], lambda: engraft.Stream(out / "nowhere"))
    refused(ValueError, ['path="ftp://host/x": `ftp://`', "s3://"], lambda: engraft.Stream("ftp://host/x"))
    refused(ValueError, ["epoch=-1", "a whole number"], lambda: stream().seek(-1))
    refused(TypeError, ["token budget"], lambda: len(stream(items=None, tokens=900)))
    state = stream().state_dict()
    refused(ValueError, ["seed was 3", "is 4 now"], lambda: stream(seed=4).load_state_dict(state))
    refused(ValueError, ["no state of a stream"], lambda: stream().load_state_dict({"step": 3}))
    state["step"] += 1
    refused(ValueError, ["damaged"], lambda: stream().load_state_dict(state))


def negatives_that_cannot_be_drawn_are_no_secret():
    with tempfile.TemporaryDirectory() as folder:
        alone = Path(folder) / "shards"
        shutil.copytree(shards, alone)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            engraft.Stream(alone, **HOW)
            assert len(told) == 1 and "graph=" in str(told[0].message)
            engraft.Stream(alone, negatives="stored", **HOW)
            assert len(told) == 1
        refused(ValueError, ["graph=None"], lambda: engraft.Stream(alone, negatives="fresh", **HOW))
        given, own = engraft.Stream(alone, graph=out, **HOW), stream()
        given.seek(1), own.seek(1)
        assert plain(next(given)) == plain(next(own))
        shutil.rmtree(alone / "tokenizer")
        refused(OSError, ["tokenizer", "stored"], lambda: engraft.Stream(alone, graph=out, **HOW))
        # A step that cannot be read leaves the stream where it stood.
        for file in (alone / "subject").glob("train-*.parquet"):
            bytes_ = bytearray(file.read_bytes())
            bytes_[len(bytes_) // 3] ^= 1
            file.write_bytes(bytes_)
        broken = engraft.Stream(alone, negatives="stored", **HOW)
        refused(OSError, ["subject/train-"], lambda: [step for step in broken])
        assert broken.step < len(broken)


if __name__ == "__main__":
    checks = [value for value in list(globals().values()) if callable(value) and getattr(value, "__module__", "") == "__main__"]
    helpers = {stream, rows, endless, plain, together, refused, stored, in_fork, ahead_of}
    for check in checks:
        if check not in helpers:
            began = time.perf_counter()
            check()
            print(f"{check.__name__}: {time.perf_counter() - began:.2f} s")
