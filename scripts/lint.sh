#!/usr/bin/env bash
# Format, lints, documentation and prose, all without a warning.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo fmt --all --check
# Modules that a macro declares are not seen by cargo fmt.
rustfmt --check --edition 2024 crates/policies/src/*.rs crates/policies/src/*/mod.rs
cargo clippy --workspace --all-targets -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --quiet
(cd fuzz && cargo fmt --check)
(cd dram-judge && cargo fmt --check)
python3 scripts/prose.py
