# What a developer runs; `just` alone lists it.
default:
    @just --list

# The main job on the embedded world: from nothing to a trained checkpoint in ./out.
run *ARGS:
    cargo run --release -- run {{ARGS}}

# All tests, as CI runs them.
test:
    cargo test --workspace

# What CI checks before the tests.
lint:
    cargo fmt --check
    cargo clippy --workspace --all-targets -- -D warnings

# What the house is measured by, before the second plan and now (ARCHITECTURE.md).
measure:
    bash scripts/measure.sh

# The API documentation.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

# Licences and advisories of all dependencies (needs `cargo install cargo-deny`); records what CI need not look at again.
deny:
    cargo deny check licenses bans sources
    sha256sum Cargo.lock deny.toml > deny.checked
    cargo deny check advisories

# What takes too long for every change: KIMERA's claim on the world, kills at every point of every stage, every changed setting that `plan` accepts, long
# fuzzing of every reader, an hour of attacks (docs/reliability.md), what is given out (program, wheels), launchers with Ray, Spark and Snakemake, examples with
# these, Daft, DuckDB and Hugging Face's Trainer.
nightly:
    cargo test --release --workspace --test claim
    ENGRAFT_KILLS=all cargo test --release --workspace --test whole kill::
    ENGRAFT_SETTINGS=all cargo test --release --workspace --test whole plan_run::
    cargo deny check
    ENGRAFT_FUZZ_CASES=200_000 cargo test --release --workspace --test library fuzz
    bash scripts/attack.sh FULL
    torch=$(bash scripts/torch.sh) && ENGRAFT_TORCH=$torch bash scripts/release.sh target/release/out
    bash scripts/launchers.sh
    torch=$(bash scripts/torch.sh) && ENGRAFT_TORCH=$torch bash scripts/examples.sh

# The CUDA kernels on the host, each against f64, and the mock driver: no GPU, no CUDA.
cuda-host:
    bash scripts/cuda-host.sh

# What a GPU is to prove, on a machine with one (scripts/gpu-check.sh build makes what it needs, without).
gpu-check:
    bash scripts/gpu-check.sh

# What is given out: program, wheels, licences, checksums (OUT is a folder).
release OUT:
    bash scripts/release.sh {{OUT}}

# DOID, GO, MeSH, HSDN and Rotmensch with their cross references, from fetch to shards.
ontologies DATA OUT="out/ontologies":
    cargo build --release
    target/release/engraft fetch doid go mesh hsdn rotmensch --into {{DATA}}
    target/release/engraft --out {{OUT}} run shards --preset ontologies --data {{DATA}}

# Everything that CI does.
ci:
    bash .ci/run

# Triples to shards beside Hugging Face `datasets.map`, in one run (PYTHON needs benches/requirements.txt).
bench-shards DATA PYTHON="python3":
    cargo build --release
    {{PYTHON}} benches/shards.py target/release/engraft {{DATA}}

# Streams beside their peers, in one run: 2.5 M triples to shards, reading and collating, kills on 1, 3 and 2 ranks (PYTHON needs
# benches/requirements.txt, MOSAIC mosaicml-streaming; DATA has hsdn/ and rotmensch/; some 4 GB below OUT).
bench-stream DATA PYTHON="python3" MOSAIC="python3" OUT="out/bench-stream":
    cargo build --release --workspace --bin engraft --bin bench
    mkdir -p {{OUT}}
    {{PYTHON}} benches/shards.py target/release/engraft --scale 170 --sample 60000 --out {{OUT}}/scale
    target/release/engraft --out {{OUT}}/world --set world.scale=14 run shards
    sed '/^\[sources.mesh/,/^$/d' configs/open.toml > {{OUT}}/real.toml
    target/release/engraft --out {{OUT}}/real --config {{OUT}}/real.toml --data {{DATA}} run shards
    {{PYTHON}} benches/stream.py target/release/bench {{OUT}}/world/shards {{OUT}}/real/shards --mosaic {{MOSAIC}}

# Shards as batches in Python: the wheel beside `datasets` and MosaicML Streaming, in one run (PYTHON needs benches/requirements.txt and the
# wheel of `scripts/wheel.sh`, MOSAIC mosaicml-streaming and pyarrow; SHARDS a folder of shards).
bench-python SHARDS PYTHON="python3" MOSAIC="":
    {{PYTHON}} benches/python.py {{SHARDS}} {{ if MOSAIC == "" { "" } else { "--mosaic " + MOSAIC } }}

