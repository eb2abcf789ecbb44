#!/usr/bin/env bash
# Installs the wheel in a fresh environment and runs the README's example there; then the package's tests.
#
#   scripts/python-test.sh           the wheel of `make wheel`
#   scripts/python-test.sh --quick   one built for tests, as in `make test`
#   scripts/python-test.sh --lab     the same, only the tests in the lab's virtual machine
set -euo pipefail
cd "$(dirname "$0")/.."

# One at a time: each installs its wheel into the same environment.
mkdir -p build
exec 9>build/python-test.lock
flock 9
scripts/setup.sh python
scripts/wheel.sh "$([ -n "${1:-}" ] && echo dev || echo release)"
wheel=$(ls "$PWD"/build/wheels/*.whl)
python=$PWD/build/python/bin/python
"$python" -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps "$wheel"
if [ "${1:-}" = --lab ]; then
    exec "$python" -m pytest --quiet -p no:cacheprovider python/tests/test_lab.py
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "$wheel[pandas]"
echo "python: the README's example in a fresh environment"
awk '/^```python$/ { inside = 1; next } /^```$/ { inside = 0 } inside' README.md >"$folder/example.py"
[ -s "$folder/example.py" ] || { echo "python: README.md has no example in Python" >&2 && exit 1; }
(cd "$folder" && venv/bin/python -m isotherm record --quiet --no-dependence --output mine.trace -- ls -lR /usr/share/doc >/dev/null \
    && venv/bin/python example.py)

"$python" -m pytest --quiet -p no:cacheprovider python/tests
