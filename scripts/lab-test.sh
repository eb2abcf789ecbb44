#!/usr/bin/env bash
# Runs the tests that need the lab's virtual machine.
#
#   scripts/lab-test.sh --quick    a selection of at most 8 minutes on 2 cores, as scripts/test.sh runs it
#   scripts/lab-test.sh --neoprof  NeoMem with a NeoProf in the guest, cycle by cycle, about 5 minutes
#   scripts/lab-test.sh            everything else, at most 15 minutes
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/lab-setup.sh
case "${1:-}" in
--quick) export LAB_TEST=quick ;;
--neoprof)
    export LAB_TEST=neoprof
    make --no-print-directory hw-library
    cargo test --workspace --no-run
    cargo test --workspace --test lab -- --test-threads 1 neoprof:: chmu::
    exit
    ;;
'') export LAB_TEST=all ;;
*)
    echo "lab-test: expected --quick, --neoprof or nothing, not '$1'" >&2
    exit 2
    ;;
esac
# The whole workspace: for single packages, dependencies would have fewer features and be built again.
cargo test --workspace --no-run
# One guest after the other, so that their times are comparable and memory is bounded.
cargo test --workspace --test guest --test lab -- --test-threads 1
scripts/python-test.sh --lab
echo "lab-test: all passed in $SECONDS s"
