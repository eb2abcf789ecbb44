#!/usr/bin/env bash
# Runs each fuzz target for FUZZ_SECONDS (30 by default), or those named as arguments. An input that fails is
# kept in fuzz/artifacts.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"

targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    mapfile -t targets < <(basename -s .rs fuzz_targets/*.rs)
fi
seconds=${FUZZ_SECONDS:-30}
cargo build --release "${targets[@]/#/--bin=}"
for target in "${targets[@]}"; do
    mkdir -p "corpus/$target" artifacts
    log=artifacts/$target.log
    if ! cargo run --quiet --release --bin "$target" -- "corpus/$target" -max_total_time="$seconds" \
        -rss_limit_mb=1024 -timeout=10 -artifact_prefix=artifacts/ -print_final_stats=1 >"$log" 2>&1; then
        tail -n 40 "$log" >&2
        echo "fuzz: $target failed; the whole log is fuzz/$log" >&2
        exit 1
    fi
    executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
    echo "fuzz: $target: $executed inputs in $seconds s, no failure"
done
