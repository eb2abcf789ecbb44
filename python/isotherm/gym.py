"""Learning: a simulation as an environment of Gymnasium.

>>> from isotherm.gym import TieringEnv
>>> env = TieringEnv(workload="gups", fast="1:4", max_accesses="10M")
>>> observation, info = env.reset(seed=1)
>>> observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
"""

from __future__ import annotations

import itertools
import json
import queue
import threading
import weakref
from typing import Any

import gymnasium
import numpy as np

from . import _isotherm, _policy, _verbs

BINS = 16
"""Bins of a histogram of heat: none, and powers of two, the last of which is open."""
LEAST = 1 / 64
"""Heat below it is none."""
FAST = 0
UNMAPPED = 255

_numbers = itertools.count(1)


class TieringEnv(gymnasium.Env):
    """A tiering policy whose threshold, rate and cooling an agent sets at each step.

    An episode is one replay of a trace or workload. The policy counts the samples of each page, its heat. A
    batch of samples ends a step: then the hottest slow pages at or above the threshold are promoted while the
    rate allows it, the coldest fast pages make room for hotter ones, and all heat cools.

    Action: float32 of shape (3,), each from 0 to 1.

    - 0, threshold: pages with heat of at least `2 ** (15 * threshold)` samples are hot.
    - 1, rate: at most `2 ** (10 * (rate - 1))` times the fast tier's pages are promoted, a thousandth to all.
    - 2, cooling: heat is multiplied by `1 - cooling`.

    Observation: float32 of shape (40,), each from 0 to 1.

    - 0 to 15: shares of the mapped pages that are fast and have this heat: none, at most 1, 2, 4, ... samples.
    - 16 to 31: the same of slow pages.
    - 32: share of the step's samples that the fast tier served.
    - 33, 34, 35: pages promoted, demoted, and failed to move since the step before, over the fast tier's pages.
    - 36: share of the samples since then that were lost.
    - 37, 38: occupied shares of the fast tier and of the one below it.
    - 39: `t / (1 + t)`, where t is the time since the step before for each sampled access, in latencies of the
      fast tier.

    Reward: minus the modelled time since the step before, in milliseconds, whatever moves cost included. The
    rewards of an episode add up to minus its modelled time.

    The episode terminates with the input; `info` is then the run as `isotherm simulate --json` tells it, such
    as `modelled_ns` and `slowdown`. `reset(seed=...)` decides the episode; without a seed each is another one.

    Args:
        trace, workload, process, machine, page_size, set, scale, max_accesses, max_memory: the input and the
            machine, as in `isotherm.simulate`; samples and times are as large as the input, at scale 1.
        fast: size of the fast tier.
        sampling: the samples (`isotherm.Sampling`); by default every 64th access, in batches of 1,024.
        allocation: place of new pages, as in `isotherm.Policy`.
    """

    metadata = {"render_modes": []}

    def __init__(
        self,
        trace: Any = None,
        *,
        workload: str | None = None,
        process: str | None = None,
        machine: Any = None,
        page_size: str | None = None,
        set: dict[str, Any] | None = None,
        scale: Any = 1,
        max_accesses: Any = None,
        max_memory: Any = None,
        fast: str = "1:4",
        sampling: _isotherm.Sampling | None = None,
        allocation: str = "fast-first",
    ):
        self.action_space = gymnasium.spaces.Box(0, 1, (3,), np.float32)
        self.observation_space = gymnasium.spaces.Box(0, 1, (2 * BINS + 8,), np.float32)
        self._given = dict(trace=trace, workload=workload, process=process, machine=machine, page_size=page_size,
                           set=set, scale=scale, max_accesses=max_accesses, max_memory=max_memory, fast=fast)
        self._link = link = _Link()
        self._name = f"gym-{next(_numbers)}"
        asked = sampling or _isotherm.Sampling(period=64, batch=1024, stores=True)
        place = allocation

        class Agent(_Agent):
            """Moves pages as an agent tells it to."""

            name, sampling, allocation = self._name, asked, place

            def __init__(self, setup):
                super().__init__(setup, link.run)

        _policy.register(Agent)
        # An environment that nobody closes ends its run, too.
        weakref.finalize(self, link.end)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        """Ends a run that goes on, and begins one. Returns the first observation, and an empty dictionary."""
        super().reset(seed=seed)
        self._link.end()
        given = {**self._given, "policy": self._name, "seed": int(self.np_random.integers(1 << 32))}
        run = self._link.run = _Run()
        run.begin(["--quiet", *_verbs._line("simulate", given)])
        self._told, self._now = run.told.get(), 0
        if self._told is None:
            self._link.end(result=True)
            raise ValueError("the input ended before a batch of samples; expected a longer one, or smaller batches")
        return self._told[0], {}

    def step(self, action):
        run = self._link.run
        if run is None:
            raise RuntimeError("no episode goes on; expected `reset` before `step`")
        action = np.asarray(action, np.float64)
        if action.shape != (3,) or not ((action >= 0) & (action <= 1)).all():
            raise ValueError(f"action {action}: expected three numbers from 0 to 1")
        run.actions.put(action)
        told = run.told.get()
        if told is None:
            result = self._link.end(result=True)
            return self._told[0], -(result["modelled_ns"] - self._now) / 1e6, True, False, result
        reward = -(told[1] - self._now) / 1e6
        self._told, self._now = told, told[1]
        return told[0], reward, False, False, {}

    def close(self):
        """Ends the run."""
        self._link.end()


