"""Corpus statistics and semantic maps beside the peers a user would pick instead, each in its own process, in one run.

Usage: maps.py BENCH DATA --glove FOLDER [--gensim PYTHON] [--words MILLIONS...] [--caps MIB...] [--times N] [--sentences N] [--vocabulary FILE] [--out FOLDER] [--parts PART...]
BENCH is the built program `bench`; DATA has medquad/, hoc/, bc5cdr/, pubmedqa/ and mesh/ as published; the
folder of --glove is a checkout of GloVe, which is made there if it was not. This Python needs benches/requirements.txt, or --gensim names
another for gensim.

The corpus: answers of MedQuAD and abstracts of HoC, BC5CDR and PubMedQA, cut into sentences, letters and digits only, in lower case, one sentence a
line; its sentences are repeated, each time in another seeded order, until it has the words asked for. So all sides split it alike.

counts   the program `count` beside GloVe's `vocab_count` and `cooccur`, window 10, weights 1/distance, no word left out; the script fails unless
         all counts are equal (relatively to 1e-9). Then under bounds on memory, with what lay on disk meanwhile; under the widest one also with
         the largest corpus N times (--times), read from a pipe
phrases  `phrases` beside gensim's `Phrases` (benches/phrases_peer.py), NPMI from 0.5, on the smallest corpus
scores   look-ups in the matrix of scores beside SciPy's
maps     `maps` on distinct sentences: writing, size beside squares of float32, expanding beside NumPy (benches/maps_peer.py); the script fails unless
         both have the same sums

Seconds are of the processor unless said otherwise, so that other work on the machine counts little. Prints tables in Markdown.
"""

import argparse
import hashlib
import json
import math
import os
import platform
import random
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from pathlib import Path

HERE = Path(__file__).resolve().parent
WINDOW = 10
#: What GloVe uses at most if nobody says otherwise, in GiB.
GLOVE_MEMORY = 4
#: What engraft uses at most where nothing else is said, in MiB.
MEMORY = 256


def texts(data):
    """What the four collections have to say, in the order of their files."""
    for file in sorted((data / "medquad").glob("**/*.xml")):
        yield from (answer.text or "" for answer in ET.parse(file).iter("Answer"))
    for file in sorted((data / "hoc/text").glob("*.txt")):
        yield from file.read_text(encoding="utf-8").splitlines()
    for file in sorted((data / "bc5cdr").glob("**/*.PubTator.txt")):
        for line in file.read_text(encoding="utf-8").splitlines():
            if found := re.match(r"\d+\|[ta]\|(.*)", line):
                yield found[1]
    for record in json.loads((data / "pubmedqa/data/ori_pqal.json").read_text(encoding="utf-8")).values():
        yield from record["CONTEXTS"]


def write_corpora(data, out, distinct, *millions):
    """A corpus for each number of words, and `distinct` sentences of which none is twice."""
    sentences = []
    for text in texts(data):
        for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z0-9])", " ".join(text.split())):
            if words := re.findall(r"[a-z0-9]+", sentence.lower()):
                sentences.append(" ".join(words))
    once, chance = list(dict.fromkeys(sentences)), random.Random(1)
    chance.shuffle(once)
    (out / "sentences.txt").write_text("".join(f"{line}\n" for line in once[: int(distinct)]), encoding="utf-8")
    for size in millions:
        chance, words = random.Random(1), 0
        with (out / f"{size}.txt").open("w", encoding="utf-8") as file:
            while words < float(size) * 1e6:
                chance.shuffle(sentences)
                for sentence in sentences:
                    file.write(sentence + "\n")
                    words += sentence.count(" ") + 1
                    if words >= float(size) * 1e6:
                        break
    headings = (data / "mesh/data/terms.tsv").read_text(encoding="utf-8").splitlines()[1:]
    (out / "terms.txt").write_text("".join(line.split("\t")[1] + "\n" for line in headings), encoding="utf-8")


