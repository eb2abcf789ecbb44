"""The stress program at a large number of calls, and what memcheck and ASan see in the programs."""

from run import JEMALLOC, PROGRAMS, require

CALLS, THREADS, BLOCKS = 5_000_000, 8, 4_000


def stress(side):
    """40 million random calls from 8 threads, which come and go and fork: every byte of every block is
    verified."""
    program = side.built / "examples/alloc-stress"

    def peak(told, calls):
        require(told.startswith(f"ok {calls} calls"), told)
        return int(told.split()[3])

    def run(calls, **more):
        return peak(side.run(program, calls, THREADS, BLOCKS, **more), calls * THREADS)

    ours = run(CALLS)
    run(CALLS // 20, ISOTHERM_ALLOC_DEPTH="1")
    run(CALLS // 20, ISOTHERM_ALLOC_REGIONS="1")
    # What jemalloc takes for the same calls.
    theirs = run(CALLS, LD_PRELOAD=str(JEMALLOC))
    require(ours <= 1.15 * theirs, f"{ours} KiB of memory, jemalloc's {theirs}")
    return f"peak {ours / 1024:.0f} MiB, jemalloc's {theirs / 1024:.0f}"


# Each program with arguments for a tool that makes it 50 times slower.
SMALL = {
    "alloca.c": [],
    "btree.c": ["2000", "5000"],
    "contexts.c": [],
    "map.cpp": ["small"],
    "templates.cpp": [],
}


def compile_programs(side, *options):
    """The programs of SMALL, as commands."""
    commands = []
    for source, arguments in SMALL.items():
        compiler, target = "g++" if source.endswith("pp") else "gcc", side.folder / (source + ".out")
        side.run(compiler, "-O1", "-g", "-pthread", *options, PROGRAMS / source, "-o", target, LD_PRELOAD="")
        commands.append([target, *arguments])
    return commands


def memcheck(side):
    """Valgrind's memcheck, which leaves `malloc` to the library, finds no error in the library and in what
    its blocks are used for."""
    stress = [side.built / "examples/alloc-stress", "20000", "8", "1000"]
    for command in [*compile_programs(side), stress]:
        side.run(
            "valgrind", "-q", "--error-exitcode=9", "--soname-synonyms=somalloc=nouserintercepts", *command
        )
    return "no error"


def sanitizers(side):
    """The programs themselves are clean: with ASan and UBSan they run without the library."""
    # One looks for the library's function.
    commands = [
        command
        for command in compile_programs(side, "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
        if "contexts" not in command[0].name
    ]
    for command in commands:
        # They keep what they hold until they end.
        side.run(*command, LD_PRELOAD="", ASAN_OPTIONS="detect_leaks=0")
    return "no error"
