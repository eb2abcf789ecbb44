#!/usr/bin/env bash
# Builds the Python package's wheel into build/wheels: one for CPython 3.9 and newer, with the libraries that
# `record`, `run` and `lab` use.
#
#   scripts/wheel.sh          for users
#   scripts/wheel.sh dev      for tests: quick to build, large
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-release}" in
release)
    profile=release built=${CARGO_TARGET_DIR:-target}/release extension=()
    libraries=(build -p isotherm-recorder-plugin -p isotherm-lab-plugin -p isotherm-preload -p isotherm-alloc)
    ;;
dev)
    profile=dev built=${CARGO_TARGET_DIR:-target}/debug/deps extension=(--features as-tests)
    # What `make test` has compiled; fewer packages have other features, and would be compiled again.
    libraries=(test --workspace --no-run)
    ;;
*) echo "wheel: expected 'release' or 'dev', not '$1'" >&2 && exit 1 ;;
esac
cargo "${libraries[@]}" --quiet --locked --profile $profile
for library in libisotherm.so libisotherm_alloc.so libisotherm_recorder_plugin.so libisotherm_lab_plugin.so; do
    install -m 644 "$built/$library" python/isotherm/$library
    [ $profile = dev ] || strip --strip-unneeded python/isotherm/$library
done
rm -rf build/wheels
# Beside the project's file, which names the crate.
(cd python && ../build/python/bin/maturin build --quiet --locked --profile $profile "${extension[@]}" \
    --out ../build/wheels)
ls build/wheels/*.whl