def same_counts(counts, vocabulary, pairs):
    """The number of pairs, which both sides count alike; ends the script otherwise."""
    import numpy as np
    import pyarrow.parquet as pq

    ranks = {word: rank for rank, word in enumerate(pq.read_table(Path(counts) / "words.parquet", columns=["word"])["word"].to_pylist())}
    words = [line.split()[0] for line in Path(vocabulary).read_text(encoding="utf-8").splitlines()]
    if set(words) != set(ranks):
        sys.exit(f"engraft has {len(ranks):,} words, GloVe {len(words):,}")
    rank = np.array([ranks[word] for word in words], np.uint64)
    theirs = np.fromfile(pairs, dtype=[("left", "<i4"), ("right", "<i4"), ("count", "<f8")])
    left, right = rank[theirs["left"] - 1], rank[theirs["right"] - 1]
    table = pq.read_table(Path(counts) / "pairs.parquet")
    unit = json.loads((Path(counts) / "index.json").read_text())["weight_unit"]
    one, other = (table[name].to_numpy().astype(np.uint64) for name in ("left", "right"))
    ours, counted = np.minimum(one, other) << np.uint64(32) | np.maximum(one, other), table["count"].to_numpy() / unit
    order = np.argsort(ours)
    ours, counted = ours[order], counted[order]
    # GloVe writes a pair both ways round, and what is beside itself twice as much.
    for which in (left <= right, left >= right):
        keys = np.minimum(left, right)[which] << np.uint64(32) | np.maximum(left, right)[which]
        value = np.where(left == right, theirs["count"] / 2, theirs["count"])[which]
        order = np.argsort(keys)
        if not np.array_equal(keys[order], ours):
            sys.exit(f"engraft has {len(ours):,} pairs, GloVe {len(keys):,}, or others")
        apart = np.abs(value[order] - counted) / counted
        if apart.max() > 1e-9:
            sys.exit(f"counts are up to {apart.max():.2g} apart")
    return len(ours)


def scipy_look_ups(scores, text):
    """Look-ups a second of the processor in SciPy's matrix, of every two words of a sentence, as the program `count` looks them up."""
    import numpy as np
    import pyarrow.parquet as pq
    import scipy.sparse

    rows, columns = [], []
    words = pq.read_table(Path(scores) / "words.parquet")["word"].to_pylist()
    ids = {word: number for number, word in enumerate(words)}
    table = pq.read_table(Path(scores) / "pairs.parquet")
    left, right = table["left"].to_numpy(), table["right"].to_numpy()
    one = np.ones(len(left), np.float32)
    matrix = scipy.sparse.csr_matrix((np.r_[one, one], (np.r_[left, right], np.r_[right, left])), shape=(len(words), len(words)))
    for line in open(text, encoding="utf-8"):
        known = [ids[word] for word in line.split() if word in ids]
        for at, first in enumerate(known):
            rows += [first] * (len(known) - at - 1)
            columns += known[at + 1 :]
        if len(rows) >= 1_000_000:
            break
    rows, columns = np.array(rows, np.int32), np.array(columns, np.int32)
    start = time.process_time()
    found = matrix[rows, columns]
    seconds = time.process_time() - start
    return {"scipy": scipy.__version__, "look_ups_per_s": len(rows) / seconds, "hits": float((found > 0).mean())}


def on_disk(process):
    """Bytes of the nameless files that a process has open."""
    size = 0
    try:
        for file in Path(f"/proc/{process}/fd").iterdir():
            if os.readlink(file).endswith(" (deleted)"):
                size += file.stat().st_size
    except OSError:  # The file or the process has gone meanwhile.
        pass
    return size


def measure(*command, stdin=None, stdout=None, cwd=None, env=None, watch=0.0):
    """Seconds on the clock and of the processor and the peak in MiB of a process, what lay on disk without a name, and what it says at last."""
    # Who writes what it has found, GloVe, talks all the same.
    start, spooled, errors = time.perf_counter(), 0, subprocess.DEVNULL if stdout else None
    with (open(stdin, "rb") if stdin else open(os.devnull, "rb")) as source, (open(stdout, "wb") if stdout else tempfile.TemporaryFile()) as sink:
        child = subprocess.Popen([str(word) for word in command], stdin=source, stdout=sink, stderr=errors, cwd=cwd, env={**os.environ, **(env or {})})
        while watch:
            spooled = max(spooled, on_disk(child.pid))
            # A look that leaves the child to be waited for.
            if os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG):
                break
            time.sleep(watch)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            sys.exit(f"{command} failed with {child.returncode}")
        seconds, said = time.perf_counter() - start, {}
        if not stdout:
            sink.seek(0)
            said = json.loads(sink.read().decode().splitlines()[-1])
    return {"seconds": seconds, "processor": usage.ru_utime + usage.ru_stime, "peak": usage.ru_maxrss / 1024, "spooled": spooled, **said}


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|---" + "|--:" * (len(head) - 1) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print(flush=True)