class _Link:
    """Holds the run of an environment, which is known by its policy without the environment itself."""

    run: _Run | None = None

    def end(self, result: bool = False) -> dict[str, Any] | None:
        run, self.run = self.run, None
        return run.end(result) if run else None


class _Run:
    """A simulation on a thread of its own, whose policy waits for an action at each step."""

    def __init__(self):
        self.told: queue.SimpleQueue = queue.SimpleQueue()
        """Observations with the time; None at the end."""
        self.actions: queue.SimpleQueue = queue.SimpleQueue()
        """Actions; None ends the run."""

    def begin(self, line: list) -> None:
        self._job = _isotherm.simulate(line)
        self._watcher = threading.Thread(target=self._watch, name="isotherm-gym", daemon=True)
        self._watcher.start()

    def _watch(self) -> None:
        while not self._job.wait(3600):
            pass
        self.told.put(None)

    def act(self, observation, now: int):
        """Tells the agent, and returns its action; called by the policy."""
        self.told.put((observation, now))
        action = self.actions.get()
        if action is None:
            raise RuntimeError("the environment was closed")
        return action

    def end(self, result: bool) -> dict[str, Any] | None:
        """Ends the run, or takes the result of one that has ended."""
        if not result:
            self._job.stop()
            self.actions.put(None)
        self._watcher.join()
        if not result:
            return None
        run = json.loads(self._job.result().json)["runs"][0]
        del run["timeline"]
        return run


class _Agent(_policy.Policy):
    """The policy of the environment: heat, threshold, rate and cooling."""

    def __init__(self, setup, run: _Run):
        self.run = run
        self.heat = np.zeros(setup.pages, np.float32)
        self.every = np.arange(setup.pages, dtype=np.uint32)
        self.metadata_bytes = self.heat.nbytes
        self.moved = np.zeros(3)
        self.time = 0

    def observe(self, samples):
        self.heat += np.bincount(samples.page, minlength=len(self.heat)).astype(np.float32)
        self.seen, self.lost, self.weight = len(samples), samples.lost, int(samples.weight.sum())
        self.hits = int((samples.tier == FAST).sum())

    def step(self, view):
        view.charge(touches=self.seen, swept=self.heat.nbytes)
        tiers = view.tiers_of(self.every)
        threshold, rate, cooling = self.run.act(self.observation(view, tiers), view.now)
        self.moved[:] = 0
        moves = self.moves(view, tiers, 2 ** (15 * threshold), 2 ** (10 * (rate - 1)))
        self.heat *= np.float32(1 - cooling)
        self.heat[self.heat < LEAST] = 0
        return moves

    def observation(self, view, tiers):
        mapped = tiers != UNMAPPED
        # 0 for none, 1 for at most one sample, 2 for at most two, and so on.
        bins = np.ceil(np.log2(np.maximum(self.heat, 1))).astype(np.int64) + (self.heat > 0)
        bins = np.minimum(bins, BINS - 1)
        heat = [np.bincount(bins[mapped & ((tiers == FAST) == fast)], minlength=BINS) for fast in (True, False)]
        shares = np.concatenate(heat) / max(mapped.sum(), 1)
        occupied = [1 - view.free(tier) / max(view.capacity(tier), 1) for tier in (0, 1)]
        time = (view.now - self.time) / max(self.weight, 1) / max(view.latency(FAST), 1)
        self.time = view.now
        hits, lost = self.hits / max(self.seen, 1), self.lost / max(self.seen + self.lost, 1)
        moved = np.minimum(self.moved / max(view.capacity(FAST), 1), 1)
        return np.concatenate([shares, [hits, *moved, lost, *occupied, time / (1 + time)]]).astype(np.float32)

    def moves(self, view, tiers, threshold, rate):
        """Returns demotions, then promotions: hot pages into free room, and in place of colder ones."""
        hot = np.flatnonzero((tiers != FAST) & (tiers != UNMAPPED) & (self.heat >= threshold))
        most = int(rate * view.capacity(FAST))
        hot = hot[np.argsort(-self.heat[hot], kind="stable")[:most]]
        free = view.free(FAST)
        fast = np.flatnonzero(tiers == FAST)
        cold = fast[np.argsort(self.heat[fast], kind="stable")[: max(len(hot) - free, 0)]]
        colder = int((self.heat[cold] < self.heat[hot[free : free + len(cold)]]).sum())
        pages = np.concatenate([cold[:colder], hot[: free + colder]])
        return pages, np.repeat(np.array([1, FAST], np.uint8), [colder, len(pages) - colder])

    def settle(self, pages, tiers, status):
        done = status == _policy.Status.MOVED
        self.moved[:] = (done & (tiers == FAST)).sum(), (done & (tiers != FAST)).sum(), (~done).sum()
