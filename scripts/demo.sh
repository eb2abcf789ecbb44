#!/usr/bin/env bash
# The demo: records Debian's sqlite3 on a task in memory, replays the recording under FreqTier and the bounds,
# and writes a report. A finished recording of the same inputs is used again; FORCE=1 records again.
set -euo pipefail
cd "$(dirname "$0")/.."

isotherm=target/release/isotherm
plugin=target/release/libisotherm_recorder_plugin.so
query=demo/shop.sql
folder=build/demo
trace=$folder/shop.trace
report=$folder/report.html

# What the recording depends on.
inputs() {
    sqlite3 --version
    qemu-x86_64 --version
    sha256sum "$query" "$plugin" scripts/demo.sh
}

record() {
    echo "== recording: sqlite3 :memory: < $query"
    echo "   (under QEMU's emulation: about half a minute)"
    rm -rf "$trace" "$trace.inputs"
    # A small cache for a small program: a server's of 24 MB stands before hundreds of gigabytes.
    "$isotherm" record --cache 512K --no-aslr --output "$trace" -- sqlite3 :memory: ".read $query" >"$folder/shop.txt"
    # Only now: a recording that was cut short is not used again.
    inputs >"$trace.inputs"
}

mkdir -p "$folder"
if [ -z "${FORCE:-}" ] && [ -d "$trace" ] && inputs | cmp -s - "$trace.inputs"; then
    echo "== the recording in $trace has the same inputs and is used again (FORCE=1 records again)"
else
    record
fi
"$isotherm" trace info "$trace"
echo
echo "== replaying it on a server with CXL memory; fast:slow memory 1:4, 1:8 and 1:16"
"$isotherm" simulate "$trace" --machine freqtier-cxl1 --fast 1:4,1:8,1:16 \
    --policy first-touch,lru,freqtier,oracle,belady,all-fast,all-slow --report "$report"
echo
echo "Open $report in a browser; docs/guide/report.md says how to read it."
