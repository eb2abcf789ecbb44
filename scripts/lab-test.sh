#!/usr/bin/env bash
# What is tested in the lab's virtual machine.
#
#   scripts/lab-test.sh --quick    a choice of at most 8 minutes on 2 cores, as scripts/test.sh runs it
#   scripts/lab-test.sh            everything, at most 15 minutes
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/lab-setup.sh
case "${1:-}" in
--quick) export LAB_TEST=quick ;;
'') export LAB_TEST=all ;;
*)
    echo "lab-test: expected --quick or nothing, not '$1'" >&2
    exit 2
    ;;
esac
# One guest after the other: their times would tell nothing, and memory is bounded.
cargo test -p isotherm-lab --test guest -- --test-threads 1
cargo build -p isotherm -p isotherm-lab-plugin -p isotherm-preload --lib --bins --example live-target
cargo build -p isotherm-workloads --example native
cargo test -p isotherm --test lab -- --test-threads 1
echo "lab-test: all passed in $SECONDS s"
