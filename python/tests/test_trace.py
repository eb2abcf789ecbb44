"""Traces as tables, and tables as traces."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

import isotherm
from conftest import ROWS, accesses


def test_a_written_trace_is_read_as_it_was(trace):
    table = pa.table(trace)
    assert table.schema.names == ["row", "process", "thread", "instructions", "line", "store", "dependence"]
    assert len(trace) == table.num_rows == ROWS
    pages = table["line"].to_numpy() // 64 - 0x7F0000000000 // 4096
    assert (pages == accesses(1)).all()
    assert table["row"].to_pylist()[:3] == [0, 1, 2]
    assert 0.29 < np.mean(table["store"].to_numpy(zero_copy_only=False)) < 0.31
    assert table["dependence"].to_numpy().max() == 2
    assert trace.provenance["command"] == "a test" and trace.provenance["note"] == "made by numpy"
    assert trace.provenance["dependence"]


def test_polars_and_pandas_take_it(trace):
    polars = pl.DataFrame(trace)
    assert polars["row"].sum() == ROWS * (ROWS - 1) // 2
    pandas = trace.rows(10, 20).to_pandas()
    assert isinstance(pandas, pd.DataFrame) and list(pandas["row"]) == list(range(10, 20))
    assert trace.rows(0, 5).to_polars().shape == (5, 7)


def test_the_reader_s_own_parquet_agrees(trace):
    (part,) = trace.path.glob("part-*.parquet")
    theirs = pyarrow.parquet.read_table(part)
    ours = pa.table(trace).select(theirs.schema.names)
    for name in theirs.schema.names:
        assert (ours[name].to_numpy(zero_copy_only=False) == theirs[name].to_numpy(zero_copy_only=False)).all()


def test_rows_by_time_and_thread(trace):
    whole = pa.table(trace)
    some = pa.table(trace.rows(150_000, 250_123, thread=1))
    rows = some["row"].to_numpy()
    expected = np.flatnonzero(whole["thread"].to_numpy() == 1)
    assert (rows == expected[(expected >= 150_000) & (expected < 250_123)]).all()
    assert (some["line"].to_numpy() == whole["line"].to_numpy()[rows]).all()
    assert pa.table(trace.rows(process=7)).num_rows == 0
    assert pa.table(trace.rows(ROWS)).num_rows == 0


def test_rows_by_mapping(trace, tmp_path):
    with pytest.raises(ValueError, match="it has no mappings; expected a recording"):
        pa.table(trace.rows(mapping="[heap]"))
    assert pa.table(trace.mappings).num_rows == 0
    table = pa.table({"line": pa.array([64, 128, 64, 64], pa.uint64())})
    mapped = isotherm.Trace.write(tmp_path / "mapped.trace", table)
    (tmp_path / "mapped.trace/_mappings.jsonl").write_text(
        '{"row":0,"process":0,"event":"map","start":4096,"end":8192,"name":"[heap]"}\n'
        '{"row":1,"process":0,"event":"map","start":8192,"end":12288,"name":"/bin/x"}\n'
        '{"row":3,"process":0,"event":"unmap","start":4096,"end":8192}\n'
    )
    assert pa.table(mapped.rows(mapping="[heap]"))["row"].to_pylist() == [0, 2]
    assert pa.table(mapped.rows(1, mapping="[heap]"))["row"].to_pylist() == [2]
    assert pa.table(mapped.rows(mapping="/bin/x"))["row"].to_pylist() == [1]
    assert pa.table(mapped.mappings)["event"].to_pylist() == ["map", "map", "unmap"]


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ({"page": [1]}, "expected one of 'line'"),
        ({"line": [1], "address": [64]}, "expected one of 'line'"),
        ({"line": [-1]}, "column 'line'"),
        ({"line": [1], "thread": [1 << 40]}, "column 'thread'"),
        ({"line": [1], "dependence": [256]}, "column 'dependence'"),
        ({"line": ["x"]}, "column 'line'"),
        ({"line": [None, 1]}, "column 'line' has nulls"),
    ],
)
def test_a_wrong_table_is_refused_in_one_line_and_leaves_nothing(tmp_path, table, problem):
    with pytest.raises(ValueError, match=problem) as caught:
        isotherm.Trace.write(tmp_path / "wrong.trace", pa.table(table))
    assert "\n" not in str(caught.value) and "wrong.trace" in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_missing_or_wrong_file_is_refused(tmp_path):
    with pytest.raises(ValueError, match="no.trace: cannot open"):
        isotherm.Trace(tmp_path / "no.trace")
    (tmp_path / "text").write_text("not a trace, but long enough")
    with pytest.raises(ValueError, match="not a trace"):
        isotherm.Trace(tmp_path / "text")


def test_a_trace_is_not_written_over(trace):
    with pytest.raises(ValueError, match="exists already"):
        isotherm.Trace.write(trace.path, pa.table({"line": [1]}))
