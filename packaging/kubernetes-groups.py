#!/usr/bin/env python3
"""Makes a daemon's configuration from the annotations of pods.

    kubectl get pods -A -o json | kubernetes-groups.py BASE.toml >isotherm.toml

A pod with the annotation isotherm/group belongs to the group of that name; isotherm/KEY sets the group's KEY
(protect, limit, weight, mode, policy, overhead, rate). The groups come before those of the base.
"""

import json
import pathlib
import re
import sys

PREFIX = "isotherm/"
TEXTS = {"protect", "limit", "mode", "policy", "overhead", "rate"}


def fail(pod, reason):
    metadata = pod["metadata"]
    sys.exit(f"kubernetes-groups: pod {metadata['namespace']}/{metadata['name']}: {reason}")


def annotations(pod):
    known = pod["metadata"].get("annotations", {})
    return {key.removeprefix(PREFIX): value for key, value in known.items() if key.startswith(PREFIX)}


def settings(pod, own):
    for key in own:
        if key not in TEXTS | {"weight"}:
            fail(pod, f"{PREFIX}{key}: expected one of {', '.join(sorted(TEXTS | {'group', 'weight'}))}")
    try:
        weight = float(own.pop("weight", 1))
    except ValueError as error:
        fail(pod, f"{PREFIX}weight: {error}")
    # JSON's strings are strings of TOML.
    return [f"weight = {weight}", *(f"{key} = {json.dumps(own[key])}" for key in sorted(own))]


def cgroups(pod):
    """The pod's cgroup as the kubelet's drivers systemd and cgroupfs name it."""
    uid = pod["metadata"]["uid"]
    return [f"**-pod{uid.replace('-', '_')}.slice", f"**/pod{uid}"]


def groups(pods):
    found = {}
    for pod in pods:
        own = annotations(pod)
        name = own.pop("group", None)
        if name is None and own:
            fail(pod, f"expected {PREFIX}group beside {PREFIX}{min(own)}")
        if name is None:
            continue
        lines = settings(pod, own)
        paths, before = found.setdefault(name, ([], lines))
        if lines != before:
            fail(pod, f"its settings differ from those of another pod in group {name}")
        paths.extend(cgroups(pod))
    return found


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    base = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
    first = re.search(r"^\[\[group\]\]|\Z", base, re.MULTILINE).start()
    print(base[:first])
    for name, (paths, lines) in sorted(groups(json.load(sys.stdin)["items"]).items()):
        print("[[group]]", f"name = {json.dumps(name)}", f"cgroup = {json.dumps(paths)}", *lines, "", sep="\n")
    print(base[first:], end="")


if __name__ == "__main__":
    main()
