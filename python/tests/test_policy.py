"""Policies in Python."""

import json
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

import isotherm
import lru

FILE = lru.__file__


def rust(trace, fast, batch, period, **options):
    settings = {"lru.batch": batch, "lru.sampling_period": period}
    return isotherm.simulate(trace, policy="lru", fast=fast, set=settings, scale=1, **options)


def python(trace, fast, batch_of, period_of, **options):
    class Lru(lru.Lru):
        batch, period = batch_of, period_of

    return isotherm.simulate(trace, policy=Lru, fast=fast, scale=1, **options)


@pytest.mark.parametrize("fast", ["1:16", "1:4", "1:1"])
@pytest.mark.parametrize(("batch", "period"), [(4096, 1), (500, 3)])
def test_a_python_lru_moves_as_ours_to_the_page(trace, fast, batch, period):
    ours = rust(trace, fast, batch, period)
    theirs = python(trace, fast, batch, period)
    (mine,), (other,) = json.loads(ours.json)["runs"], json.loads(theirs.json)["runs"]
    assert mine["promotions"] > 500 and mine["demotions"] > 1000
    for run in mine, other:
        for interval in run["timeline"]:
            del interval["gauges"]
    differing = {key for key in mine if mine[key] != other[key]}
    # Each move, its time and its cost show in these; only the names differ.
    assert differing <= {"policy", "parameters", "wall_s"}, {key: (mine[key], other[key]) for key in differing}
    mine, other = (result.pages.to_pandas()["tier"] for result in (ours, theirs))
    assert (mine == other).all() and 0 < (mine == 0).sum() < len(mine)


