#!/usr/bin/env bash
# Format, lints, documentation and prose, all without a warning.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo fmt --all --check
cargo clippy --workspace --all-targets -- -D warnings
RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --quiet
(cd fuzz && cargo fmt --check)
(cd dram-judge && cargo fmt --check)
python3 scripts/prose.py
