"""The environment of Gymnasium, and the example that learns."""

import gc
import inspect
import threading
import time
import warnings

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import isotherm
import learn
from isotherm.gym import TieringEnv

SAMPLING = isotherm.Sampling(period=16, batch=512, stores=True)


@pytest.fixture
def environment(trace):
    environment = TieringEnv(trace, sampling=SAMPLING)
    yield environment
    environment.close()


def episode(environment, action, seed=1):
    """Returns the observations, rewards and result of an episode of one action."""
    observation, info = environment.reset(seed=seed)
    seen, rewards, ended = [observation], [], False
    while not ended:
        observation, reward, ended, truncated, info = environment.step(np.array(action, np.float32))
        assert environment.observation_space.contains(observation) and not truncated
        seen.append(observation)
        rewards.append(reward)
    return np.array(seen), rewards, info


def runs():
    return [thread for thread in threading.enumerate() if thread.name == "isotherm-gym"]


def test_gymnasium_s_own_checker(environment):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Of the registry of `gymnasium.make`, which it is not in.
        warnings.filterwarnings("ignore", message=".*not having a spec")
        check_env(environment)


def test_rewards_add_up_to_the_modelled_time(environment):
    seen, rewards, run = episode(environment, [0.1, 1, 0.1])
    assert len(rewards) > 20 and all(reward < 0 for reward in rewards)
    assert sum(rewards) == pytest.approx(-run["modelled_ns"] / 1e6) and run["slowdown"] > 1
    with pytest.raises(RuntimeError, match="expected `reset` before `step`"):
        environment.step(np.zeros(3, np.float32))


def test_what_is_observed(environment):
    seen, _, run = episode(environment, [0.1, 1, 0.1])
    assert np.allclose(seen[:, :32].sum(axis=1), 1, atol=1e-5), "each mapped page is in one bin"
    fast = seen[:, :16].sum(axis=1)
    assert fast[0] > 0.5 and fast[-1] == pytest.approx(0.2, abs=0.01), "a fifth, once all pages are mapped"
    assert seen[-1, 37] > 0.99 and 0 < seen[-1, 38] < 1
    # The hits of samples are those of the run, as far as these are a sample.
    assert seen[1:-1, 32].mean() == pytest.approx(run["hit_ratio"], abs=0.03)
    capacity = run["fast_bytes"] // 4096
    # The last observation is the one before it: an episode has no batch after its end.
    assert round(float(seen[:-1, 33].sum()) * capacity) == pytest.approx(run["promotions"], abs=capacity / 10)
    assert run["promotions"] > 100 and run["demotions"] > 100
    still, _, run = episode(environment, [1, 1, 0])
    assert run["promotions"] == 0 and not still[:, 33:36].any()
    assert 0 < seen[5, 39] < 1


def test_an_action_decides(environment):
    def promoted(*action):
        return episode(environment, action)[2]["promotions"]

    most = promoted(0.1, 1, 0.1)
    for less in ([0.4, 1, 0.1], [0.1, 0.2, 0.1], [0.1, 1, 1]):
        assert most > 2 * promoted(*less), less
    for wrong in ([0, 0], [0, 0, 2], [0, np.nan, 0]):
        environment.reset(seed=1)
        with pytest.raises(ValueError, match="expected three numbers from 0 to 1"):
            environment.step(np.array(wrong))


def test_a_seed_decides_an_episode(trace):
    given = dict(workload="gups", set={"gups.preset": "test"}, max_accesses=200_000, sampling=SAMPLING)
    first, second = TieringEnv(**given), TieringEnv(**given)
    ours, rewards, run = episode(first, [0, 1, 0.1], seed=7)
    theirs, same, other = episode(second, [0, 1, 0.1], seed=7)
    assert (ours == theirs).all() and rewards == same and run["modelled_ns"] == other["modelled_ns"]
    assert episode(second, [0, 1, 0.1], seed=8)[1] != rewards
    # Several at once, in turns.
    a, b = first.reset(seed=7)[0], second.reset(seed=7)[0]
    for _ in range(3):
        (a, *_), (b, *_) = first.step(np.zeros(3)), second.step(np.zeros(3))
    assert (a == b).all() and len(runs()) == 2
    first.close()
    second.close()


def test_a_run_ends_with_its_environment(trace):
    environment = TieringEnv(trace, sampling=SAMPLING)
    for _ in range(3):
        environment.reset(seed=1)
        environment.step(np.zeros(3))
    assert len(runs()) == 1, "of the last reset"
    environment.close()
    environment.close()
    assert runs() == []
    environment.reset(seed=1)
    del environment
    gc.collect()
    assert runs() == [], "nobody has closed it"
    # Nothing works on in the engine's threads.
    before = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - before < 0.1


def test_wrong_input_is_refused(trace):
    for options, problem in [
        ({"trace": "/no/such.trace"}, "/no/such.trace: cannot open"),
        ({"trace": trace, "fast": "9:x"}, "'9:x' is not a size"),
        ({"trace": trace, "max_accesses": 100, "sampling": SAMPLING}, "ended before a batch of samples"),
        ({"trace": trace, "allocation": "middle"}, "expected 'fast-first', 'slow-first' or 'weighted'"),
    ]:
        with pytest.raises(ValueError, match=problem) as caught:
            TieringEnv(**options).reset(seed=1)
        assert "\n" not in str(caught.value)
    assert runs() == []


def test_all_is_told_of():
    told = inspect.getdoc(TieringEnv)
    assert all(name in told for name in inspect.signature(TieringEnv).parameters)


def test_the_example_learns_the_same_each_time(tmp_path):
    for part in ("training", "held-out"):
        (tmp_path / part).mkdir()
    said = []
    training = learn.environments(tmp_path / "training", learn.TRAINING[:1])
    learned = learn.learn(training, seed=1, generations=3, population=8, say=said.append)
    again = []
    assert (learn.learn(training, seed=1, generations=3, population=8, say=again.append) == learned).all()
    assert said == again and len(said) == 3
    held_out = learn.environments(tmp_path / "held-out", learn.HELD_OUT[:2])
    before, after = learn.judge(held_out, learn.START), learn.judge(held_out, learned)
    assert after < 0.9 * before, (before, after)
