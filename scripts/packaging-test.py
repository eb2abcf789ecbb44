"""Holds what packaging/ ships against the programs that read it.

    build/venv/bin/python scripts/packaging-test.py ISOTHERM

- Configurations, also the one in the manifest: `isotherm daemon --check`.
- The manifest: Kubernetes' own schema. Annotations of pods become groups.
- Metrics and dashboard: Prometheus (build/prometheus) reads /metrics of a daemon in shadow mode, and promtool
  asks it every query of the dashboard.
"""

import contextlib
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import kubernetes_validate
import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGING = ROOT / "packaging"
PROMETHEUS = ROOT / "build/prometheus/usr/bin"
KUBERNETES = "1.34"
# Not known for every program and kernel.
MAY_BE_EMPTY = ("isotherm_hit_ratio", "isotherm_kernel_vmstat_total")


def check_configuration(isotherm, text):
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
        file.write(text)
        file.flush()
        subprocess.run([isotherm, "daemon", "--check", "--config", file.name], check=True)


def check_manifest(isotherm):
    documents = list(yaml.safe_load_all((PACKAGING / "kubernetes.yaml").read_text()))
    for document in documents:
        kubernetes_validate.validate(document, KUBERNETES, strict=True)
    by_kind = {document["kind"]: document for document in documents}
    check_configuration(isotherm, by_kind["ConfigMap"]["data"]["isotherm.toml"])
    container = by_kind["DaemonSet"]["spec"]["template"]["spec"]["containers"][0]
    added = {f"CAP_{name}" for name in container["securityContext"]["capabilities"]["add"]}
    unit = (PACKAGING / "isotherm.service").read_text().splitlines()
    (bound,) = (line.split("=")[1].split() for line in unit if line.startswith("CapabilityBoundingSet="))
    assert added == set(bound), f"the manifest adds {added}, the unit keeps {bound}"


def pod(name, uid, **annotations):
    annotations = {f"isotherm/{key}": value for key, value in annotations.items()}
    return {"metadata": {"namespace": "shop", "name": name, "uid": uid, "annotations": annotations}}


def groups_of_pods(pods):
    command = [PACKAGING / "kubernetes-groups.py", PACKAGING / "isotherm.toml"]
    return subprocess.run(command, input=json.dumps({"items": pods}), capture_output=True, text=True)


def check_annotations(isotherm):
    settings = {"group": "database", "protect": "4G", "weight": "2"}
    pods = [pod("db-0", "11-aa", **settings), pod("db-1", "22-bb", **settings), pod("web", "33-cc")]
    made = groups_of_pods(pods)
    assert made.returncode == 0, made.stderr
    paths = '["**-pod11_aa.slice", "**/pod11-aa", "**-pod22_bb.slice", "**/pod22-bb"]'
    for line in ['name = "database"', f"cgroup = {paths}", 'protect = "4G"', "weight = 2.0"]:
        assert line in made.stdout.splitlines(), f"{line} is missing:\n{made.stdout}"
    assert "33" not in made.stdout
    check_configuration(isotherm, made.stdout)
    for wrong, why in [
        ({"protect": "1G"}, "expected isotherm/group beside isotherm/protect"),
        ({"group": "a", "speed": "1"}, "isotherm/speed: expected one of"),
        ({"group": "a", "weight": "much"}, "isotherm/weight: could not convert"),
        ({"group": "database"}, "its settings differ"),
    ]:
        made = groups_of_pods([*pods, pod("odd", "44-dd", **wrong)])
        assert made.returncode != 0 and f"pod shop/odd: {why}" in made.stderr, made.stderr


@contextlib.contextmanager
def running(*command):
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.terminate()
        _, messages = process.communicate(timeout=30)
        print(messages if process.returncode not in (0, -15) else "", end="", file=sys.stderr)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def check_metrics(isotherm, folder):
    program = shutil.copy("/bin/sleep", folder / "measured-program")
    metrics, prometheus = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    (folder / "isotherm.toml").write_text(
        f'fast = "8M"\nshadow = true\nlisten = "{metrics}"\n[[group]]\nname = "sleep"\n'
        f'command = "{program.name}"\nprotect = "1M"\nlimit = "4M"\n'
    )
    (folder / "prometheus.yml").write_text(
        "scrape_configs:\n- job_name: isotherm\n  scrape_interval: 1s\n"
        f"  static_configs:\n  - targets: ['{metrics}']\n"
    )

    def ask(query):
        command = [PROMETHEUS / "promtool", "query", "instant", f"http://{prometheus}", query]
        return subprocess.run(command, capture_output=True, text=True)

    def until_known(query):
        """A rate needs two samples; Prometheus says `up` of 0 for a page that it cannot parse."""
        deadline = time.monotonic() + 60
        while not (answer := ask(query)).stdout.strip():
            assert time.monotonic() < deadline, f"{query}: no answer {answer.stderr}"
            time.sleep(0.5)

    with (
        running(program, "600"),
        running(isotherm, "daemon", "--config", folder / "isotherm.toml", "--socket", folder / "socket"),
        running(
            PROMETHEUS / "prometheus",
            f"--config.file={folder}/prometheus.yml",
            f"--storage.tsdb.path={folder}/data",
            f"--web.listen-address={prometheus}",
            "--log.level=error",
        ),
    ):
        until_known('up{job="isotherm"} == 1')
        until_known('isotherm_programs{group="sleep"} == 1')
        dashboard = json.loads((PACKAGING / "grafana.json").read_text())
        queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
        for query in queries:
            query = query.replace("$group", ".*")
            answer = ask(query)
            assert answer.returncode == 0, f"{query}: {answer.stderr}"
            if not any(name in query for name in MAY_BE_EMPTY):
                until_known(query)
        until_known('up{job="isotherm"} == 1')
    return len(queries)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    isotherm = pathlib.Path(sys.argv[1]).resolve()
    check_configuration(isotherm, (PACKAGING / "isotherm.toml").read_text())
    check_manifest(isotherm)
    check_annotations(isotherm)
    with tempfile.TemporaryDirectory() as folder:
        queries = check_metrics(isotherm, pathlib.Path(folder))
    print(f"packaging: configurations, manifest, annotations and {queries} queries of the dashboard are right")


if __name__ == "__main__":
    main()
