"""The tests of Debian's Python, by test and result."""

import collections
import xml.etree.ElementTree

PYTHON = "/usr/bin/python3"
TESTS = """test_threading test_thread test_threading_local test_threadedtempfile test_subprocess test_ctypes
    test_multiprocessing_fork test_multiprocessing_spawn test_multiprocessing_forkserver test_fork1 test_wait3
    test_gc test_weakref test_zlib test_bz2 test_lzma test_hashlib test_json test_pickle test_re test_mmap
    test_array test_bytes test_list test_dict test_set
    test_signal test_faulthandler test_capi test_xml_etree_c""".split()


def results(report):
    """A result for each test of a report in JUnit's format."""
    told = {}
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        kinds = {"error": "failed", "failure": "failed", "skipped": "skipped"}
        result = next((kinds[child.tag] for child in case if child.tag in kinds), "passed")
        # A test with subtests is told once for each that fails.
        name = case.get("name")
        told[name] = result if told.get(name) != "failed" else "failed"
    return told


# Debian's package leaves this one out.
OWN_PACKAGE = "test_sqlite3"


def run(side):
    """Every test of TESTS, each block by `malloc`: Python's own small-object allocator is off."""
    told = run_tests(side, PYTHON, TESTS)
    # Another Python may have it.
    python = side.run("python3", "-c", "import sys; print(sys.executable)", LD_PRELOAD="").strip()
    find = f"import importlib.util as u; print(bool(u.find_spec('test.{OWN_PACKAGE}')))"
    if side.run(python, "-c", find, LD_PRELOAD="") == "True\n":
        told |= run_tests(side, python, [OWN_PACKAGE])
    return told


def run_tests(side, python, tests):
    report = side.folder / "report.xml"
    # A test that fails without the library too makes a status; so the report is what counts.
    side.run(python, "-m", "test", "-j2", "--junit-xml", report, *tests, status=None, PYTHONMALLOC="malloc")
    return results(report)


def compare(alone, under):
    """What the library made worse, and a summary."""
    worse = sorted(
        name for name, result in under.items() if result == "failed" and alone.get(name) != "failed"
    )
    missing = sorted(f"{name} did not run" for name in alone if name not in under)
    skipped = sorted(
        name for name, result in under.items() if result == "skipped" and alone.get(name) == "passed"
    )
    counts = collections.Counter(under.values())
    both = sum(1 for name, result in under.items() if result == "failed" and alone.get(name) == "failed")
    summary = f"{counts['passed']} passed, {counts['skipped']} skipped, {both} fail without it too"
    return [
        *(f"{name} failed" for name in worse),
        *missing,
        *(f"{name} was skipped" for name in skipped),
    ], summary
