#!/usr/bin/env bash
# The demo: records two programs of Debian, replays each for ten minutes with a fifth of its memory fast, and
# writes reports. sqlite3 returns to the same pages and gains; sort reads in passes: some policies slow it.
# A finished recording of the same inputs is used again; FORCE=1 records again.
set -euo pipefail
cd "$(dirname "$0")/.."

isotherm=target/release/isotherm
plugin=target/release/libisotherm_recorder_plugin.so
folder=build/demo
mkdir -p "$folder"

# record NAME INPUT COMMAND...: records a command that works on the file INPUT.
record() {
    local trace=$folder/$1.trace input=$2
    shift 2
    # What the recording depends on.
    local inputs
    inputs=$("$1" --version | head -n 1; qemu-x86_64 --version; sha256sum "$input" "$plugin" scripts/demo.sh)
    if [ -z "${FORCE:-}" ] && [ -d "$trace" ] && [ "$inputs" = "$(cat "$trace.inputs" 2>/dev/null)" ]; then
        echo "== the recording in $trace has the same inputs and is used again (FORCE=1 records again)"
        return
    fi
    echo "== recording: $* (under QEMU's emulation: about half a minute)"
    rm -rf "$trace" "$trace.inputs"
    # A small cache for a small program: a server's of 24 MB stands before hundreds of gigabytes.
    LC_ALL=C "$isotherm" record --cache 512K --no-aslr --output "$trace" -- "$@" >"$folder/output.txt"
    # Only now: a recording that was cut short is not used again.
    echo "$inputs" >"$trace.inputs"
}

# replay NAME: replays a recording, and prints the answer.
replay() {
    echo
    echo "== $1 on a server with CXL memory, for ten minutes: DRAM for a fifth of its memory (1:4)"
    "$isotherm" simulate "$folder/$1.trace" --fast 1:4 --for 10min \
        --policy first-touch,isotherm,hybridtier,pact,belady,all-fast,all-slow --report "$folder/$1.html"
}

awk 'BEGIN { for (x = i = 1; i <= 400000; i++) { x = (x * 69069 + 12345) % 4294967296; printf "%010.0f customer %d\n", x, i } }' \
    >"$folder/lines.txt"
record shop demo/shop.sql sqlite3 :memory: ".read demo/shop.sql"
record sort "$folder/lines.txt" sort --parallel=1 -S 200M "$folder/lines.txt"
"$isotherm" trace info "$folder/shop.trace"
replay shop
replay sort
echo
echo "sqlite3 gains under every policy; sort gains under some, and is slower under others: the tables say which."
echo "Open $folder/shop.html and $folder/sort.html in a browser; docs/guide/report.md says how to read them."