def glove(given, text, memory):
    """GloVe's counts of a corpus, in at most `memory` GiB: what both its programs take."""
    build, out = given.glove / "build", given.out / "glove"
    out.mkdir(exist_ok=True)
    quiet = ("-verbose", 0)
    words = measure(build / "vocab_count", *quiet, "-min-count", 1, stdin=text, stdout=out / "vocab.txt", cwd=out)
    pairs = measure(
        build / "cooccur", *quiet, "-window-size", WINDOW, "-symmetric", 1, "-distance-weighting", 1, "-vocab-file", out / "vocab.txt",
        "-memory", memory, "-overflow-file", "overflow", stdin=text, stdout=out / "pairs.bin", cwd=out,
    )
    return {
        "seconds": words["seconds"] + pairs["seconds"], "processor": words["processor"] + pairs["processor"], "peak": max(words["peak"], pairs["peak"]),
    }


def count(given, text, memory, threads, watch=0.0, times=1):
    """engraft's counts of a corpus, given so many times one behind the other, and the digest of their files."""
    rest = (given.out / "counts", memory, threads, f"inverse:{WINDOW}", "unscored")
    if times == 1:
        found = measure(given.bench, "count", text, *rest, watch=watch)
    else:
        with subprocess.Popen(["cat", *[text] * times], stdout=subprocess.PIPE) as feeder:
            found = measure(given.bench, "count", "/dev/stdin", *rest, stdin=os.dup(feeder.stdout.fileno()), watch=watch)
    digest = hashlib.sha256()
    for name in ("words.parquet", "pairs.parquet"):
        with open(given.out / "counts/counts" / name, "rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return {**found, "digest": digest.hexdigest()}


def one_digest(found):
    """Ends the script where the same corpus gave other files."""
    if len({one["digest"] for one in found}) > 1:
        sys.exit("engraft's files depend on the bound on memory or the number of threads")


def counting(given):
    rows, scaling = [], []
    for size in given.words:
        text = given.out / f"{size:g}.txt"
        peer = glove(given, text, GLOVE_MEMORY)
        found = {f"engraft, {threads} thread{'s' * (threads > 1)}": count(given, text, MEMORY, threads) for threads in (1, 2)}
        one_digest(found.values())
        ran = subprocess.run(
            [sys.executable, __file__, "--same-counts", given.out / "counts/counts", given.out / "glove/vocab.txt", given.out / "glove/pairs.bin"],
            check=False, stdout=subprocess.PIPE,
        )
        if ran.returncode:
            sys.exit(ran.returncode)
        pairs, tokens = int(ran.stdout), found["engraft, 1 thread"]["tokens"]
        scaling.append(f"{found['engraft, 1 thread']['seconds'] / found['engraft, 2 threads']['seconds']:.2f}")
        for who, one in {**found, "GloVe `vocab_count` and `cooccur`": peer}.items():
            rows.append([
                who, f"{tokens:,}", f"{pairs:,}", f"{one['seconds']:.1f}", f"{one['processor']:.1f}", f"{tokens / one['processor'] / 1e6:.2f}",
                f"{one['peak']:,.0f}", f"{peer['processor'] / one['processor']:.2f}", f"{peer['seconds'] / one['seconds']:.2f}",
            ])
    print(f"Counting, window {WINDOW}, weights 1/distance, all words; words and pairs compared and equal (GloVe with the {GLOVE_MEMORY} GiB that it has by "
          f"default, engraft with {MEMORY} MiB). Ratios: GloVe over it. Two threads are {' and '.join(scaling)} times as fast as one, on the clock.\n")
    table(["", "words", "pairs", "seconds", "processor seconds", "M words a second of one core", "peak MiB", "ratio of processor seconds", "of seconds"], rows)


def bounded(given):
    text, rows = given.out / f"{given.words[-1]:g}.txt", []
    found = {cap: count(given, text, cap, 2, watch=0.1) for cap in given.caps}
    one_digest(found.values())
    cap = given.caps[-1]
    longer = count(given, text, cap, 2, watch=0.1, times=given.times)
    for cap, one in [*found.items(), (cap, longer)]:
        rows.append([
            "engraft, 2 threads", f"{one['tokens'] / 1e6:,.0f}", f"{cap}", f"{one['peak_mib']:,}", f"{one['peak_mib'] - cap:+,}", f"{one['spooled'] / 2**20:,.0f}",
            f"{one['spooled'] / 2**20 / cap:.1f}", f"{one['processor']:.1f}",
        ])
    peer = glove(given, text, given.caps[-1] / 1024)
    rows.append(["GloVe", f"{given.words[-1]:,g}", f"{given.caps[-1]}", f"{peer['peak']:,.0f}", f"{peer['peak'] - given.caps[-1]:+,.0f}", "", "", f"{peer['processor']:.1f}"])
    print(f"The same {given.words[-1]:g} M words under bounds on memory, and {given.times} times one behind the other; on disk: the most that lay in engraft's nameless "
          "files at one time. engraft's files of the same words are the same bytes under all bounds.\n")
    table(["", "M words", "bound, MiB", "peak, MiB", "beyond", "on disk, MiB", "of the bound", "processor seconds"], rows)


def phrases(given):
    text = given.out / f"{given.words[0]:g}.txt"
    ours = measure(given.bench, "phrases", text, given.out / "phrases", MEMORY, 5, 0.5)
    peer = measure(given.gensim, HERE / "phrases_peer.py", text, 5, 0.5)
    print(f"Phrases of two words in {ours['tokens']:,} words, NPMI from 0.5, at least 5 times, one thread: engraft finds {ours['phrases']:,} and joins "
          f"{ours['joined']:,} pairs, gensim {peer['phrases']:,} and {peer['joined']:,} (its NPMI divides by the words of the corpus, not by its neighbours). gensim's "
          "times leave out reading and splitting everywhere.\n")
    speed = {
        "found, reading and splitting included, M words a second": (ours["build_seconds"], peer["build_seconds"]),
        "cut, splitting included, M words a second": (ours["split_and_apply_seconds"], peer["apply_seconds"]),
        "cut, M words a second": (ours["apply_seconds"], peer["apply_seconds"]),
    }
    rows = [[what, *(f"{ours['tokens'] / one / 1e6:.2f}" for one in both), f"{both[1] / both[0]:.1f}"] for what, both in speed.items()]
    rows.append(["peak, MiB", f"{ours['peak']:,.0f}", f"{peer['peak']:,.0f}", f"{peer['peak'] / ours['peak']:.1f}"])
    table(["", "engraft", f"gensim {peer['gensim']}", "ratio"], rows)


def scores(given):
    """Counts and scores of the distinct sentences, which the maps need."""
    text = given.out / "sentences.txt"
    ours = measure(given.bench, "count", text, given.out / "scored", MEMORY, 1, f"inverse:{WINDOW}", "adjacent")
    ran = subprocess.run([sys.executable, __file__, "--look-ups", given.out / "scored/pmi", text], check=True, stdout=subprocess.PIPE)
    peer = json.loads(ran.stdout)
    print(f"Look-ups in {ours['scored_pairs']:,} scores (PPMI; words and pairs from 5 on; {ours['scoring_processor_s']:.2f} s to score {ours['pairs']:,} pairs), of every "
          f"two words of a sentence, one thread; engraft finds a score for {ours['hits']:.1%} of them, SciPy for {peer['hits']:.1%} of a million.\n")
    table(["", "M look-ups a second", "ratio"], [
        ["engraft", f"{ours['look_ups_per_s'] / 1e6:.1f}", f"{ours['look_ups_per_s'] / peer['look_ups_per_s']:.1f}"],
        [f"SciPy {peer['scipy']}, `matrix[rows, columns]`", f"{peer['look_ups_per_s'] / 1e6:.1f}", "1"],
    ])


def maps(given):
    folder = given.out / "maps"
    ours = measure(
        given.bench, "maps", given.out / "sentences.txt", given.out / "scored", given.out / "terms.txt", given.vocabulary or "-", folder,
        env={"RAYON_NUM_THREADS": "1"},
    )
    peer = measure(sys.executable, HERE / "maps_peer.py", folder)
    close = all(math.isclose(one, other, rel_tol=1e-9) for one, other in zip(ours["sums"], peer["sums"]))
    if not close or ours["above"] != peer["above"] or ours["samples"] != peer["samples"]:
        sys.exit(f"maps: engraft has {ours['sums']}, {ours['above']}, NumPy {peer['sums']}, {peer['above']}")
    samples, counts = ours["samples"], ours["counts"]
    tokens = sum(int(length) * many for length, many in counts["lengths"].items())
    print(f"Maps ({', '.join(ours['maps'])}) of {samples:,} distinct sentences, {tokens / samples:.1f} tokens each with {counts['auxiliary']['kept'] / samples:.1f} auxiliary "
          f"terms, {counts['mentions']['kept']:,} mentions of MeSH headings, {counts['term_pairs']:,} related pairs; one thread. Expanded in batches of 32, each as "
          "wide as its longest; sums and numbers of values above 0 compared and equal.\n")
    dense = ours["dense_bytes"]
    table(["", "engraft", "peer", "ratio", "peer is"], [
        ["samples made and written, a second", f"{samples / ours['write_seconds']:,.0f}", "", "", ""],
        ["bytes a sample, token ids included", f"{ours['bytes'] / samples:,.0f}", f"{dense / samples:,.0f}", f"{dense / ours['bytes']:.1f}",
         "squares of float32, not padded, maps alone"],
        ["samples read and checked, a second", f"{samples / ours['read_seconds']:,.0f}", "", "", ""],
        ["samples expanded, a second", f"{samples / ours['expand_seconds']:,.0f}", f"{samples / peer['expand_seconds']:,.0f}",
         f"{peer['expand_seconds'] / ours['expand_seconds']:.1f}", f"NumPy {peer['numpy']}, all at once"],
    ])


#: What can be measured, in order.
PARTS = {"counts": counting, "bounds": bounded, "phrases": phrases, "scores": scores, "maps": maps}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--glove", type=Path, required=True)
    parser.add_argument("--gensim", default=sys.executable)
    parser.add_argument("--words", type=float, nargs="+", default=[5, 50])
    parser.add_argument("--caps", type=int, nargs="+", default=[32, 64, 256])
    parser.add_argument("--times", type=int, default=12)
    parser.add_argument("--sentences", type=int, default=100_000)
    parser.add_argument("--vocabulary", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS), help="maps needs what scores leaves")
    given = parser.parse_args()
    given.words.sort()
    given.caps.sort()
    given.bench, given.glove = given.bench.resolve(), given.glove.resolve()
    given.out = (given.out or Path(tempfile.mkdtemp(prefix="engraft-maps-"))).resolve()
    given.out.mkdir(parents=True, exist_ok=True)
    if not (given.glove / "build/cooccur").exists():
        subprocess.run(["make", "-C", given.glove], check=True, stdout=subprocess.DEVNULL)
    # In a process of its own: a process begins with its parent's peak, so this one must stay small.
    sizes = [f"{size:g}" for size in given.words]
    subprocess.run([sys.executable, __file__, "--corpora", given.data, given.out, str(given.sentences), *sizes], check=True)
    before = os.getloadavg()[0]
    for part in given.parts:
        PARTS[part](given)
    print(f"{os.cpu_count()} cores, {platform.system()}; load {before:.1f} before, {os.getloadavg()[0]:.1f} after; one run each; Python {platform.python_version()}.")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--corpora", data, out, distinct, *millions]:
            write_corpora(Path(data), Path(out), distinct, *millions)
        case ["--same-counts", counts, vocabulary, pairs]:
            print(same_counts(counts, vocabulary, pairs))
        case ["--look-ups", matrix, text]:
            print(json.dumps(scipy_look_ups(matrix, text)))
        case _:
            main()
