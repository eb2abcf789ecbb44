"""Sweeps: rows equal to those of `simulate`, whatever dies."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pyarrow.parquet as pq
import pytest

import isotherm
from conftest import write

MACHINE = pathlib.Path(__file__).parent.parent.parent / "machines/turin.toml"
SIZES = ["1:8", "1:4"]
SETTINGS = [{}, {"lru.batch": 1000}]

# Notes the processes that it runs in, and ends the first of them in the middle of a run.
DEADLY = '''
import os, pathlib, signal
import isotherm

HERE = pathlib.Path(__file__).parent

class Deadly(isotherm.Policy):
    """Dies once, in the middle."""

    sampling = isotherm.Sampling(period=10, batch=1000)
    allocation = "slow-first"
    batches = 0

    def __init__(self, setup):
        (HERE / f"process-{os.getpid()}").touch()

    def observe(self, samples):
        self.batches += 1
        if self.batches == 10 and not (HERE / "died").exists():
            (HERE / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)

    def step(self, view):
        _, pages, tiers = view.walk(0, 64)
        return pages[tiers > 0][: view.free(0)], 0
'''
ALWAYS_DEADLY = DEADLY.replace('(HERE / "died").touch()', "pass")


@pytest.fixture(scope="module")
def grid(trace, tmp_path_factory):
    """Two traces, and the rows of a grid by `simulate`, one call after the other."""
    traces = [trace, write(tmp_path_factory.mktemp("traces") / "other.trace", 5)]
    folder = tmp_path_factory.mktemp("policy")
    (folder / "deadly.py").write_text(DEADLY)
    (folder / "died").touch()
    rows = []
    for trace in traces:
        for settings in SETTINGS:
            policies = ["lru", "belady", f"{folder}/deadly.py:Deadly"]
            result = isotherm.simulate(trace, policy=policies, fast=SIZES, set=settings, quiet=True)
            rows += result.runs.to_arrow().to_pylist()
    assert len(rows) == 24 and sum(row["promotions"] > 0 for row in rows) >= 16
    return traces, rows


@pytest.fixture
def policies(tmp_path):
    (tmp_path / "deadly.py").write_text(DEADLY)
    return ["lru", "belady", f"{tmp_path}/deadly.py:Deadly"]


def processes(folder):
    return {int(file.name.split("-")[1]) for file in folder.glob("process-*")}


def is_alive(process):
    try:
        return pathlib.Path(f"/proc/{process}/stat").read_text().split(") ")[1][0] != "Z"
    except FileNotFoundError:
        return False


def held_against(rows, sweep):
    """Holds a sweep's rows and its files against serial rows, to the digit."""
    assert len(sweep) == len(sweep.table) == len(rows)
    for ours, expected in zip(sweep.table.to_pylist(), rows):
        differing = {name for name, value in expected.items() if ours[name] != value}
        assert differing <= {"wall_s"}, {name: (ours[name], expected[name]) for name in differing}
    stored = [row["id"] for file in os.scandir(sweep.path) for row in pq.read_table(file.path).to_pylist()]
    assert sorted(stored) == sorted(sweep.table["id"].to_pylist()) and len(set(stored)) == len(rows)


def swept(grid, policies, folder, given_up, **options):
    """Sweeps with an executor of two workers or more, one of which dies; then with one whose workers all die."""
    sweep = isotherm.sweep(grid[0], policies, SIZES, parameters=SETTINGS, output=folder / "rows", **options)
    assert (folder / "died").exists() and sweep.simulated == 24
    assert len(processes(folder)) >= 3, "two workers, and another one for the dead"
    held_against(grid[1], sweep)
    again = isotherm.sweep(grid[0], policies, SIZES, parameters=SETTINGS, output=folder / "rows", **options)
    assert again.simulated == 0 and again.table == sweep.table
    (folder / "died").unlink()
    (folder / "deadly.py").write_text(ALWAYS_DEADLY)
    with pytest.raises(RuntimeError, match=f"mine.trace at 1:4 on .*: .*{given_up}") as caught:
        isotherm.sweep(grid[0][0], policies[2], "1:4", output=folder / "rows", retries=1, **options)
    assert "\n" not in str(caught.value)


def test_local_processes_one_of_them_killed(grid, policies, tmp_path):
    swept(grid, policies, tmp_path, "its worker died 2 times; the last: it ended by signal 9", workers=2)
    assert not any(map(is_alive, processes(tmp_path)))


