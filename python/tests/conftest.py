"""A small recorded input for the tests: accesses with a hot set that moves, and memory used once."""

import pathlib
import sys

import numpy as np
import pyarrow as pa
import pytest

import isotherm

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "examples"))

PAGES = 4000
ROWS = 400_000


def accesses(seed):
    """Pages of accesses: Zipf-like over a set that moves by a quarter each phase, and a slow scan."""
    random = np.random.default_rng(seed)
    skewed = (random.pareto(0.8, ROWS) * 40).astype(np.int64) % (PAGES // 2)
    phase = np.arange(ROWS) * 4 // ROWS * (PAGES // 4)
    scan = np.arange(ROWS) * PAGES // ROWS
    return np.where(random.random(ROWS) < 0.1, scan, (skewed * 7 + phase) % PAGES)


def write(path, seed):
    random = np.random.default_rng(seed + 1)
    address = 0x7F0000000000 + accesses(seed) * 4096 + random.integers(0, 64, ROWS) * 64
    table = pa.table({
        "address": address.astype(np.uint64),
        "thread": (np.arange(ROWS) // 1000 % 2).astype(np.uint8),
        "instructions": random.integers(1, 200, ROWS),
        "store": random.random(ROWS) < 0.3,
        "dependence": random.integers(0, 3, ROWS).astype(np.int8),
    })
    return isotherm.Trace.write(path, table, command="a test", note="made by numpy")


@pytest.fixture(scope="session")
def trace(tmp_path_factory):
    return write(tmp_path_factory.mktemp("traces") / "mine.trace", 1)
