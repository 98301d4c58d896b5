# What a developer runs; `just` alone lists it.
default:
    @just --list

# The main job on the embedded world: from nothing to a trained checkpoint in ./out.
run *ARGS:
    cargo run --release -- run {{ARGS}}

# All tests, as CI runs them.
test:
    cargo test --release --workspace

# What CI checks before the tests.
lint:
    cargo fmt --check
    cargo clippy --release --workspace --all-targets -- -D warnings

# The API documentation.
doc:
    RUSTDOCFLAGS="-D warnings" cargo doc --release --workspace --no-deps

# Licences and advisories of all dependencies (needs `cargo install cargo-deny`).
deny:
    cargo deny check

# Everything that CI does.
ci:
    bash .ci/run

# Triples to shards beside Hugging Face `datasets.map`, in one run (PYTHON needs benches/requirements.txt).
bench-shards DATA PYTHON="python3":
    cargo build --release
    {{PYTHON}} benches/shards.py target/release/engraft {{DATA}}

# A Metathesaurus of 20 M relations to canonical triples beside DuckDB, in one run (some 6 GB of invented data in a temporary folder).
bench-kg PYTHON="python3":
    cargo build --release -p engraft-kg --example metathesaurus --example umls_triples
    {{PYTHON}} benches/kg.py umls

# MeSH XML to triples and terms beside lxml, in one run, on the world at scale 160 (about 370 MB of XML; PYTHON needs benches/requirements.txt).
bench-mesh OUT="out/bench-mesh" PYTHON="python3":
    cargo build --release
    cargo build --release -p engraft-kg --example mesh_triples
    cargo run --release -- --out {{OUT}} --set world.scale=160 run world
    {{PYTHON}} benches/mesh.py target/release/examples/mesh_triples {{OUT}}/world/mesh
