"""A policy in Python moves pages of a real kernel. Needs the lab (`make lab-setup`); scripts/lab-test.sh runs it."""

import json
import os
import subprocess
import sys

import pytest

import lru

# 48 MiB, of which the last 16 are used again and again.
PROGRAM = """
memory = bytearray(48 << 20)
memory[::4096] = bytes(len(memory) >> 12)
for _ in range(60):
    memory[32 << 20::64] = memory[32 << 20::64]
"""


@pytest.mark.skipif("LAB_TEST" not in os.environ, reason="scripts/lab-test.sh boots guests")
def test_a_policy_in_python_moves_pages_in_the_lab(tmp_path):
    policy = ["--policy", f"{lru.__file__}:Lru", "--fast", "24M", "--summary", tmp_path / "lab.json"]
    line = ["lab", "run", *policy, "--quiet", "--", "/usr/bin/python3", "-c", PROGRAM]
    ended = subprocess.run([sys.executable, "-m", "isotherm", *map(str, line)], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    (run,) = json.loads((tmp_path / "lab.json").read_text())["runs"]
    assert run["engine"], run["refusal"]
    traffic = run["engine"]["traffic"]
    assert run["tiering"] == "python-lru" and traffic["promotions"] > 2000, traffic
    moved = run["counts"]["moves"]["syscall-or-cpuset"]["succeeded"]
    assert moved == traffic["promotions"] + traffic["demotions"], "the kernel moved what the engine reports"


def test_the_lab_refuses_python_where_its_files_are_not():
    line = ["lab", "run", "--machine", "deterministic", "--policy", "lru", "--", "true"]
    ended = subprocess.run([sys.executable, "-m", "isotherm", *line], capture_output=True, text=True)
    assert ended.returncode == 2 and ended.stderr.count("\n") == 1, ended.stderr
    assert "--machine deterministic: expected a machine that reads all of this one's files" in ended.stderr
