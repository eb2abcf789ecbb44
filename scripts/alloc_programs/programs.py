"""Real programs that check themselves. Each check gets a side and returns what must be the same with and
without the library."""

import hashlib
import os
import time

from run import PROGRAMS, require


def sha(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def redis(side):
    """All of redis-benchmark, then a store of more keys through DEBUG RELOAD and BGSAVE into a server without
    the library."""
    socket = side.folder / "socket"

    def serve(with_library=True):
        options = [
            "--port",
            "0",
            "--save",
            "",
            "--enable-debug-command",
            "yes",
            "--unixsocket",
            socket,
            "--dir",
            side.folder,
        ]
        server = side.start("redis-server", *options, **({} if with_library else {"LD_PRELOAD": ""}))
        until(lambda: ask("ping", status=None) == "PONG", "no answer")
        return server

    def ask(*words, status=0):
        return side.run("redis-cli", "-s", socket, *words, status=status, LD_PRELOAD="").strip()

    def benchmark(*options):
        return side.run("redis-benchmark", "-s", socket, "--csv", *options)

    server = serve()
    try:
        tests = [line.split(",")[0] for line in benchmark("-n", "50000").splitlines()]
        require(len(tests) > 15, f"only {len(tests)} tests")
        benchmark(
            "-n", "100000", "-r", "30000", "-P", "16", "-d", "120", "-t", "set,lpush,hset,zadd,sadd,spop,incr"
        )
        keys, digest = ask("dbsize"), ask("debug", "digest")
        require(int(keys) > 20000 and len(digest) == 40, f"{keys} keys, digest {digest}")
        require(ask("debug", "reload") == "OK", "no reload")
        require(ask("debug", "digest") == digest, "another digest after a reload")
        ask("bgsave")
        until(lambda: "rdb_bgsave_in_progress:0" in ask("info", "persistence"), "not saved")
        require("rdb_last_bgsave_status:ok" in ask("info", "persistence"), "the save failed")
    finally:
        end(server)
    side.run("redis-check-rdb", side.folder / "dump.rdb")
    server = serve(with_library=False)
    try:
        require(ask("debug", "digest") == digest, "another digest in a server without the library")
    finally:
        end(server)
    return tests


def until(holds, otherwise, seconds=60):
    end_at = time.monotonic() + seconds
    while not holds():
        require(time.monotonic() < end_at, otherwise)
        time.sleep(0.05)


def end(server):
    server.terminate()
    server.wait()


def sqlite(side):
    """Tables, indices, joins, text search, updates, deletions and transactions in a file; its integrity and
    what is in it."""
    side.run("sqlite3", "data.db", text=(PROGRAMS / "speed.sql").read_text())
    dump = side.run("sqlite3", "data.db", ".dump")
    require(
        side.run("sqlite3", "data.db", "pragma integrity_check; pragma foreign_key_check;") == "ok\n",
        "no integrity",
    )
    memory = side.run("sqlite3", ":memory:", text=(PROGRAMS / "speed.sql").read_text())
    require("integrity ok" in memory, "no integrity in memory")
    return hashlib.sha256(dump.encode()).hexdigest(), memory


def compiler(side):
    """g++ makes the same object of much C++, and the program does the same."""
    target = side.folder / "templates.o"
    side.run("g++", "-std=c++17", "-O2", "-c", PROGRAMS / "templates.cpp", "-o", target)
    made = sha(target)
    side.run("g++", target, "-o", "templates")
    return made, side.run("./templates")


def git(side):
    """A repository of 40 commits is made, cloned, packed and checked."""
    # Two threads pack, which may choose other deltas from run to run: the objects are what is compared.
    who = {
        f"GIT_{role}_{what}": value
        for role in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "a"), ("EMAIL", "e"))
    }
    settings = who | {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    origin = side.folder / "origin"
    origin.mkdir()

    def run(*words, at=origin, **more):
        return side.run("git", "-C", at, *words, **(settings | more))

    run("init", "-q", "-b", "main")
    for commit in range(40):
        for file in range(commit % 5, 600, 5):
            lines = (f"{file} {line * commit % 97} {line}\n" for line in range(file % 200))
            path = origin / f"d{file % 13}" / f"f{file}"
            path.parent.mkdir(exist_ok=True)
            path.write_text("".join(lines))
        run("add", ".")
        date = f"2020-01-01T00:{commit:02}:00Z"
        run(
            "commit", "-q", "--allow-empty", "-m", f"c{commit}", GIT_AUTHOR_DATE=date, GIT_COMMITTER_DATE=date
        )
    side.run("git", "clone", "-q", "--no-local", origin, "copy", **settings)
    copy = side.folder / "copy"
    run("gc", "-q", "--aggressive", at=copy)
    run("fsck", "--strict", "--full", at=copy)
    run("grep", "-n", "--threads=4", "19 7", at=copy, status=None)
    return run("log", "--stat", "--format=%H %T", at=copy), run(
        "cat-file", "--batch-check", "--batch-all-objects", at=copy
    )


def cxx_map(side):
    """Maps of strings in four threads, and every form of C++'s operators."""
    side.run("g++", "-O2", "-pthread", PROGRAMS / "map.cpp", "-o", "map", LD_PRELOAD="")
    told = side.run("./map")
    require(told.endswith("1 1 1\n"), told)
    return told


def rust(side):
    """ripgrep searches the system's headers and Python with four threads."""
    options = ["--threads", "4", "--no-messages", "--no-ignore", "--count-matches", "--no-config"]
    found = []
    for pattern in (
        r"(un)?signed\s+\w+|def \w+",
        r"(?i)[a-z_]*alloc[a-z_]*\(",
        r"\b(\w+), (\w+)\)$",
        r"0x[0-9a-f]{4,}",
    ):
        found += side.run("rg", *options, pattern, "/usr/include", os.path.dirname(os.__file__)).splitlines()
    require(len(found) > 500, "few files")
    return sorted(found)


def node(side):
    """Garbage, workers, compression and child processes."""
    told = side.run("node", "--max-old-space-size=256", PROGRAMS / "work.js")
    require(told.endswith("done\n"), told[-300:])
    return told