def test_the_command_line_takes_a_file_and_a_class(trace, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(open(FILE).read().replace("period = None", "period = 1"))
    line = ["simulate", "--policy", f"lru,{file}:Lru", "--json", "--scale", "1", "--fast", "1:4", trace.path]
    made = subprocess.run([sys.executable, "-m", "isotherm", *line], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    result = json.loads(made.stdout)
    assert [run["policy"] for run in result["runs"]] == ["lru", "python-lru"]
    assert result["manifest"]["policy_libraries"]["python-lru"].startswith("xxh64:")
    assert result["runs"][1]["promotions"] > 100
    for wrong, problem in [(f"{FILE}:No", "the file has no class 'No'"), ("/no/such.py:Lru", "no such file")]:
        line = ["simulate", "--policy", wrong, str(trace.path)]
        made = subprocess.run([sys.executable, "-m", "isotherm", *line], capture_output=True, text=True)
        assert made.returncode == 2 and made.stderr.startswith(f"isotherm: {wrong}: {problem}"), made.stderr
        assert made.stderr.count("\n") == 1 and "_policy.py" not in made.stderr, made.stderr


class Still(isotherm.Policy):
    """Moves nothing."""

    sampling = isotherm.Sampling(period=5, batch=500)

    def observe(self, samples):
        pass

    def step(self, view):
        return None


def simulated(trace, policy):
    return json.loads(isotherm.simulate(trace, policy=policy, fast="1:4", scale=1).json)["runs"][0]


def test_the_guide_s_policy_moves(trace):
    guide = (pathlib.Path(__file__).parents[2] / "docs/guide/python.md").read_text()
    (code,) = re.findall(r"```python\n(import numpy as np\n\nclass .*?)\nisotherm.simulate", guide, re.DOTALL)
    names = {"isotherm": isotherm}
    exec(code, names)
    result = isotherm.simulate(trace, policy=names["HotTwice"], fast="1:4", rounds=20)
    run = json.loads(result.json)["runs"][0]
    assert run["promotions"] > 200 and run["promotions"] == run["demotions"]


def test_declared_work_is_charged(trace):
    class Busy(Still):
        """The same, with much work."""

        def step(self, view):
            view.charge(touches=1000, operations=2000, swept=1 << 20)

    still, busy = simulated(trace, Still), simulated(trace, Busy)
    assert still["charges"]["tracking"] == 0 and busy["charges"]["tracking"] > 1_000_000
    assert busy["tiering_cpu_ns"] > still["tiering_cpu_ns"]


def test_what_a_policy_sees(trace):
    seen = []

    class Looks(Still):
        """Looks."""

        sampling = isotherm.Sampling(period=2, batch=1000, stores=True)
        allocation = "slow-first"
        metadata_bytes = 4242

        def __init__(self, setup):
            assert (setup.page_size, setup.tiers, setup.seed) == (4096, 2, 1) and setup.fast < setup.pages
            self.setup = setup

        def observe(self, samples):
            kinds = [getattr(samples, name).dtype for name in ("page", "tier", "store", "time", "weight", "latency")]
            assert kinds == [np.uint32, np.uint8, np.bool_, np.uint64, np.uint32, np.uint32]
            assert len(samples) == len(samples.page) == len(samples.latency)
            if len(samples):
                seen.append((len(samples), samples.page.max(), samples.store.mean(), int(samples.weight[0])))
                assert samples.page.max() < self.setup.pages and (samples.time[0] > 0)

        def step(self, view):
            assert (view.pages, view.tiers) == (self.setup.pages, 2)
            assert view.capacity(0) == self.setup.fast and view.free(0) == view.capacity(0)
            assert view.latency(0) < view.latency(1)
            after, pages, tiers = view.walk(0, 100)
            assert len(pages) == len(tiers) <= 100 and (tiers == 1).all() and (after is None or after > pages[-1])
            assert (view.tiers_of(pages) == 1).all()
            self.view = view
            if len(seen) == 3:
                return pages[:10].astype(np.int64), 0

        def settle(self, pages, tiers, status):
            assert len(pages) == 10 and (tiers == 0).all() and (status == isotherm.Status.MOVED).all()
            with pytest.raises(RuntimeError, match="valid only within the call"):
                self.view.free(0)
            seen.append("settled")

    with pytest.raises(ValueError, match="assert"):
        # After the move not all of the fast tier is free: an error of the policy ends the run.
        simulated(trace, Looks)
    assert seen[3] == "settled" and seen[0][0] == 1000 and 0.1 < seen[0][2] < 0.5 and seen[0][3] == 2


def test_a_batch_larger_than_the_ring_of_a_scaled_run_is_collected(trace):
    seen = []

    class Collects(Still):
        """Collects."""

        sampling = isotherm.Sampling(period=1, batch=8192)

        def observe(self, samples):
            seen.append((len(samples), samples.lost))

    isotherm.simulate(trace, policy=Collects, fast="1:4", scale=10_000)
    assert len(seen) > 3 and min(count for count, _ in seen[:-1]) >= 8192
    assert sum(lost for _, lost in seen) < 0.01 * sum(count for count, _ in seen)


@pytest.mark.parametrize(
    ("returned", "problem"),
    [
        (7, "expected None or"),
        (([1], [2]), "tier 2: expected a tier below 2"),
        (([1 << 30], 0), "expected a page below"),
        (([-1], 0), "(page|out of bounds)"),
        (([1, 2], [0]), "2 pages and 1 tiers"),
        ((["x"], 0), ""),
    ],
)
def test_wrong_moves_end_the_run_in_one_line(trace, returned, problem):
    class Wrong(Still):
        """Wrong."""

        def step(self, view):
            return returned

    with pytest.raises(ValueError, match=f"policy wrong: step: .*{problem}") as caught:
        simulated(trace, Wrong)
    assert "\n" not in str(caught.value)


def test_an_error_names_its_place(trace):
    class Fails(Still):
        """Fails."""

        def observe(self, samples):
            raise KeyError("lost")

    with pytest.raises(ValueError, match=r"policy fails: observe: KeyError: 'lost' \(.*test_policy.py, line \d+\)"):
        simulated(trace, Fails)

    class Unbuilt(Still):
        """Is never made."""

        def __init__(self, setup):
            raise ZeroDivisionError("no")

    with pytest.raises(ValueError, match="unbuilt: ZeroDivisionError: no"):
        simulated(trace, Unbuilt)


def test_a_class_replaces_the_earlier_one_of_its_name_and_none_of_ours(trace):
    class Again(Still):
        """First."""

    assert simulated(trace, Again)["promotions"] == 0

    class Again(lru.Lru):
        """Second."""

        name = "again"
        period, batch = 1, 500

    assert simulated(trace, Again)["promotions"] > 0

    class Taken(Still):
        """Takes a name."""

        name = "lru"

    with pytest.raises(ValueError, match="there is a policy 'lru' already"):
        simulated(trace, Taken)
