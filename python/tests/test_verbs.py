"""The verbs as functions: the command line's names, defaults and results."""

import inspect
import json
import os
import signal
import subprocess
import sys
import threading
import time

import pyarrow as pa
import pytest

import isotherm

# Of the command line alone: a function returns its result, and `score` is no list.
NOT_HERE = {"json", "list"}


def command(*words):
    return subprocess.run([sys.executable, "-m", "isotherm", *map(str, words)], capture_output=True, text=True)


@pytest.mark.parametrize("verb", ["simulate", "size", "score", "record", "run"])
def test_a_function_has_the_verb_s_options_and_tells_of_each(verb):
    function = getattr(isotherm, verb)
    parameters = inspect.signature(function).parameters
    assert {name.rstrip("_") for name in parameters} == set(isotherm.options(verb)) - NOT_HERE
    told = inspect.getdoc(function) + inspect.getdoc(isotherm.simulate)
    for name, parameter in parameters.items():
        assert name in told or "Others" in told, name
        # The verb's own default is in force: None, a flag that is off, or something that must be given.
        assert parameter.default in (None, False, inspect.Parameter.empty), name


def without_times(result):
    if isinstance(result, dict):
        return {key: without_times(value) for key, value in result.items() if key not in ("wall_s", "binary")}
    return [without_times(value) for value in result] if isinstance(result, list) else result


def test_simulate_is_the_command_line_s(trace):
    ours = isotherm.simulate(trace, policy=["lru", "belady"], fast=["1:4", "25%"], seed=3, set={"lru.batch": 1000})
    line = ["simulate", "--policy", "lru,belady", "--fast", "1:4,25%", "--seed", 3, "--set", "lru.batch=1000"]
    theirs = command(*line, "--json", trace.path)
    assert theirs.returncode == 0, theirs.stderr
    assert without_times(json.loads(ours.json)) == without_times(json.loads(theirs.stdout))
    text = command(*line, trace.path).stdout
    assert repr(ours).splitlines()[0] == text.splitlines()[0]


def test_runs_timelines_and_pages_are_tables(trace):
    result = isotherm.simulate(trace, policy=["lru", "first-touch", "all-slow"], fast="1:4", intervals=20)
    whole = json.loads(result.json)
    runs = result.runs.to_pandas()
    assert list(runs["policy"]) == ["lru", "first-touch", "all-slow"]
    for row, run in zip(runs.to_dict("records"), whole["runs"]):
        assert row["slowdown"] == run["slowdown"] and row["parts_moving"] == run["parts"]["moving"]
        assert row["stall_ns_1"] == run["stall_ns"][1] and row["promotions"] == run["promotions"]
        assert json.loads(row["parameters"]) == run["parameters"]
    timelines = result.timelines.to_polars()
    assert timelines.shape[0] == sum(len(run["timeline"]) for run in whole["runs"]) == 60
    lru = timelines.filter(timelines["policy"] == "lru")
    assert lru["promotions"].sum() == whole["runs"][0]["promotions"]
    assert list(lru["interval"]) == list(range(20)) and lru["gauges_listed_pages"].null_count() == 0
    pages = result.pages.to_pandas()
    footprint = whole["input"]["footprint_bytes"] // 4096
    assert len(pages) == 2 * footprint, "bounds place no page"
    lru = pages[pages["policy"] == "lru"]
    assert lru["accesses"].sum() == whole["input"]["accesses"]
    assert (lru["tier"] == 0).sum() <= footprint // 5 + 1
    assert lru["address"].is_monotonic_increasing and lru["stores"].sum() < lru["accesses"].sum()


def test_size_is_the_command_line_s(trace):
    options = {"policy": ["lru", "isotherm"], "rounds": 6, "seeds": 2, "price": {"dram": 8, "cxl": 3}}
    ours = isotherm.size(trace, budget="10%", **options)
    line = ["--policy", "lru,isotherm", "--rounds", 6, "--seeds", 2, "--price", "dram=8,cxl=3", "--budget", "10%"]
    theirs = command("size", *line, "--json", trace.path)
    assert theirs.returncode == 0, theirs.stderr
    assert without_times(ours) == without_times(json.loads(theirs.stdout))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"policy": "lur"}, "there is no policy 'lur'; did you mean lru"),
        ({"fast": "9:x"}, "--fast: '9:x' is not a size"),
        ({"set": {"lru.bach": 1}, "policy": "lru"}, "lru has no parameter 'bach'"),
        ({"page_size": "big"}, "invalid value 'big'"),
        ({"machine": "no-such"}, "no-such"),
        ({"for_": "1ns"}, "less than one round"),
        ({"workload": "gups"}, "cannot be used with"),
    ],
)
def test_bad_input_is_one_line(trace, options, problem):
    with pytest.raises(ValueError, match=problem) as caught:
        isotherm.simulate(trace, **options)
    assert "\n" not in str(caught.value)


def test_an_unknown_option_is_a_type_error(trace):
    with pytest.raises(TypeError, match="polcy"):
        isotherm.simulate(trace, polcy="lru")


SLOW = {"workload": "gups", "set": {"gups.footprint": "64M"}, "policy": ["lru", "isotherm"], "for_": "10min"}


def test_ctrl_c_ends_the_work_at_once():
    begun = time.monotonic()
    threading.Timer(3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        isotherm.simulate(**SLOW)
    assert 3 <= time.monotonic() - begun < 3.5
    # The work has ended, too: this process takes no more time.
    time.sleep(1)
    before = time.process_time()
    time.sleep(1)
    assert time.process_time() - before < 0.2


def test_python_goes_on_beside_the_work():
    counted, ended = [0], threading.Event()

    def count():
        while not ended.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    begun = time.monotonic()
    isotherm.simulate(workload="gups", policy=["lru", "isotherm"], max_accesses="3M")
    took = time.monotonic() - begun
    ended.set()
    thread.join()
    assert counted[0] > 100 * took, f"{counted[0]} steps in {took} s"


def test_the_command_line_is_the_binary_s():
    version = command("--version")
    assert (version.returncode, version.stdout.split()[0]) == (0, "isotherm")
    refused = command("simulate", "/no/such.trace")
    assert refused.returncode == 2 and refused.stderr.startswith("isotherm: /no/such.trace: cannot open")


def test_record_makes_a_trace(tmp_path):
    trace = isotherm.record(["ls", "-l", "/"], output=tmp_path / "ls.trace", no_dependence=True, quiet=True)
    assert len(trace) > 1000 and trace.provenance["command"] == "ls -l /"
    assert not trace.provenance["dependence"]
    heap = pa.table(trace.rows(mapping="[heap]"))
    assert 0 < heap.num_rows < len(trace)
    with pytest.raises(ValueError, match="exists already"):
        isotherm.record(["true"], output=trace.path, quiet=True)
    with pytest.raises(RuntimeError, match="no-such-program"):
        isotherm.record(["no-such-program"], output=tmp_path / "no.trace", quiet=True)


def test_run_reports_what_would_move(tmp_path):
    code = "x = bytearray(32 << 20)\nfor _ in range(100):\n    x[::4096] = bytes(8192)\nraise SystemExit(7)"
    run = isotherm.run([sys.executable, "-c", code], shadow=True, policy="lru", quiet=True)
    assert run.status == 7 and run.result["policy"] == "lru" and run.result["shadow"]
    with pytest.raises(ValueError, match="there is no policy 'lur'"):
        isotherm.run(["true"], policy="lur", quiet=True)
