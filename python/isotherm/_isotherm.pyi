"""The extension module."""

from os import PathLike
from pathlib import Path
from typing import Any, Callable, Optional, Sequence, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

class Sampling:
    """The sampling that a policy asks for.

    Args:
        period: sample every so many accesses of each thread; or
        frequency: so many samples a second of each thread (100,000 by default).
        batch: samples that end a batch.
        tick: seconds that end one.
        stores: sample stores beside loads.
        each_tier: one event for each tier, so that a rarely used tier is sampled more densely.
    """

    def __new__(
        cls,
        *,
        period: Optional[int] = None,
        frequency: Optional[int] = None,
        batch: int = 4096,
        tick: float = 1.0,
        stores: bool = False,
        each_tier: bool = False,
    ) -> Sampling: ...

class Setup:
    """The run that a policy is built for."""

    pages: int
    """One more than the largest page."""
    fast: int
    """Pages that the fast tier holds."""
    page_size: int
    """Bytes of a page."""
    tiers: int
    """Number of tiers."""
    seed: int
    """Seed of random choices."""

class Samples:
    """A batch of samples, in the order in which they were taken: arrays of shape (n,)."""

    page: NDArray[np.uint32]
    tier: NDArray[np.uint8]
    """Tier that served it; 0 is the fastest."""
    store: NDArray[np.bool_]
    time: NDArray[np.uint64]
    """Time in nanoseconds."""
    weight: NDArray[np.uint32]
    """Accesses that it stands for."""
    latency: NDArray[np.uint32]
    """Latency in nanoseconds; 0 where it is not known."""
    lost: int
    """Samples lost since the batch before."""

    def __len__(self) -> int: ...

class View:
    """The memory as a policy sees it, valid within the call of `step` that it was given to."""

    @property
    def now(self) -> int:
        """Time in nanoseconds."""
    @property
    def pages(self) -> int:
        """One more than the largest page so far."""
    @property
    def tiers(self) -> int:
        """Number of tiers."""
    def capacity(self, tier: int) -> int:
        """Pages that a tier holds."""
    def free(self, tier: int) -> int:
        """Free pages of a tier."""
    def latency(self, tier: int) -> int:
        """Latency of a load from the idle tier, in nanoseconds."""
    def bandwidth(self, tier: int) -> int:
        """Bandwidth at which a tier is read, in bytes a second; 0 where nobody tells."""
    def tiers_of(self, pages: ArrayLike) -> NDArray[np.uint8]:
        """Tier of each page, 255 for one that is not mapped. `pages` has the shape (n,).

        Raises:
            ValueError: a page is not below `pages`.
        """
    def walk(self, cursor: int, limit: int) -> tuple[Optional[int], NDArray[np.uint32], NDArray[np.uint8]]:
        """At most `limit` mapped pages from `cursor` on, and their tiers; first the page to go on from, None at the
        end. The run pays for reading the page table."""
    def charge(self, *, touches: int = 0, operations: int = 0, swept: int = 0) -> None:
        """Declares work since the step before: cache lines touched at random, operations, bytes swept in order."""

class Table:
    """A table of Arrow. `pyarrow.table(t)` and `polars.DataFrame(t)` take it without a copy."""

    @property
    def columns(self) -> list[str]: ...
    def to_arrow(self) -> Any:
        """A `pyarrow.Table`."""
    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`; needs pyarrow too."""
    def to_polars(self) -> Any:
        """A `polars.DataFrame`."""
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...
    def __arrow_c_schema__(self) -> Any: ...

class Trace:
    """A trace on disk: accesses that missed the last-level cache, in the order in which they happened.

    As a table of Arrow it has the columns `row` (uint64, the place in time), `process` and `thread` (uint32),
    `instructions` (uint32, of the thread since its row before), `line` (uint64, address >> 6), `store` (bool) and
    `dependence` (uint8, distance to the miss that the address depends on, 0 for none).

    Raises:
        ValueError: there is no trace at the path.
    """

    def __new__(cls, path: Union[str, PathLike[str]]) -> Trace: ...
    @staticmethod
    def write(path: Union[str, PathLike[str]], table: Any, *, command: str = "", note: str = "") -> Trace:
        """Writes any table of Arrow (an object with `__arrow_c_stream__`) as a trace, at a path that is free.

        The table has a column `line` or `address` (bytes), and any of the others; without them rows have
        process 0, thread 0, 100 instructions, loads and no dependence.

        Raises:
            ValueError: a column lacks, is of another kind, or has a value out of range.
        """
    def rows(
        self,
        start: int = 0,
        stop: Optional[int] = None,
        *,
        process: Optional[int] = None,
        thread: Optional[int] = None,
        mapping: Optional[str] = None,
    ) -> Table:
        """The rows from `start` on before `stop`; of a process, a thread, or the memory of one name, such as
        "[heap]" or a file's path, as `mappings` has them."""
    @property
    def mappings(self) -> Table:
        """What was mapped when: `row`, `process`, `event`, `start`, `end`, `name`."""
    @property
    def path(self) -> Path: ...
    @property
    def provenance(self) -> dict[str, Any]:
        """Its origin: command, recorder, cache and more."""
    def __fspath__(self) -> str: ...
    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...

class Simulation:
    """The result of `simulate`. docs/reference/result-schema.md explains the columns."""

    @property
    def runs(self) -> Table:
        """A row for each policy and size; columns of parts are joined: `parts_sampling`. Times in ns."""
    @property
    def timelines(self) -> Table:
        """A row for each interval of each run."""
    @property
    def pages(self) -> Table:
        """A row for each page of each run of a policy: `policy`, `fast`, `process`, `address` (bytes), `accesses`,
        `stores`, and `tier`, that at the end (null where the page is not mapped)."""
    @property
    def json(self) -> str:
        """As `isotherm simulate --json`."""

class Job:
    def wait(self, seconds: float) -> bool: ...
    def position(self) -> tuple[str, int, Optional[int]]: ...
    def stop(self) -> None: ...
    def result(self) -> Any: ...

def embedded(file: str, command: Sequence[str]) -> None: ...
def main(line: Sequence[str]) -> int: ...
def options(verb: str) -> list[tuple[str, bool, str, str]]: ...
def line(verb: str, given: dict[str, Any]) -> list[str]: ...
def simulate(line: Sequence[str]) -> Job: ...
def size(line: Sequence[str]) -> Job: ...
def hits(line: Sequence[str], algorithms: Sequence[str], capacities: Sequence[int]) -> Job: ...
def register(
    name: str, policy: Callable[[Setup], Any], title: str, paper: str, help: str, file: Optional[str] = None
) -> None: ...
