#!/usr/bin/env bash
# Installs what building, demo and tests need on Debian or Ubuntu. Says nothing and is quick when nothing is
# missing.
#
#   scripts/setup.sh demo     what the demo needs
#   scripts/setup.sh [all]    that, and what tests need
#   scripts/setup.sh bench    that, and what benchmarks compare with
#   scripts/setup.sh package  what packages and their tests need
#   scripts/setup.sh python   what the Python package and its tests need
set -euo pipefail
cd "$(dirname "$0")/.."

demo_packages=(gcc libc6-dev qemu-user sqlite3)
package_packages=(binutils debootstrap iproute2 skopeo umoci)
test_packages=(chromium g++ libjemalloc2 make musl-tools python3-venv redis-server valgrind)

. scripts/packages.sh

# Makes a Python in FOLDER with the packages of a file of requirements.
make_venv() {
    local folder=$1 requirements=$2
    local stamp=$folder/requirements.txt
    cmp -s "$requirements" "$stamp" && return 0
    echo "setup: making $folder with $(tr '\n' ' ' <"$requirements")"
    python3 -m venv "$folder"
    "$folder/bin/pip" install --quiet --disable-pip-version-check -r "$requirements"
    cp "$requirements" "$stamp"
}

# Prometheus is not installed, for it would start.
fetch_prometheus() {
    [ ! -x build/prometheus/usr/bin/promtool ] || return 0
    echo "setup: unpacking prometheus into build/prometheus"
    unpack_package prometheus build/prometheus
}

command -v cargo >/dev/null || fail "cargo is missing: install Rust 1.90 or newer, for example with rustup"
command -v apt-get >/dev/null || fail "this script knows Debian and Ubuntu; install ${demo_packages[*]} ${test_packages[*]} in your way"
install_packages "${demo_packages[@]}"
case "${1:-all}" in
demo) ;;
all | bench)
    install_packages "${test_packages[@]}"
    # A Python that reads traces as users' tools do, and Kubernetes' schema.
    make_venv build/venv scripts/requirements.txt
    make_venv build/python scripts/requirements-python.txt
    fetch_prometheus
    # Not every release has it; the benchmark leaves out what is missing.
    if [ "${1:-all}" = bench ] && apt-cache show libmimalloc2.0 >/dev/null 2>&1; then
        install_packages libmimalloc2.0
    fi
    ;;
package)
    install_packages python3-venv "${package_packages[@]}"
    make_venv build/zig scripts/requirements-package.txt
    ;;
python)
    install_packages python3-venv
    make_venv build/python scripts/requirements-python.txt
    ;;
*) fail "expected 'demo', 'all', 'bench', 'package' or 'python', not '$1'" ;;
esac
