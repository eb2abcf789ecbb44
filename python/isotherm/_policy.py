"""Policies that are written in Python."""

import enum
import importlib.util
import inspect
import os
import re

from . import _isotherm


class Status(enum.IntEnum):
    """What became of a move: the numbers in `settle`'s array."""

    MOVED = 0
    ALREADY_THERE = 1
    NO_ROOM = 2
    BUSY = 3
    GONE = 4
    DENIED = 5


class Policy:
    """A tiering policy: it sees samples and decides which pages move.

    A subclass sets what it needs of the attributes, and implements `observe` and `step`. For each batch of
    samples the engine calls `observe`, then `step` and, if pages moved, `settle`. A policy has no clock and no
    randomness but what it is given: the same input and seed give the same result.

    Attributes:
        name: the policy's name in results and on command lines; by default the class's, in kebab case.
        sampling: the samples that it asks for (`isotherm.Sampling`).
        allocation: the place of new pages, "fast-first" (Linux' default), "slow-first", or
            "weighted": over all tiers in turn, in the ratio of their bandwidths.
        metadata_bytes: bytes that its data structures occupy; it may change from step to step.
    """

    name = None
    sampling = _isotherm.Sampling()
    allocation = "fast-first"
    metadata_bytes = 0

    def __init__(self, setup):
        """Prepares for a run (`isotherm.Setup`)."""

    def observe(self, samples):
        """Takes a batch in (`isotherm.Samples`: arrays of one length). It may be empty."""
        raise NotImplementedError("a policy needs a method 'observe'")

    def step(self, view):
        """Returns the moves: None, or `(pages, tiers)`, carried out in this order.

        `pages` is an array of integers of shape (n,), `tiers` one of the same shape or one tier for all; 0 is
        the fastest. `view` (`isotherm.View`) tells where pages are, and `view.charge(...)` declares the work
        of this batch, which the run pays for.
        """
        raise NotImplementedError("a policy needs a method 'step'")


def name_of(policy):
    """Returns the name under which a class or another callable is registered."""
    name = getattr(policy, "name", None)
    if name is None:
        name = getattr(policy, "__name__", type(policy).__name__)
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|_", "-", name).lower()
    if not isinstance(name, str) or not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ValueError(f"{name!r} is no name of a policy; expected lower case, digits and dashes")
    return name


def register(policy, file=None):
    """Adds a policy's class, or any callable that makes a policy of a `Setup`. Returns its name."""
    name = name_of(policy)
    help = inspect.getdoc(policy) or ""
    help = " ".join(help.split("\n\n")[0].split())
    try:
        file = file or inspect.getsourcefile(policy)
    except (TypeError, OSError):
        # Written at a prompt.
        pass
    file = os.path.realpath(file) if file and os.path.isfile(file) else None
    _isotherm.register(name, policy, getattr(policy, "__name__", name), "a policy in Python", help, file)
    return name


def load(text):
    """Loads and registers a policy that is written as FILE.py:CLASS. Returns its name."""
    file, _, name = text.rpartition(":")
    if not os.path.isfile(file):
        raise ValueError("no such file; expected FILE.py:CLASS")
    module = importlib.util.module_from_spec(importlib.util.spec_from_file_location("isotherm_policy", file))
    # Not entered into sys.modules: files of one name do not disturb each other.
    module.__spec__.loader.exec_module(module)
    policy = getattr(module, name, None)
    if not callable(policy):
        raise ValueError(f"the file has no class '{name}'")
    return register(policy, file)
