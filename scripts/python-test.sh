#!/usr/bin/env bash
# Installs the wheel in a fresh environment and runs the README's example there; then the package's tests.
#
#   scripts/python-test.sh           the wheel of `make wheel`
#   scripts/python-test.sh --quick   one built for tests, as in `make test`
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/wheel.sh "$([ "${1:-}" = --quick ] && echo dev || echo release)"
wheel=$(ls "$PWD"/build/wheels/*.whl)
python=$PWD/build/python/bin/python

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "$wheel[pandas]"
echo "python: the README's example in a fresh environment"
awk '/^```python$/ { inside = 1; next } /^```$/ { inside = 0 } inside' README.md >"$folder/example.py"
[ -s "$folder/example.py" ] || { echo "python: README.md has no example in Python" >&2 && exit 1; }
(cd "$folder" && venv/bin/python -m isotherm record --quiet --no-dependence --output mine.trace -- ls -lR /usr/share/doc >/dev/null \
    && venv/bin/python example.py)

"$python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "$wheel"
"$python" -m pytest --quiet -p no:cacheprovider python/tests
