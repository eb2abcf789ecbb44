#!/usr/bin/env bash
# Runs real programs in the lab's virtual machine, under first touch and Isotherm's policies: checks that
# their output is the same as outside, and writes the table of docs/generated/lab-programs.md. Takes about
# half an hour.
#
#   scripts/lab-programs.sh                   all programs, and writes the table
#   scripts/lab-programs.sh redis,sort        these programs, and prints their lines
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/lab-setup.sh
cargo test --workspace --no-run
export LAB_TEST=programs LAB_PROGRAMS=${1:-}
page=docs/generated/lab-programs.md
lines=$(mktemp)
trap 'rm -f "$lines"' EXIT
LAB_TABLE=$lines cargo test --workspace --test lab -- --test-threads 1 --nocapture programs::
if [ -n "$LAB_PROGRAMS" ]; then
    cat "$lines"
    exit
fi
# The table stands between two comments.
awk -v lines="$lines" '/<!-- end of the table -->/ { inside = 0 } !inside { print }
    /<!-- table -->/ { inside = 1; while ((getline line < lines) > 0) print line }' "$page" >"$page.new"
mv "$page.new" "$page"