# Kernels over Arrow beside `tokenizers`, DuckDB and Python, in one run (PYTHON needs benches/requirements.txt and the wheel of `scripts/wheel.sh`;
# TEXTS a folder of .txt files; OUT an output folder with `vocabulary` and `triples`).
bench-kernels TEXTS OUT PYTHON="python3":
    {{PYTHON}} benches/arrow_kernels.py {{TEXTS}} {{OUT}}

# A Metathesaurus of 20 M relations to canonical triples beside DuckDB, in one run (some 6 GB of invented data in a temporary folder).
bench-kg PYTHON="python3":
    cargo build --release --workspace --bin bench
    {{PYTHON}} benches/kg.py umls

# Mentions with ids beside spaCy, QuickUMLS, scispaCy, medspaCy and negspaCy on BC5CDR and NegEx's test set (PEERS: a Python with them, see benches/mentions.py).
bench-mentions DATA PEERS NEGEX PYTHON="python3":
    cargo build --release
    {{PYTHON}} benches/mentions.py target/release/engraft {{DATA}} --peers {{PEERS}} --negex {{NEGEX}}

# Stage `link` beside PyTorch, on an output folder whose stage `link` is up to date (PYTHON needs torch, transformers, numpy and pyarrow).
bench-link OUT MODEL PYTHON="python3":
    {{PYTHON}} benches/link.py {{OUT}} {{MODEL}}

# The search of stage `link` beside FAISS's flat index and its HNSW, among 150,000 and 1 M invented names (PYTHON needs faiss-cpu and numpy; some 6 GB of memory).
bench-nearest PYTHON="python3":
    cargo build --release --workspace --bin bench
    {{PYTHON}} benches/nearest.py target/release/bench

# Stage `align` beside PyTorch and pytorch-metric-learning, on an output folder of preset `sapbert` (PYTHON needs torch, transformers, pytorch-metric-learning, numpy and pyarrow).
bench-align OUT MODEL STEPS="300" PYTHON="python3":
    {{PYTHON}} benches/align.py {{OUT}} {{MODEL}} --steps {{STEPS}} --seeds 1 2 3

# SQL over the world's triples at scale 170 beside DuckDB on the same Parquet files, in one run (PYTHON needs benches/requirements.txt).
bench-query OUT="out/bench-query" PYTHON="python3":
    cargo build --release
    target/release/engraft --out {{OUT}} --set world.scale=170 run triples
    {{PYTHON}} benches/query.py target/release/engraft {{OUT}}

# MeSH XML to triples and terms beside lxml, in one run, on the world at scale 160 (about 370 MB of XML; PYTHON needs benches/requirements.txt).
bench-mesh OUT="out/bench-mesh" PYTHON="python3":
    cargo build --release
    cargo build --release --workspace --bin bench
    cargo run --release -- --out {{OUT}} --set world.scale=160 run world
    {{PYTHON}} benches/mesh.py target/release/bench {{OUT}}/world/mesh

# Corpus statistics, phrases and maps beside GloVe, gensim, SciPy and NumPy, then the dictionary beside spaCy, in one run. DATA has medquad/, hoc/,
# bc5cdr/, pubmedqa/ and mesh/; GLOVE is a checkout of GloVe, made there if it was not; PYTHON needs benches/requirements.txt (some 5 GB below OUT).
bench-maps DATA GLOVE PYTHON="python3" OUT="out/bench-maps":
    cargo build --release --workspace --bin bench
    mkdir -p {{OUT}}
    {{PYTHON}} benches/maps.py target/release/bench {{DATA}} --glove {{GLOVE}} --out {{OUT}}
    {{PYTHON}} benches/tag.py target/release/bench {{DATA}}

# Stages without a peer, one by one with one thread, whose rates docs/scale.md needs (DATA has hsdn/, mesh/, medquad/, hoc/, bc5cdr/ and pubmedqa/).
bench-stages DATA PYTHON="python3" OUT="out/bench-stages":
    cargo build --release
    {{PYTHON}} benches/stages.py target/release/engraft {{DATA}} --out {{OUT}}

# Stages of large texts in parts, and of an invented Metathesaurus, whose rates docs/scale.md needs (DATA also has rotmensch/; VOCABULARY is BERT's vocab.txt;
# some 10 GB below OUT).
bench-large DATA VOCABULARY PYTHON="python3" OUT="out/bench-large":
    cargo build --release --workspace --bin engraft --bin bench
    {{PYTHON}} benches/large.py target/release/engraft {{DATA}} {{VOCABULARY}} --bench target/release/bench --out {{OUT}}

