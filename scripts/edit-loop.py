#!/usr/bin/env python3
"""How long it takes from a changed line of a policy until `isotherm simulate` has run with it.

    scripts/edit-loop.py [--repeats 3]

In the tree: changes a number in the policy `lru`, builds that as a library (`make edit POLICY=lru`), and
simulates. Out of the tree: the same with a policy that `isotherm policy new` made. Prints the median, least and
most of the repeats, of the build and of the simulation. The first build of each, of everything that it takes,
is not counted. The changed file is put back.
"""

import argparse
import pathlib
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARY = ROOT / "target/debug/isotherm"
BUILD = ["make", "--silent", "edit", "POLICY=lru"]
LIBRARY = ROOT / "target/debug/examples/libedited.so"
SIMULATE = ["simulate", "--workload", "gups", "--max-accesses", "500k", "--fast", "1:8", "--json", "-q"]
# Each file, the line that is changed in it, and its number, which is another one each time.
IN_TREE = (ROOT / "crates/policies/src/lru/mod.rs", "const SCAN: usize = {};", 1024)
OUT_OF_TREE = ("src/policy.rs", "plan.work.operations) = ({},", 1000)


def run(command, folder):
    start = time.monotonic()
    subprocess.run([str(part) for part in command], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - start


def edits(file, line, number, repeats, build, simulate, folder):
    """Returns the seconds of the build and of the simulation after each change."""
    text, before = file.read_text(), line.format(number)
    assert text.count(before) == 1, f"{file}: expected one line with {before}"
    try:
        for repeat in range(repeats + 1):
            file.write_text(text.replace(before, line.format(number + repeat)))
            took = run(build, folder), run(simulate, folder)
            # The first one builds what is missing.
            if repeat > 0:
                yield took
    finally:
        file.write_text(text)


def report(name, promise, taken):
    for part, seconds in [
        ("build", [build for build, _ in taken]),
        ("simulate", [simulate for _, simulate in taken]),
        ("both", [sum(both) for both in taken]),
    ]:
        spread = f"{min(seconds):.1f} to {max(seconds):.1f}"
        print(f"{name:12} {part:9} {statistics.median(seconds):6.1f} s ({spread})")
    print(f"{name:12} at most {promise} s are promised")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    taken = list(edits(*IN_TREE, repeats, BUILD, [BINARY, *SIMULATE, "--policy", LIBRARY], ROOT))
    report("in the tree", 15, taken)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        run([BINARY, "policy", "new", "edited"], folder)
        crate = folder / "edited"
        file, *line = OUT_OF_TREE
        library = crate / "target/release/libedited_policy.so"
        build = ["cargo", "build", "--quiet", "--release"]
        taken = list(edits(crate / file, *line, repeats, build, [BINARY, *SIMULATE, "--policy", library], crate))
        report("out of it", 5, taken)


if __name__ == "__main__":
    main()
