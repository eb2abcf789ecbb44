#!/usr/bin/env python3
"""Reports prose that breaks the house's rules; exit status 1 where it finds any.

    scripts/prose.py [FILE...]      all tracked files by default

- A line of a document or a comment has at most 110 columns (rustfmt keeps code). Tables, code in comments,
  addresses and other words that cannot be broken are exempt.
- A doc comment does not begin with "What" or "Defines": it names what the item is, or says what it does.
"""

import pathlib
import re
import subprocess
import sys

COLUMNS = 110
KINDS = {".rs", ".md", ".sh", ".py", ".c", ".cpp", ".h", ".sv", ".js", ".css"}
# Output of programs and other people's code.
EXEMPT = ("docs/generated/", "crates/report/assets/vendor/")
COMMENT = re.compile(r"\s*(# |//|/\*|\* )")
DOC_COMMENT = re.compile(r"\s*//[/!](?!/)")
EMPTY_OPENING = re.compile(r"\s*//[/!]\s+(What|Defines)\b")


def tracked():
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name]


def is_too_long(name, line):
    if len(line) <= COLUMNS or (name.endswith(".md") and line.lstrip().startswith("|")):
        return False
    if not name.endswith(".md") and (not COMMENT.match(line) or "`" in line and line.count("|") > 1):
        return False
    # The first words may be a comment's or a list's mark: what follows must have a place to break.
    return len(line.split()) > 3


def problems(name):
    previous_is_doc = False
    for number, line in enumerate(pathlib.Path(name).read_text(encoding="utf-8").splitlines(), 1):
        if is_too_long(name, line):
            yield f"{name}:{number}: {len(line)} columns, expected at most {COLUMNS}"
        is_doc = name.endswith(".rs") and bool(DOC_COMMENT.match(line))
        opening = EMPTY_OPENING.match(line) if is_doc and not previous_is_doc else None
        if opening:
            yield f'{name}:{number}: doc comment begins with "{opening[1]}": say what the item is or does'
        previous_is_doc = is_doc


def main():
    names = sys.argv[1:] or tracked()
    checked = [
        name
        for name in names
        if pathlib.Path(name).suffix in KINDS and not name.startswith(EXEMPT) and pathlib.Path(name).is_file()
    ]
    found = [problem for name in checked for problem in problems(name)]
    print(*found, sep="\n") if found else None
    print(f"prose: {len(checked)} files, {len(found)} problems", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
