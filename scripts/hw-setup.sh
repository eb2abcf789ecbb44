#!/usr/bin/env bash
# Installs what verifying (the default) or also synthesizing the hardware needs, on Debian or Ubuntu.
#
#   scripts/hw-setup.sh [test|synth]
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh

# Place and route comes as a wheel; it needs a Python of its own.
make_venv() {
    local venv=build/neoprof/venv
    cmp -s hardware/neoprof/requirements.txt "$venv/requirements.txt" && return 0
    echo "setup: making $venv with $(tr '\n' ' ' <hardware/neoprof/requirements.txt)"
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --disable-pip-version-check -r hardware/neoprof/requirements.txt
    cp hardware/neoprof/requirements.txt "$venv"
}

command -v cargo >/dev/null || fail "cargo is missing: install Rust 1.90 or newer, for example with rustup"
command -v apt-get >/dev/null || fail "this script knows Debian and Ubuntu; install verilator 5, g++, python3 and yosys in your way"
install_packages g++ python3 verilator
version=$(verilator --version | sed -n 's/^Verilator \([0-9]*\).*/\1/p')
[ "${version:-0}" -ge 5 ] || fail "verilator 5 or newer is needed, found: $(verilator --version)"
case "${1:-test}" in
test) ;;
synth)
    install_packages yosys python3-venv
    make_venv
    ;;
*) fail "expected 'test' or 'synth', not '$1'" ;;
esac
