"""Hit ratios beside those of libCacheSim, and its format."""

import subprocess
import sys

import libcachesim
import numpy as np
import pytest

import isotherm
from conftest import write

ALGORITHMS = {"lru": libcachesim.LRU, "arc": libcachesim.ARC, "twoq": libcachesim.TwoQ, "belady": libcachesim.Belady}


@pytest.fixture(scope="session", params=["moving set", "cachelib-cdn", "gups"])
def stream(request, tmp_path_factory):
    """A trace, and the same as oracleGeneral."""
    folder = tmp_path_factory.mktemp("judged")
    trace = folder / "t.trace"
    if request.param == "moving set":
        write(trace, 2)
    else:
        line = ["workloads", request.param, "--export", trace, "--max-accesses", "300k", "--quiet"]
        subprocess.run([sys.executable, "-m", "isotherm", *map(str, line)], check=True)
    return trace, isotherm.export(trace, folder / "t.oracleGeneral")


@pytest.mark.parametrize("share", [0.02, 0.1, 0.4])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_hit_ratios_are_those_of_libcachesim(stream, algorithm, share):
    trace, records = stream
    pages = int(len(np.unique(np.fromfile(records, RECORD)["object"])) * share)
    (ours,) = isotherm.hit_ratios(trace, [algorithm], [pages])
    parameters = libcachesim.ReaderInitParam(ignore_obj_size=True)
    reader = libcachesim.TraceReader(str(records), libcachesim.TraceType.ORACLE_GENERAL_TRACE, parameters)
    misses, _ = ALGORITHMS[algorithm](cache_size=pages, reader=None).process_trace(reader)
    assert ours["accesses"] == len(np.fromfile(records, RECORD))
    assert round((1 - misses) * ours["accesses"]) == ours["hits"], (ours, 1 - misses)
    assert 0 < ours["hits"] < ours["accesses"]


RECORD = np.dtype([("time", "<u4"), ("object", "<u8"), ("size", "<u4"), ("next", "<i8")])


def test_an_imported_trace_has_the_same_hits(stream, tmp_path):
    trace, records = stream
    back = isotherm.convert(records, tmp_path / "back.trace", from_="oracle-general")
    sizes = [50, 500]
    assert isotherm.hit_ratios(back, pages=sizes) == isotherm.hit_ratios(trace, pages=sizes)


def test_wrong_input_is_refused(trace, tmp_path):
    with pytest.raises(ValueError, match="no algorithm 'lur'; expected one of lru, arc"):
        isotherm.hit_ratios(trace, ["lur"])
    with pytest.raises(ValueError, match="at least 1 page"):
        isotherm.hit_ratios(trace, pages=[0])
    (tmp_path / "short").write_bytes(b"\0" * 25)
    with pytest.raises(ValueError, match="short: record 0: next use"):
        isotherm.convert(tmp_path / "short", tmp_path / "no.trace", from_="oracle-general")
    assert not (tmp_path / "no.trace").exists()
