"""Training steps of a BERT encoder on the CPU: engraft beside PyTorch, in one run.

Usage: model.py BENCH [--threads 2 1] [--rounds 5] [--steps 6] [--avx2] [--intel]
BENCH is the built program `bench`: `bench train_step` steps, `bench peak` says what the processor can do at most. The shape is MiniLM's: 6 layers, 384 wide, 12 heads, feed-forward 1536, vocabulary 30522, in f32 and in bf16. A step is
forward (a linear layer on a row's first hidden state, as BERT's fine-tunings have it, or, where that is said, on the mean of all; cross entropy), backward, clipping by the norm of all gradients, and AdamW. The peer
is model_peer.py: plain PyTorch with scaled_dot_product_attention and fused AdamW. The two take turns, each in a process of its own, with the
same threads, lengths, dropout and frozen layers. Figures are medians over all steps of all rounds, the least beside them, and the processor's time, which
other work on the machine changes least. The last column is what matrix products alone ask for (no row's padding counted, and all rows in the last layer, of which engraft needs the first token's alone), in 10^9 operations a second, and its
share of the most that the processor can do in f32: nobody's step in f32 is faster by more than what is left. With --avx2 both sides keep to AVX2 on a processor that
has AVX-512 (the peer by the variables that PyTorch, MKL and oneDNN read for that), so that one machine shows what both kinds do. PyTorch's MKL multiplies by AVX2's general loops on processors that are not Intel's;
with --intel it is told that this one is (two functions of MKL are put in front of its own, as `LD_PRELOAD` does it, which takes a C compiler), and so shows what it can do, here and on Intel's processors.
Prints tables in Markdown.
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
from pathlib import Path

SHAPE = {"layers": 6, "hidden": 384, "heads": 12, "feed_forward": 1536, "vocabulary": 30522}
PARTS = ("forward", "backward", "optimiser", "total")
WARMUP = 2


def ragged(rows, longest):
    """Lengths as samples have them, from a few tokens to the longest."""
    chance = random.Random(7)
    return [longest, *(chance.randint(6, longest) for _ in range(rows - 1))]


CASES = {
    "16 rows of 64 tokens": {"lengths": [64] * 16, "dropout": 0.0, "frozen": 0},
    "the same with dropout 0.1": {"lengths": [64] * 16, "dropout": 0.1, "frozen": 0},
    "32 rows of 6 to 64 tokens (the peer pads and masks)": {"lengths": ragged(32, 64), "dropout": 0.0, "frozen": 0},
    "16 rows of 64 tokens, embeddings and 3 layers frozen": {"lengths": [64] * 16, "dropout": 0.0, "frozen": 3},
    "16 rows of 64 tokens, the mean of all": {"lengths": [64] * 16, "dropout": 0.0, "frozen": 0, "pooling": "mean"},
    "the same with dropout 0.1, the mean of all": {"lengths": [64] * 16, "dropout": 0.1, "frozen": 0, "pooling": "mean"},
}
# The same rows with every attention: what each costs beside the plain one.
ATTENTIONS = {
    f"8 rows of 128 tokens, {name}": {"lengths": [128] * 8, "dropout": 0.1, "frozen": 0, "attention": attention, "pooling": "mean"}
    for name, attention in (("plain attention", "plain"), ("KAM-BERT's, three maps", "kam"), ("four labels'", "labels"))
}
CASES |= ATTENTIONS
# Factors of products in bf16; the peer's by autocast, which is how PyTorch trains in bf16.
HALF = {f"{case}, bf16": {**CASES[case], "dtype": "bf16"} for case in list(CASES)[:3]}
CASES |= HALF


# What PyTorch, MKL and oneDNN read to keep to AVX2.
AVX2 = {"ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"}


# By what MKL asks whether a processor is Intel's.
INTEL = "int mkl_serv_intel_cpu_true(void) { return 1; }\nint mkl_serv_intel_cpu(void) { return 1; }\n"


def as_intel(folder):
    """The variables under which PyTorch's MKL takes this processor for one of Intel's."""
    library = Path(folder) / "intel.so"
    compiler = [os.environ.get("CC", "cc"), "-shared", "-fPIC", "-x", "c", "-o", str(library), "-"]
    subprocess.run(compiler, input=INTEL, text=True, check=True)
    return {"LD_PRELOAD": str(library)}


def said(command, of, variables):
    ran = subprocess.run([*command, json.dumps(of)], check=False, capture_output=True, text=True, env={**os.environ, **variables, "RAYON_NUM_THREADS": str(of["threads"])})
    if ran.returncode:
        sys.exit(f"{command}: {ran.stderr}")
    return json.loads(ran.stdout)


def products(case):
    """Operations of a step's matrix products, in 10^9: of each layer and of attention, twice more backward where something is trained."""
    hidden, lengths = SHAPE["hidden"], CASES[case]["lengths"]
    forward = 2 * sum(lengths) * (4 * hidden**2 + 2 * hidden * SHAPE["feed_forward"]) + 4 * hidden * sum(length**2 for length in lengths)
    trained = SHAPE["layers"] - CASES[case]["frozen"]
    # Nothing wants the gradient of what goes into the first trained layer's attention, where nothing below it is trained.
    spared = 2 * sum(lengths) * 3 * hidden**2 if CASES[case]["frozen"] else 0
    return ((SHAPE["layers"] + 2 * trained) * forward - spared) / 1e9


