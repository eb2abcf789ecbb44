#!/usr/bin/env bash
# Builds DRAMsim3 from the crates registry and compares the modelled DDR4 with it; prints the table of
# docs/reference/model.md, and each point on standard error.
set -euo pipefail
cd "$(dirname "$0")/../dram-judge"

for tool in cmake g++; do
    command -v "$tool" >/dev/null || { echo "dram-judge: $tool is missing; install it, DRAMsim3 is C++" >&2; exit 1; }
done
cargo build --release
manifest=$(cargo metadata --format-version 1 |
    python3 -c 'import json, sys; print(next(p["manifest_path"] for p in json.load(sys.stdin)["packages"] if p["name"] == "dramsim3"))')
cargo run --quiet --release -- "$(dirname "$manifest")/DRAMsim3/configs"
