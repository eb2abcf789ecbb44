#!/usr/bin/env bash
# Runs each fuzz target, or those named as arguments, for FUZZ_SECONDS (30 by default), two at a time. An
# input that fails is kept in fuzz/artifacts.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"

targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    mapfile -t targets < <(basename -s .rs fuzz_targets/*.rs)
fi
export seconds=${FUZZ_SECONDS:-30}
cargo build --release "${targets[@]/#/--bin=}"

fuzz_one() {
    local target=$1 log=artifacts/$1.log
    mkdir -p "corpus/$target" "seeds/$target" artifacts
    if ! cargo run --quiet --release --bin "$target" -- "corpus/$target" "seeds/$target" \
        -max_total_time="$seconds" -rss_limit_mb=1024 -timeout=10 -artifact_prefix="artifacts/$target-" \
        -print_final_stats=1 >"$log" 2>&1; then
        tail -n 40 "$log" >&2
        echo "fuzz: $target failed; the whole log is fuzz/$log" >&2
        return 1
    fi
    echo "fuzz: $target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$log") inputs in $seconds s, no failure"
}
export -f fuzz_one
printf '%s\n' "${targets[@]}" | xargs -P 2 -I{} bash -euo pipefail -c 'fuzz_one {}'
