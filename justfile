# The doors of the house; `just` lists them.

_default:
    @just --list

# Train the tiny critic: the main job.
train *ARGS:
    cargo run --release -- train recipes/critique/tiny.toml {{ARGS}}

# The whole test suite.
test:
    cargo test --release

# Format and lint as CI does.
lint:
    cargo fmt --all --check
    cargo clippy --workspace --all-targets --locked -- -D warnings

# Everything that CI runs.
ci:
    .ci/run

# Medians of the hot paths.
bench:
    cargo bench -p engine
    cargo bench -p judge

# GRPO end to end beside TRL; PYTHON has benches/peers/requirements.txt.
peers PYTHON *ARGS:
    taskset -c 0-1 cargo bench -p train --bench grpo -- --python {{PYTHON}} {{ARGS}}

# Repair tasks out of real packages of PyPI, into FOLDER/mutants.jsonl (docs/repair-data.md).
mutants FOLDER *PYTHON:
    cargo build --release
    ETUDE={{justfile_directory()}}/target/release/etude benches/mutants/make.sh {{FOLDER}} {{PYTHON}}

# The tasks of the packages that come along, made again (docs/repair-data.md).
builtin-mutants *ARGS:
    cargo build --release
    ETUDE={{justfile_directory()}}/target/release/etude benches/mutants/builtin.sh {{ARGS}}
