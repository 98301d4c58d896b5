"""Input made to hurt: tokenizers, configs of models, safetensors, pickles and Parquet that lie about their sizes or nest without end. Each is refused within a bound on
memory and time; what is not refused must be read as what it is."""

import json
import os
import shutil
import struct
import time
import zipfile

from harness import Tally, copied

NEST = 100_000


def hostile(bench, seconds):
    tally = Tally("hostile")
    until = time.monotonic() + seconds
    cases = [*tokenizers(bench), *configs(bench), *tensors(bench), *pickles(), *tables()]
    if not any(kind == "parquet" for _, kind, _ in cases):
        print("  no pyarrow here (ENGRAFT_PYTHON): hostile Parquet is left out", flush=True)
    chance = bench.chance("hostile")
    # What changes no answer (padding, which rows do not have) may be accepted; it must then change none.
    whole = bench.scratch("hostile")
    changed(bench, "config.json", lambda path: None)(whole)
    answer = bench.engraft.run(*asked(whole, "encode")).text
    chance.shuffle(cases)
    for name, kind, make in cases:
        if time.monotonic() >= until:
            break
        folder = bench.scratch("hostile")
        folder.mkdir()
        if make(folder) is False:
            continue
        run = bench.engraft.bounded(*asked(folder, kind), timeout=30)
        sound = name.startswith("sound")
        tally.judge(run, run.text == answer if kind == "encode" else sound, name)
        if sound and run.code != 0:
            tally.lose(f"{name}: refused, so the others of its kind prove nothing: {run.last}")
    return tally


def asked(folder, kind):
    """The command that reads what lies in `folder`."""
    out = ["--out", folder / "out", "--data", folder, "--config", folder / "c.toml", "-j", "1"]
    config = folder / "c.toml"
    if kind == "encode":
        (folder / "t.txt").write_text("fever\n")
        return ["encode", folder / "model", folder / "t.txt"]
    config.write_text(
        'version = 5\n[sources.triples.x]\n[sources.triples.x.parquet]\nfiles = [{ path = "t.parquet" }]\n'
        'columns = { subject = "s", relation = "r", object = "o" }\n'
        '[canon]\ninverses = "fold"\nself_loops = "drop"\nambiguous = "leave"\nnamespaces = []\nrows_in_memory = 1000000\n'
        '[split]\nparts = "all"\ntogether = "inverse"\non_leak = "fail"\n'
        '[summary]\ngraph = { hubs = 2, rank = { damping = 0.85, tolerance = 1e-9, rounds = 9 }, distance = { seed = 1, sample = 2 } }\n'
        "certificate = { min_share = 0.01, max_reversed = 0.1, examples = 5 }\n"
        '[vocabulary]\ncase = "uncased"\ntrain = { size = 100, min_frequency = 2, text = [] }\n'
        '[shards]\nseed = 1\ntasks = ["triplet"]\nsize = { rows = 100 }\nitems_per_group = 64\n'
        'layout = { form = "packed", token_types = "zero", blanks = "true_length", limits = { node = 100, edge = 10 } }\n'
        '[shards.negatives]\nsampler = "uniform"\nslots = ["subject"]\nper_triple = 1\nfilter = "train"\nsame = "texts"\ndraw = "fresh"\nmax_draws = 10\n'
    )
    return ["run", "triples", *out]


def model(bench):
    return next(path for path in sorted(bench.reference.glob("retrain/model")) if (path / "config.json").exists())


