#!/usr/bin/env bash
# Installs what building, demo and tests need on Debian or Ubuntu. Says nothing and is quick when nothing is
# missing.
#
#   scripts/setup.sh demo     what the demo needs
#   scripts/setup.sh [all]    that, and what tests need
#   scripts/setup.sh bench    that, and what benchmarks compare with
set -euo pipefail
cd "$(dirname "$0")/.."

demo_packages=(gcc libc6-dev qemu-user sqlite3)
test_packages=(chromium g++ libjemalloc2 make musl-tools python3-venv redis-server valgrind)

. scripts/packages.sh

# A Python that reads traces as users' tools do.
make_venv() {
    local stamp=build/venv/requirements.txt
    cmp -s scripts/requirements.txt "$stamp" && return 0
    echo "setup: making build/venv with $(tr '\n' ' ' <scripts/requirements.txt)"
    python3 -m venv build/venv
    build/venv/bin/pip install --quiet --disable-pip-version-check -r scripts/requirements.txt
    cp scripts/requirements.txt "$stamp"
}

command -v cargo >/dev/null || fail "cargo is missing: install Rust 1.90 or newer, for example with rustup"
command -v apt-get >/dev/null || fail "this script knows Debian and Ubuntu; install ${demo_packages[*]} ${test_packages[*]} in your way"
install_packages "${demo_packages[@]}"
case "${1:-all}" in
demo) ;;
all | bench)
    install_packages "${test_packages[@]}"
    make_venv
    # Not every release has it; the benchmark leaves out what is missing.
    if [ "${1:-all}" = bench ] && apt-cache show libmimalloc2.0 >/dev/null 2>&1; then
        install_packages libmimalloc2.0
    fi
    ;;
*) fail "expected 'demo', 'all' or 'bench', not '$1'" ;;
esac
