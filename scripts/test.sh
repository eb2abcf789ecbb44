#!/usr/bin/env bash
# Everything that must hold before a change is merged: format, lints, documents, all tests, a short fuzz run.
set -euo pipefail
cd "$(dirname "$0")/.."

started=$(date +%s)
step() {
    echo
    echo "== $* (after $(($(date +%s) - started)) s)"
    "$@"
}

lab() {
    step scripts/lab-test.sh --quick
}

# Beside the lab, whose guests take a processor, one after the other.
rest() {
    exec >build/test-rest.log 2>&1
    step build/venv/bin/python scripts/packaging-test.py "${CARGO_TARGET_DIR:-target}/debug/isotherm"
    step scripts/python-test.sh --quick
    step scripts/hw-test.sh quick
    step env FUZZ_SECONDS="${FUZZ_SECONDS:-10}" scripts/fuzz.sh
}
export started
export -f step lab rest

step scripts/lint.sh
# Signals that whoever started this ignores, as `nohup` does, are tested too.
step env --default-signal cargo test --workspace --no-fail-fast
failed=0
printf '%s\n' lab rest | xargs -P 2 -I{} bash -euo pipefail -c '{}' || failed=$?
cat build/test-rest.log
if [ $failed != 0 ]; then
    echo "== failed: the lab's tests, or what ran beside them (build/test-rest.log, above)" >&2
    exit $failed
fi
echo
echo "== all passed in $(($(date +%s) - started)) s"