def test_a_ray_cluster_with_a_worker_killed(grid, policies, tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    # Workers not nicer than others, and the switch by which Ray listens on loopback alone.
    monkeypatch.setenv("RAY_worker_niceness", "0")
    monkeypatch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
    try:
        swept(grid, policies, tmp_path, "its worker died 2 times; the last: .*died", executor="ray")
    finally:
        ray.shutdown()


def test_a_dask_cluster_with_a_worker_killed(grid, policies, tmp_path):
    from distributed import Client, LocalCluster

    asked = dict(n_workers=2, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None)
    with LocalCluster(**asked) as cluster, Client(cluster) as client:
        swept(grid, policies, tmp_path, "on 4 different workers, but all those workers died", executor=client)


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_sweep_goes_on(grid, policies, tmp_path, ending):
    (tmp_path / "died").touch()
    rows, (traces, expected) = tmp_path / "rows", grid
    given = [[str(trace.path) for trace in traces], policies, SIZES]
    # No guard of `__main__`: workers do not begin with the user's script.
    code = f"import isotherm; isotherm.sweep(*{given}, parameters={SETTINGS}, output={str(rows)!r}, workers=2)"
    # Its workers outlive a killed one: a pipe would not end with it.
    said = tmp_path / "said"
    child = subprocess.Popen([sys.executable, "-c", code], stderr=said.open("w"), start_new_session=True)
    while child.poll() is None and len(list(rows.glob("*.parquet"))) < 2:
        time.sleep(0.01)
    begun = time.monotonic()
    # To its whole group, as a terminal sends it.
    os.killpg(child.pid, ending)
    assert child.wait() == -ending and time.monotonic() - begun < 1, said.read_text()
    # Workers of a killed one may find its socket closed in the middle of a message.
    assert ending == signal.SIGKILL or said.read_text().count("Traceback") == 1, "workers say nothing"
    assert ending != signal.SIGINT or not any(map(is_alive, processes(tmp_path)))
    while any(map(is_alive, processes(tmp_path))):
        assert time.monotonic() - begun < 10, "workers end after their task when nobody wants it"
        time.sleep(0.05)
    done = len(list(rows.glob("*.parquet")))
    assert 2 <= done < 8
    # Half written by a worker that was killed.
    (rows / ".half.parquet.host.1.tmp").write_bytes(b"PAR1")
    sweep = isotherm.sweep(traces, policies, SIZES, parameters=SETTINGS, output=rows)
    assert sweep.simulated == 24 - 3 * done
    held_against(expected, sweep)


def test_only_what_is_missing_is_simulated(grid, policies, tmp_path):
    (tmp_path / "died").touch()
    (trace, _), expected = grid

    def sweep(policies, settings=({"lru.batch": 1000},), **options):
        return isotherm.sweep(trace, policies, SIZES, parameters=settings, output=tmp_path / "rows", **options)

    assert sweep("lru").simulated == 2
    more = sweep(policies)
    assert more.simulated == 4 and list(more.table["policy"].to_pylist()) == ["lru", "belady", "deadly"] * 2
    held_against(expected[6:12], more)
    pathlib.Path(policies[2].split(":")[0]).write_text(DEADLY.replace("64", "32"))
    edited = sweep(policies)
    assert edited.simulated == 2 and len(edited.table) == 6
    assert edited.table["policy_hash"][2] != more.table["policy_hash"][2]
    assert edited.table["promotions"][2].as_py() < more.table["promotions"][2].as_py()
    assert sweep("lru", max_accesses="10k").simulated == 2, "another input"
    assert sweep("lru", max_memory="8G").simulated == 0, "of no influence on rows"
    copy = isotherm.Trace.write(tmp_path / "copy.trace", trace)
    assert isotherm.sweep(copy, "lru", SIZES, parameters=SETTINGS, output=tmp_path / "rows").simulated == 4
    os.rename(copy.path, tmp_path / "moved.trace")
    assert isotherm.sweep(tmp_path / "moved.trace", "lru", SIZES, output=tmp_path / "rows").simulated == 0


def test_rows_tell_where_they_come_from(trace, policies, tmp_path):
    (tmp_path / "died").touch()
    output = tmp_path / "rows"
    sweep = isotherm.sweep(trace, ["lru", policies[2]], "1:4", ["sapphire-rapids", MACHINE],
                           {"machine.core.cores": 8}, seeds=[1, 2], max_accesses="100k", output=output, workers=1)
    rows = sweep.table.to_pylist()
    result = json.loads(isotherm.simulate(trace, policy="lru", fast="1:4", max_accesses="100k", quiet=True).json)
    for row in rows:
        assert (row["input_hash"], row["binary"]) == (result["manifest"]["input"], result["manifest"]["binary"])
        assert row["version"] == result["version"] and row["trace"] == str(trace.path)
        assert json.loads(row["settings"]) == {"machine.core.cores": "8"}
        assert json.loads(row["options"]) == {"max_accesses": "100k"}
        assert json.loads(row["input_provenance"])["command"] == "a test"
        assert (row["policy_hash"] or "").startswith("xxh64:") == (row["policy"] != "lru")
    assert [(row["machine"], row["seed"]) for row in rows[::2]] == [
        ("sapphire-rapids", 1), ("sapphire-rapids", 2), ("turin", 1), ("turin", 2),
    ]
    assert len({row["machine_hash"] for row in rows[:4]}) == 1 and rows[0]["machine_hash"] != rows[4]["machine_hash"]
    workload = isotherm.sweep(policies="lru", workloads="gups", sizes="1:4", parameters={"gups.preset": "test"},
                              max_accesses=10_000, output=output, workers=1)
    (row,) = workload.table.to_pylist()
    assert row["workload"] == "gups" and row["trace"] is None
    assert json.loads(row["input_parameters"])["footprint"] == 4 << 20


def test_a_task_is_tried_again_as_often_as_asked(trace, tmp_path):
    (tmp_path / "deadly.py").write_text(ALWAYS_DEADLY)
    with pytest.raises(RuntimeError):
        isotherm.sweep(trace, f"{tmp_path}/deadly.py:Deadly", "1:4", output=tmp_path / "rows", retries=2)
    assert len(processes(tmp_path)) == 3 and os.listdir(tmp_path / "rows") == []


class Still(isotherm.Policy):
    """Moves nothing."""

    def observe(self, samples):
        pass

    def step(self, view):
        return None


def test_a_class_is_one_of_its_file(trace, tmp_path):
    sweep = isotherm.sweep(trace, [Still, "lru"], "1:4", output=tmp_path / "rows", workers=1)
    assert sweep.table["policy"].to_pylist() == ["still", "lru"] and sweep.table["policy_hash"][0].is_valid

    class Local(Still):
        """Of no file's top level."""

    prompt = {"__name__": "prompt"}
    exec("class Written: pass", prompt)
    for policy in Local, prompt["Written"]:
        with pytest.raises(ValueError, match=f"{policy.__name__}.*: expected a class of a file's top level"):
            isotherm.sweep(trace, policy, "1:4", output=tmp_path / "rows")


def test_a_script_without_a_guard_is_not_begun_by_workers(trace, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(f"""
import sys
import isotherm
class Still(isotherm.Policy):
    "Moves nothing."
    def observe(self, samples): pass
    def step(self, view): return None
isotherm.sweep({str(trace.path)!r}, Still, "1:4", output={str(tmp_path / 'rows')!r})
""")
    made = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert made.returncode == 1 and "expected it under `if __name__" in made.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"policies": "lur"}, "mine.trace at 1:4 on sapphire-rapids, seed 1: there is no policy 'lur'"),
        ({"sizes": "9:x"}, "'9:x' is not a size"),
        ({"parameters": {"lru.bach": 1}}, "lru.bach=1: .*lru has no parameter 'bach'"),
        ({"traces": "/no/such.trace"}, "/no/such.trace: cannot open"),
        ({"traces": ()}, "no input; expected traces or workloads"),
        ({"policies": "/no/such.py:Lru"}, "/no/such.py: cannot open"),
        ({"policies": ["lru", "lru.py:Lru"]}, "lru.py: cannot open"),
        ({"executor": "rays"}, "executor 'rays': expected None, \"ray\" or a client of Dask"),
        ({"workers": 0}, "workers 0: expected at least 1"),
    ],
)
def test_bad_input_is_one_line(trace, tmp_path, options, problem):
    given = {"traces": trace, "policies": "lru", "sizes": "1:4", **options}
    with pytest.raises(ValueError, match=problem) as caught:
        isotherm.sweep(**given, output=tmp_path / "rows")
    assert "\n" not in str(caught.value)


def test_a_damaged_file_is_named(trace, tmp_path):
    sweep = isotherm.sweep(trace, "lru", "1:4", output=tmp_path / "rows", workers=1)
    (file,) = pathlib.Path(sweep.path).iterdir()
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(ValueError, match=f"{file}: .*remove it to simulate its runs again"):
        isotherm.sweep(trace, "lru", "1:4", output=tmp_path / "rows", workers=1)


def test_a_row_that_another_sweep_replaced_is_told_of(trace, tmp_path):
    def sweep(policy):
        return isotherm.sweep(trace, policy, "1:4", output=tmp_path / policy, workers=1)

    ours, theirs = sweep("lru"), sweep("belady")
    (file,) = os.listdir(ours.path)
    os.replace(f"{theirs.path}/{file}", f"{ours.path}/{file}")
    with pytest.raises(RuntimeError, match="lru: 1 rows were replaced by another sweep's; sweep again"):
        ours.to_pandas()
    again = sweep("lru")
    assert again.simulated == 1 and again.to_polars()["policy"].to_list() == ["lru"]
