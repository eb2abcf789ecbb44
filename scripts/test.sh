#!/usr/bin/env bash
# Everything that must hold before a change is merged: format, lints, documents, all tests, a short fuzz run.
set -euo pipefail
cd "$(dirname "$0")/.."

step() {
    echo
    echo "== $* (after $SECONDS s)"
    "$@"
}

step scripts/lint.sh
# Signals that whoever started this ignores, as `nohup` does, are tested too.
step env --default-signal cargo test --workspace --no-fail-fast
step build/venv/bin/python scripts/packaging-test.py "${CARGO_TARGET_DIR:-target}/debug/isotherm"
step scripts/python-test.sh --quick
step scripts/lab-test.sh --quick
step scripts/hw-test.sh quick
step env FUZZ_SECONDS="${FUZZ_SECONDS:-10}" scripts/fuzz.sh
echo
echo "== all passed in $SECONDS s"
