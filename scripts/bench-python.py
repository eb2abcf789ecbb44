#!/usr/bin/env python3
"""Measures what SPECIFICATION.md promises of the Python package, whose interpreter runs this script.

    build/python/bin/python scripts/bench-python.py [--pairs 16]

- `simulate` beside the binary on the same work, in pairs whose order alternates: the median of their ratios.
- A policy in Python that sees every access, in batches of 4,096 samples: accesses a second, loading included.
"""

import argparse
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import isotherm

ROOT = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "python/examples"))
BINARY = ROOT / "target/release/isotherm"
POLICIES = ["lru", "isotherm", "hybridtier", "belady"]
ACCESSES = 10_000_000


def timed(work):
    begun = time.monotonic()
    work()
    return time.monotonic() - begun


def pair(trace, binary_first):
    """Returns the seconds of the package and of the binary."""
    line = [BINARY, "simulate", trace, "--policy", ",".join(POLICIES), "--fast", "1:4", "--quiet"]
    works = {
        "package": lambda: isotherm.simulate(trace, policy=POLICIES, fast="1:4", quiet=True),
        "binary": lambda: subprocess.run(line, check=True, capture_output=True),
    }
    taken = {name: timed(works[name]) for name in sorted(works, reverse=not binary_first)}
    return taken["package"], taken["binary"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=16)
    pairs = parser.parse_args().pairs
    import lru

    class Lru(lru.Lru):
        period = 1

    with tempfile.TemporaryDirectory() as folder:
        trace = pathlib.Path(folder) / "bench.trace"
        line = [BINARY, "workloads", "cachelib-cdn", "--export", trace, "--max-accesses", str(ACCESSES), "--quiet"]
        subprocess.run(line, check=True)
        accesses = len(isotherm.Trace(trace))
        taken = [pair(trace, number % 2 == 0) for number in range(pairs)]
        ratio = statistics.median(python / binary for python, binary in taken)
        print(f"simulate, {accesses} accesses, {len(POLICIES)} policies: {ratio:.3f} of the binary's time "
              f"({', '.join(f'{python:.2f}/{binary:.2f} s' for python, binary in taken)})")
        took = timed(lambda: isotherm.simulate(trace, policy=Lru, fast="1:4", quiet=True))
        rate = accesses / took / 1e6
        print(f"LRU in Python, every access, batches of 4,096: {rate:.1f} M accesses a second ({took:.2f} s)")
    return 0 if ratio <= 1.05 and rate >= 5 else 1


if __name__ == "__main__":
    sys.exit(main())