def tokenizers(bench):
    lines = (model(bench) / "vocab.txt").read_text().splitlines()
    words = {word: number for number, word in enumerate(lines)}
    plain = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": {"type": "BertNormalizer", "clean_text": True,
        "handle_chinese_chars": True, "strip_accents": None, "lowercase": True}, "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": None,
        "decoder": None, "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100, "vocab": words},
    }
    nested = {"type": "Lowercase"}
    for _ in range(60):
        nested = {"type": "Sequence", "normalizers": [nested, nested]} if _ < 2 else {"type": "Sequence", "normalizers": [nested]}
    grow = {"type": "Sequence", "normalizers": [{"type": "Replace", "pattern": {"String": "e"}, "content": "e" * 1000}] * 6}
    cases = {
        "FixedLength 0": {"pre_tokenizer": {"type": "FixedLength", "length": 0}},
        "bad charsmap": {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAAAA=="}},
        "charsmap of ones": {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "/////w=="}},
        "nested normalizers": {"normalizer": nested},
        "Replace that grows a thousandfold, six times": {"normalizer": grow},
        "a regular expression without end": {"normalizer": {"type": "Replace", "pattern": {"Regex": "(a+)+$"}, "content": "b"}},
        "ids beyond 2^32": {"model": {**plain["model"], "vocab": {**words, "x": 2**33}}},
        "an id of 2^31": {"model": {**plain["model"], "vocab": {**words, "x": 2**31}}},
        "negative id": {"model": {**plain["model"], "vocab": {**words, "x": -1}}},
        "no words": {"model": {**plain["model"], "vocab": {}}},
        "padding to 2^40": {"padding": {"strategy": {"Fixed": 2**40}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 3, "pad_type_id": 0, "pad_token": "[PAD]"}},
        "truncation with a stride beyond it": {"truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 10}},
    }

    def put(text):
        def change(path):
            for other in ("vocab.txt", "tokenizer_config.json"):
                (path.parent / other).unlink(missing_ok=True)
            path.write_text(text)

        return changed(bench, "tokenizer.json", change)

    yield "sound tokenizer.json", "encode", put(json.dumps(plain))
    for name, change in cases.items():
        yield f"tokenizer.json: {name}", "encode", put(json.dumps({**plain, **change}))
    yield "tokenizer.json: nested arrays", "encode", put("[" * NEST)
    yield "tokenizer.json: nested objects", "encode", put('{"a":' * NEST)
    yield "tokenizer.json: empty", "encode", put(" ")


def changed(bench, file, change):
    def make(folder):
        folder.mkdir(exist_ok=True)
        copied(model(bench), folder / "model")
        for digest in (folder / "model").glob("*digest*"):
            # Whoever means harm leaves no digests of what was there before.
            digest.unlink()
        path = folder / "model" / file
        return change(path)

    return make


def configs(bench):
    def put(key, value):
        def change(path):
            config = json.loads(path.read_text())
            config[key] = value
            path.write_text(json.dumps(config))

        return change

    sizes = ["vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "max_position_embeddings", "type_vocab_size"]
    yield "sound config.json", "encode", changed(bench, "config.json", lambda path: None)
    # What is null has the default of a published config.
    for key in sizes:
        for value in (0, -1, 2**31, 2**40, 2**64 - 1, 1e300, "7", True, 0.5):
            yield f"config.json: {key} = {value!r}", "encode", changed(bench, "config.json", put(key, value))
    for key, value in [("layer_norm_eps", -1), ("hidden_act", "relu"), ("position_embedding_type", "relative_key"), ("model_type", "llama"), ("is_decoder", True)]:
        yield f"config.json: {key} = {value!r}", "encode", changed(bench, "config.json", put(key, value))
    yield "config.json: nested", "encode", changed(bench, "config.json", lambda path: path.write_text('{"a":' * NEST) and None)


def tensors(bench):
    def put(change):
        def make(path):
            data = path.read_bytes()
            length = struct.unpack("<Q", data[:8])[0]
            head, body = json.loads(data[8 : 8 + length]), data[8 + length :]
            made = change(head, body)
            said, text, body = made if isinstance(made, tuple) else (None, json.dumps(head), body)
            text = text.encode()
            path.write_bytes(struct.pack("<Q", len(text) if said is None else said) + text + body)

        return make

    def word(head):
        return next(name for name in head if "word_embeddings" in name)

    def update(**fields):
        return lambda head, body: head[word(head)].update(fields)

    cases = {
        "a head of 2^64 bytes": lambda head, body: (2**64 - 1, json.dumps(head), body),
        "a head of 2^40 bytes": lambda head, body: (2**40, json.dumps(head), body),
        "no head": lambda head, body: (0, "", body),
        "a nested head": lambda head, body: (None, '{"a":' * NEST, body),
        "a shape that overflows": update(shape=[2**33, 2**33]),
        "a negative shape": update(shape=[-1, 32]),
        "offsets beyond the file": update(data_offsets=[2**62, 2**62 + 4]),
        "a thousand axes": lambda head, body: head[word(head)].update(shape=head[word(head)]["shape"] + [1] * 1000),
        "an unknown type": update(dtype="X"),
        "a hundred thousand more tensors": lambda head, body: head.update(
            {f"x{i}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for i in range(100_000)}
        ),
        "numbers that are none": lambda head, body: (None, json.dumps(head), struct.pack("<f", float("nan")) * (len(body) // 4)),
        "infinite numbers": lambda head, body: (None, json.dumps(head), struct.pack("<f", float("inf")) * (len(body) // 4)),
        "a name with escapes": lambda head, body: head.update({"\x1b[31mevil\x07": head.pop(word(head))}),
    }
    for name, change in cases.items():
        yield f"model.safetensors: {name}", "encode", changed(bench, "model.safetensors", put(change))
    yield "model.safetensors: empty", "encode", changed(bench, "model.safetensors", lambda path: path.write_bytes(b"") and None)

    def pipe(path):
        path.unlink()
        os.mkfifo(path)

    yield "model.safetensors: a pipe that nobody writes", "encode", changed(bench, "model.safetensors", pipe)

    def zero(path):
        path.unlink()
        path.symlink_to("/dev/zero")

    yield "model.safetensors: a device without end", "encode", changed(bench, "model.safetensors", zero)


def pickles():
    """`pytorch_model.bin` in the place of safetensors: opcodes that recurse, that claim lengths, and that would run code."""
    opcodes = {
        "nested lists": b"\x80\x02" + b"]" * 50_000 + b"a" * 49_999 + b".",
        "nested tuples": b"\x80\x02)" + b"\x85" * 500_000 + b".",
        "a string of 2^32 bytes": b"\x80\x02X\xff\xff\xff\xff.",
        "a long of 2^31 bytes": b"\x80\x02\x8b\xff\xff\xff\x7f.",
        "memo without end": b"\x80\x02" + b"".join(b"r" + struct.pack("<I", i * 40_000_000) for i in range(100)) + b".",
        "code to run": b"cos\nsystem\n(S'touch owned'\ntR.",
        "nothing on the stack": b"\x80\x02.",
        "pops of nothing": b"\x80\x02" + b"0" * 1000 + b".",
        "no end": b"\x80\x02}",
    }
    for name, code in opcodes.items():

        def make(folder, code=code):
            (folder / "model").mkdir()
            (folder / "model/config.json").write_text(
                json.dumps({"model_type": "bert", "vocab_size": 8, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8,
                            "max_position_embeddings": 8, "type_vocab_size": 2, "hidden_act": "gelu", "layer_norm_eps": 1e-12, "pad_token_id": 0,
                            "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "initializer_range": 0.02})
            )
            (folder / "model/vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nfever\npain\nache\n")
            with zipfile.ZipFile(folder / "model/pytorch_model.bin", "w") as archive:
                archive.writestr("archive/data.pkl", code)
                archive.writestr("archive/version", "3\n")

        yield f"pytorch_model.bin: {name}", "encode", make


def tables():
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError:
        return

    def bomb(folder):
        big = arrow.array(["x" * (16 << 20)]).dictionary_encode()
        column = arrow.DictionaryArray.from_arrays(arrow.array([0] * 1000, arrow.int32()), big.dictionary)
        short = arrow.array(["r"] * 1000).dictionary_encode()
        # The object is another: of a thing and itself nothing is stated, and a graph of nothing is refused.
        parquet.write_table(arrow.table({"s": column, "r": short, "o": short}), folder / "t.parquet", compression="zstd")

    def sound(folder):
        parquet.write_table(arrow.table({name: [f"{name}{i}" for i in range(9)] for name in "sro"}), folder / "t.parquet")

    yield "sound Parquet", "parquet", sound
    # Read in small batches: the bound on memory is what it is about.
    yield "sound Parquet: a value of 16 MB in a thousand rows", "parquet", bomb
    for name, data in {"empty": b"", "only the mark": b"PAR1", "marks alone": b"PAR1PAR1", "a footer of 2^31 bytes": b"PAR1" + b"\xff\xff\xff\x7fPAR1"}.items():
        yield f"Parquet: {name}", "parquet", lambda folder, data=data: (folder / "t.parquet").write_bytes(data) and None
