#!/usr/bin/env bash
# Real programs under the context-based allocator, each against itself without it, and the table of
# docs/reference/alloc.md. About twenty minutes.
#
#   scripts/alloc-programs.sh               all, and writes the table
#   scripts/alloc-programs.sh redis,git     these, and prints their lines
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/packages.sh

# The system's Python: only it has its tests in a package.
version=$(/usr/bin/python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
install_packages g++ git libjemalloc2 "libpython$version-testsuite" redis-server redis-tools ripgrep sqlite3 valgrind
command -v node >/dev/null || install_packages nodejs
cargo build --release -p isotherm-alloc --lib --example alloc-stress
exec /usr/bin/python3 -B scripts/alloc_programs "${CARGO_TARGET_DIR:-target}/release" "$@"