# Counts of a corpus in 64 parts beside those of the whole (some 2 GB below OUT; best on a machine that does nothing else).
bench-parts DATA VOCABULARY PYTHON="python3" OUT="out/bench-parts":
    cargo build --release --workspace --bin engraft
    {{PYTHON}} benches/parts.py target/release/engraft {{DATA}} {{VOCABULARY}} --out {{OUT}}

# The tables of docs/scale.md from the rates of docs/benchmarks.md; `just scale --write docs/scale.md` puts them there.
scale *ARGS:
    python3 benches/scale.py {{ARGS}}

# Training steps of the encoder beside PyTorch on the CPU, in one run (PYTHON needs torch and may be left out; ARGS are those of benches/model.py, such as --avx2; best on a machine that does nothing else).
bench-model PYTHON="python3" *ARGS:
    cargo build --release --workspace --bin bench
    {{ if PYTHON =~ "^--" { "python3" } else { PYTHON } }} benches/model.py target/release/bench {{ if PYTHON =~ "^--" { PYTHON } else { "" } }} {{ARGS}}

# Eight tasks answered by one encoder in one pass beside eight encoders, end to end, in one run. DATA has a folder `minilm`.
bench-tasks DATA PYTHON="python3" OUT="out/bench-tasks":
    cargo build --release
    {{PYTHON}} benches/tasks.py target/release/engraft {{DATA}} --out {{OUT}}

# What an answer costs beside transformers and ONNX Runtime (DATA has medquad/, CHECKPOINT is a BERT checkpoint's folder; PYTHON needs benches/requirements.txt).
bench-predict DATA CHECKPOINT PYTHON="python3":
    cargo build --release
    {{PYTHON}} benches/predict.py target/release/engraft {{DATA}}/medquad {{CHECKPOINT}}

# Link prediction beside PyTorch on the same weights: time, scores, ranks (docs/results.md). OUT is that of `engraft run rank --preset kg-bert --data DATA --out OUT`.
bench-rank DATA OUT PYTHON="python3":
    {{PYTHON}} benches/rank.py {{DATA}} --out {{OUT}} --triples 150

# Head importance over 1,000 samples beside PyTorch as the released script does it, in one run (PYTHON needs torch).
bench-importance PYTHON="python3":
    cargo build --release --workspace --bin bench
    {{PYTHON}} benches/importance.py target/release/bench

# Retraining on HSDN and Rotmensch as they are streamed beside the usual PyTorch loop, in one run (PYTHON needs torch; DATA has hsdn/ and rotmensch/).
bench-retrain DATA PYTHON="python3" OUT="out/bench-retrain":
    cargo build --release --workspace --bin engraft --bin bench
    mkdir -p {{OUT}}
    sed '/^\[sources.mesh/,/^$/d' configs/open.toml > {{OUT}}/real.toml
    target/release/engraft --out {{OUT}}/real --config {{OUT}}/real.toml --data {{DATA}} run shards
    {{PYTHON}} benches/retrain.py target/release/bench {{OUT}}/real/shards

# A retraining step under a hard head mask beside one without, in one run.
bench-masked PYTHON="python3":
    cargo build --release --workspace --bin bench
    {{PYTHON}} benches/masked.py target/release/bench

# The binary with CUDA, made on a machine without GPU or toolkit.
cuda-build:
    bash scripts/cuda-build.sh

# A checkpoint fine-tuned on published sets (configs/sets.toml, or what OUT has been made by) beside plain PyTorch with the same budget.
bench-sets OUT MODEL PYTHON="python3":
    {{PYTHON}} benches/sets.py {{OUT}} {{MODEL}}

# A recipe of OUT beside plain PyTorch: several benchmarks on one encoder, then each by itself.
bench-recipes OUT MODEL RECIPE PYTHON="python3":
    {{PYTHON}} benches/recipes.py {{OUT}} {{MODEL}} {{RECIPE}}

# A bi-encoder of OUT beside PyTorch: its own weights asked by both, and MODEL trained by PyTorch with the same budget.
bench-rankings OUT MODEL PYTHON="python3":
    {{PYTHON}} benches/rankings.py {{OUT}} {{MODEL}}
