"""Learns when to promote pages, by the cross-entropy method, and judges it on inputs that it has not seen.

    python learn.py [--seed 1] [--generations 8] [--population 16]

The agent's policy is small: threshold, rate and cooling (see `isotherm.gym.TieringEnv`) depend on the share of
the samples that the fast tier served. It has six parameters, which start as a guess by hand. Inputs have a hot
region that moves at times and to places that depend on their number: some are for training, others for judging.
The same seed prints the same figures.
"""

import argparse
import os
import tempfile

import numpy as np
import pyarrow as pa

import isotherm
from isotherm.gym import TieringEnv

ACCESSES, PAGES = 1_000_000, 2048
TRAINING, HELD_OUT = (1, 2), (101, 102, 103)
HIT_SHARE = 32
# At first, a threshold of 8 samples, a thirty-second of the fast tier in a step, half of the heat kept.
START = np.array([[-1.4, 0.0, 0.0], [0.0, 0.0, 0.0]])


def make(path, number):
    """Writes a trace: nine of ten accesses go to a tenth of the pages, which changes twice."""
    random = np.random.default_rng(number)
    bounds = np.sort(random.integers(0, ACCESSES, 2))
    first = random.integers(0, PAGES - PAGES // 10, 3)[np.searchsorted(bounds, np.arange(ACCESSES), "right")]
    hot = first + random.integers(0, PAGES // 10, ACCESSES)
    page = np.where(random.random(ACCESSES) < 0.9, hot, random.integers(0, PAGES, ACCESSES))
    line = (0x7F0000000000 >> 6) + page * 64 + random.integers(0, 64, ACCESSES)
    columns = {
        "line": line.astype(np.uint64),
        "thread": (np.arange(ACCESSES) % 4).astype(np.uint8),
        "dependence": np.ones(ACCESSES, np.uint8),
    }
    return isotherm.Trace.write(path, pa.table(columns), command="learn.py")


def environments(folder, numbers):
    sampling = isotherm.Sampling(period=64, batch=512, stores=True)
    return [TieringEnv(make(os.path.join(folder, f"{number}.trace"), number), sampling=sampling) for number in numbers]


def act(parameters, observation):
    return 1 / (1 + np.exp(-np.array([1, observation[HIT_SHARE] - 0.5]) @ parameters))


def judge(environments, parameters):
    """Returns the modelled milliseconds of an episode, the mean of several inputs."""
    times = []
    for environment in environments:
        observation, _ = environment.reset(seed=1)
        ended = False
        while not ended:
            observation, _, ended, _, info = environment.step(act(parameters, observation))
        times.append(info["modelled_ns"] / 1e6)
    return np.mean(times)


def learn(environments, seed, generations, population, say=print):
    """Returns the parameters after so many generations: each is drawn around the best quarter of the last."""
    random = np.random.default_rng(seed)
    mean, spread = START, np.ones_like(START)
    for generation in range(generations):
        tried = mean + spread * random.standard_normal((population, *START.shape))
        # What is there already stays among those that are tried.
        tried[0] = mean
        times = np.array([judge(environments, parameters) for parameters in tried])
        best = tried[np.argsort(times, kind="stable")[: max(population // 4, 2)]]
        mean, spread = best.mean(axis=0), best.std(axis=0) + 0.05
        say(f"generation {generation + 1}: best {times.min():.2f} ms, mean {times.mean():.2f} ms")
    return mean


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--generations", type=int, default=8)
    parser.add_argument("--population", type=int, default=16)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        learned = learn(environments(folder, TRAINING), given.seed, given.generations, given.population)
        held_out = environments(folder, HELD_OUT)
        before, after = judge(held_out, START), judge(held_out, learned)
        print(f"held-out inputs: {before:.2f} ms by the starting policy, {after:.2f} ms by the learned one")
        for name in ("first-touch", "paying-oracle"):
            runs = [isotherm.simulate(os.path.join(folder, f"{number}.trace"), policy=name, fast="1:4", scale=1,
                                      quiet=True).runs.to_arrow() for number in HELD_OUT]
            print(f"for comparison, {name}: {np.mean([run['modelled_ns'][0].as_py() / 1e6 for run in runs]):.2f} ms")


if __name__ == "__main__":
    main()