def program(given):
    return [str(given.bench.resolve()), *["--avx2"] * given.avx2]


def measured(given, case, threads, variables):
    """All steps of both sides, which take turns; the peer's under such variables."""
    of = {**SHAPE, "attention": "plain", "dtype": "f32", "pooling": "cls", **CASES[case], "threads": threads, "warmup": WARMUP, "steps": given.steps}
    sides = {"engraft": [*program(given), "train_step"], "PyTorch": [sys.executable, str(Path(__file__).resolve().parent / "model_peer.py")]}
    found = {name: [] for name in sides}
    for _ in range(given.rounds):
        for name, command in sides.items():
            found[name].append(said(command, of, variables if name == "PyTorch" else {}))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path)
    parser.add_argument("--threads", type=int, nargs="+", default=[2, 1])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--cases", type=int, default=len(CASES), help="the first so many")
    parser.add_argument("--attentions", action="store_true", help="only those that compare attentions")
    parser.add_argument("--bf16", action="store_true", help="only those in bf16")
    parser.add_argument("--avx2", action="store_true", help="both sides keep to AVX2")
    parser.add_argument("--intel", action="store_true", help="PyTorch's MKL takes the processor for one of Intel's")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tables(given, (AVX2 if given.avx2 else {}) | (as_intel(folder) if given.intel else {}))


def tables(given, variables):
    before, torch = os.getloadavg()[0], ""
    for threads in given.threads:
        peak_of = json.loads(subprocess.run([*program(given), "peak", str(threads)], check=True, capture_output=True, text=True).stdout)["gflops"]
        print(f"{threads} thread{'s' * (threads > 1)}: median milliseconds a step (the least). Ratios: PyTorch over engraft. The processor's most: {peak_of:,.0f} GFLOP/s.\n")
        print("| | | " + " | ".join(PARTS) + " | processor | tokens/s | peak MiB | ratio of medians | of the least | of the processor | GFLOP/s of products |")
        print("|---|---" + "|--:" * (len(PARTS) + 7) + "|")
        plain = {}
        for case in ATTENTIONS if given.attentions else HALF if given.bf16 else list(CASES)[: given.cases]:
            found = measured(given, case, threads, variables)
            every = {name: {part: [ms for run in runs for ms in run[part]] for part in (*PARTS, "processor")} for name, runs in found.items()}
            middle = {name: {part: statistics.median(ms) for part, ms in parts.items()} for name, parts in every.items()}
            least = {name: {part: min(ms) for part, ms in parts.items()} for name, parts in every.items()}
            torch = found["PyTorch"][0]["torch"]
            for name in every:
                cells = [f"{middle[name][part]:,.0f} ({least[name][part]:,.0f})" for part in (*PARTS, "processor")]
                tokens, peak = found[name][0]["tokens"], max(run["peak_mib"] for run in found[name])
                cells += [f"{tokens / middle[name]['total'] * 1e3:,.0f}", f"{peak:,.0f}"]
                for of, part in ((middle, "total"), (least, "total"), (middle, "processor")):
                    cells.append(f"{of['PyTorch'][part] / of[name][part]:.2f}")
                rate = products(case) / middle[name]["total"] * 1e3
                cells.append(f"{rate:,.0f} ({100 * rate / peak_of:.0f} %)")
                print(f"| {case if name == 'engraft' else ''} | {name} | " + " | ".join(cells) + " |", flush=True)
                if case in ATTENTIONS:
                    plain.setdefault(name, []).append((case, middle[name]["total"], least[name]["total"]))
        for name, of in plain.items():
            (_, middle, least), *others = of
            for case, total, best in others:
                print(f"\n{name}, {case.split(', ', 1)[1]}: {total / middle:.2f} times the plain step (medians), {best / least:.2f} (the least)")
        print()
    print(f"{os.cpu_count()} cores, {platform.system()}; load {before:.1f} before, {os.getloadavg()[0]:.1f} after; {given.rounds} runs of {given.steps} steps each, after "
          f"{WARMUP} unmeasured{'; AVX2 alone' * given.avx2}{'; MKL as on Intel' * given.intel}; PyTorch {torch}, Python {platform.python_version()}.")


main()
