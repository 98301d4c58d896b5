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
