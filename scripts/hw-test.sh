#!/usr/bin/env bash
# Verifies the NeoProf hardware: lint, a bench for each unit, the simulated whole against its model,
# mutations.
#
#   scripts/hw-test.sh [all|quick]    quick: 2M random accesses instead of 50M (HW_ACCESSES), no mutations
set -euo pipefail
cd "$(dirname "$0")/.."
mode=${1:-all}
case "$mode" in
all) accesses=50000000 ;;
quick) accesses=2000000 ;;
*)
    echo "hw-test: expected 'all' or 'quick', not '$mode'" >&2
    exit 2
    ;;
esac
scripts/hw-setup.sh test

step() {
    echo
    echo "== $* (after $SECONDS s)"
    "$@"
}

lint() {
    local monolithic
    for monolithic in "1'b0" "1'b1"; do
        verilator --lint-only -Wall --assert --unroll-count 1024 "-GMONOLITHIC=$monolithic" --top-module neoprof \
            -y hardware/neoprof/rtl hardware/neoprof/rtl/neoprof_pkg.sv hardware/neoprof/rtl/neoprof.sv
    done
    (cd hardware/neoprof/verilated && cargo fmt --check && cargo clippy --all-targets -- -D warnings)
}

export HW_ACCESSES=${HW_ACCESSES:-$accesses}
# A target folder of its own: the crate is no member of the workspace.
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/hw
step lint
step python3 hardware/neoprof/bench/run.py
step cargo test --manifest-path hardware/neoprof/verilated/Cargo.toml -- --nocapture
[ "$mode" = quick ] || step python3 hardware/neoprof/bench/mutate.py
echo
echo "== hardware: all passed in $SECONDS s"
