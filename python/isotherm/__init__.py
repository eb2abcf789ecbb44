"""Isotherm in Python: traces, simulations of memory tiering, and policies of your own.

>>> import isotherm
>>> result = isotherm.simulate("mine.trace", policy=["lru", "hybridtier"], fast="1:4")
>>> result.runs.to_pandas()[["policy", "hit_ratio", "slowdown"]]

Functions take the options of the verbs of `isotherm`, by the same names and with the same defaults: an option
that is None keeps the verb's default (`isotherm.options("simulate")` lists them). Sizes are texts such as
"64M", times such as "10min", or numbers of bytes. Bad input raises ValueError with one line that says what was
wrong, where, and what was expected; work that fails raises RuntimeError.

Tables (`Table`, `Trace`) have Arrow's C interface: `pyarrow.table(t)` and `polars.DataFrame(t)` take them
without a copy, and `t.to_pandas()` makes a data frame.
"""

import sys as _sys

from . import _isotherm
from ._isotherm import Sampling, Samples, Setup, Simulation, Table, Trace, View
from ._policy import Policy, Status
from ._sweep import Sweep, sweep
from ._verbs import Run, convert, export, hit_ratios, options, record, run, score, simulate, size

_isotherm.embedded(_isotherm.__file__, [_sys.executable, "-m", "isotherm"])

__all__ = [
    "Policy",
    "Run",
    "Sampling",
    "Samples",
    "Setup",
    "Simulation",
    "Status",
    "Sweep",
    "Table",
    "Trace",
    "View",
    "convert",
    "export",
    "hit_ratios",
    "options",
    "record",
    "run",
    "score",
    "simulate",
    "size",
    "sweep",
]
