"""What a refused file is answered with works: each command of tracekit's in the sentence is run."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.unit.cli.test_sql import run  # noqa: F401 - a fixture
from tests.unit.trace.importers.audit_logs import entry
from tests.unit.trace.importers.test_fuzz import audit_lines, compact, objects, watch_lines
from tests.unit.trace.importers.test_kcm_log import TEXT
from tests.unit.trace.importers.test_kubectl_text import DESCRIBED
from tests.unit.trace.importers.test_registry import AT_NS, lines, unpacked

_COMMAND = re.compile(r"`(tracekit|kubectl|jq|journalctl|oc|etcdctl)( [^`]*)`")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)
#: What these print of a cluster or a file is read (test_formats.py, test_wrappers.py); they need one to be run.
OF_OTHERS = {
    "kubectl get cronjobs,jobs,pods,events -A -o json",
    "kubectl get cronjobs,jobs,pods,events -A -o yaml",
    "journalctl -u UNIT -o json --all",
    "jq -c '.items[]'",
    "etcdctl snapshot save snapshot.db",
    "etcdctl get -w json",  # what such a file is of
}
IMPORTERS = Path(__file__).resolve().parents[3] / "tracekit" / "trace" / "importers"


def text(path: Path, content: bytes | str) -> None:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def joined(lines: list[bytes]) -> bytes:
    return b"\n".join(lines) + b"\n"


def manifest(kind: str, **spec: object) -> dict:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    inner = {"template": template, **spec}
    if kind == "CronJob":
        inner = {"schedule": "*/5 * * * *", "jobTemplate": {"spec": inner}}
    if kind == "Pod":
        inner = template["spec"]
    version = "v1" if kind == "Pod" else "batch/v1"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "m"}, "spec": inner}


METADATA = entry("create", "jobs", "j", level="Metadata", code=201)
NO_BATCH = entry("create", "services", "p", level="Metadata", code=201)
RECEIVED = entry("create", "jobs", "j", stage="RequestReceived")

LIST = {"apiVersion": "v1", "kind": "List", "items": objects()}

#: What is asked, of what file, and what must be in the answer beside a command that works.
REFUSALS: dict[str, tuple[list[str], str | bytes, str]] = {
    "audit as watch": (["import", "watch", "it.log"], joined(audit_lines()), "audit log"),
    "watch as audit": (["import", "audit", "it.log"], joined(watch_lines()), "but watch"),
    "objects as audit": (["import", "audit", "it.json"], joined([*map(compact, objects())]), "but kubectl"),
    "description as kubectl": (["import", "kubectl", "it.txt"], DESCRIBED, "but kubectl-text"),
    "a manager's log": (["import", "it.log"], TEXT, "beside a record"),
    "a manager's log as audit": (["import", "audit", "it.log"], TEXT, "but kcm-log"),
    "a CronJob's manifest": (["import", "it.yaml"], yaml.safe_dump(manifest("CronJob")), "manifests only"),
    "a Job's manifest": (["import", "it.yaml"], yaml.safe_dump(manifest("Job")), "manifests only"),
    "a manifest in JSON": (["import", "it.json"], json.dumps(manifest("Job"), indent=2), "manifests only"),
    "a list of manifests": (
        ["import", "it.json"],
        json.dumps({"apiVersion": "v1", "kind": "List", "items": [manifest("CronJob"), manifest("Job")]}),
        "manifests only",
    ),
    "a pod's manifest": (["import", "it.yaml"], yaml.safe_dump(manifest("Pod")), "manifests only"),
    "names with spaces": (["import", "audit", "it is.log"], joined(watch_lines()), "but watch"),
    "judging who wrote": (["replay", "it.log", "--diff"], compact(METADATA) + b"\n", "Metadata level"),
    "audit without answers": (["import", "it.log"], compact(RECEIVED) + b"\n", "no answer"),
    "audit without batch": (["import", "it.log"], compact(NO_BATCH) + b"\n", "the API group batch"),
    "prose": (["import", "it.txt"], "some prose\n", "nothing that can be imported"),
    "another table": (["import", "it.txt"], "NAME   STATUS   AGE\nn1     Ready    3d\n", "prints for people"),
    "another description": (["import", "it.txt"], "Name:   n1\nLabels: a=b\n", "prints for people"),
    "other kinds": (
        ["import", "it.yaml"],
        yaml.safe_dump({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "n", "uid": "u"}}),
        "none of the kinds",
    ),
    "journal entries cut": (["import", "it.json"], b'{"MESSAGE":null,"_PID":"1"}\n', "journal entries"),
    "a file for a trace": (["replay", "it.jsonl", "--diff"], joined(watch_lines()), "it is a file"),
    "text for a trace": (["replay", "it.txt"], DESCRIBED, "it is a file"),
    "judging text": (["replay", "it.txt", "--diff"], DESCRIBED, "nothing of the trace can be judged"),
    "judging Events": (
        ["replay", "it.json", "--diff", "--kubernetes-version", "v1.36.3"],
        json.dumps({"apiVersion": "v1", "kind": "EventList", "metadata": {}, "items": [
            {"metadata": {"name": "e", "namespace": "ns", "uid": "u", "resourceVersion": "7",
                          "creationTimestamp": "2026-03-01T10:00:00Z"},
             "involvedObject": {"kind": "Job", "name": "j", "namespace": "ns"}, "reason": "R"}]}),
        "no states of Jobs",
    ),
    "a trace alone": (["import", "it.jsonl"], joined(watch_lines()), "is a trace already"),
    "merging looks": (["merge", "it.json", "it.json", "-o", "refused"], json.dumps(LIST), "takes such records only"),
    "what etcdctl prints": (
        ["import", "it.json"], '{"header":{"revision":7},"kvs":[{"key":"a","mod_revision":7}]}\n', "etcdctl get -w json"
    ),
    "objects under a key": (
        ["import", "it.json"], json.dumps({"result": {"resources": LIST["items"]}}), "objects under `result`"
    ),
}  # fmt: skip
#: What is asked of the trace that is made of the file.
MADE = "a.trace"
OF_TRACE = ("judging who wrote", "judging Events", "judging text", "a trace alone", "merging looks")


def commands(said: str) -> list[list[str]]:
    found = [shlex.split(f"{tool}{rest}") for tool, rest in _COMMAND.findall(said)]
    assert found, said
    return [command for command in found if command[0] != "kubectl" or "-o" in command]


def of_others(folder: Path) -> None:
    """What the commands of others that are named here would have left: a snapshot, objects."""
    lines(folder / "objects.jsonl", [*map(compact, objects())])
    unpacked(folder / "snapshot.db", "v1.36.3-etcd-3.6.16-snapshot.zst")


def record(path: Path) -> Path:
    """A record of the time of the manager's log."""
    states = [
        compact({"recv": at, "resource": "jobs", "type": "ADDED", "object": obj})
        for at, obj in zip((AT_NS - 10**11, AT_NS + 10**11), objects()[::2], strict=False)
    ]
    text(path, joined(states))
    return path


@pytest.mark.parametrize("name", REFUSALS)
def test_the_command_in_a_refusal_works(
    run,  # noqa: F811
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words, content, wanted = REFUSALS[name]
    monkeypatch.chdir(tmp_path)
    file = next(word for word in words if word.startswith("it"))
    text(tmp_path / file, content)
    of_others(tmp_path)
    given = file
    if name in OF_TRACE:
        assert run("import", file, "-o", MADE)[0] == 0
        words = [word if word != file else MADE for word in words]
        file = MADE
    code, _, err = run(*words, *(["-o", "refused"] if words[0] == "import" else []))
    assert code == 2
    assert err.count("\n") == 1
    assert wanted in err
    for number, command in enumerate(commands(err)):
        if " ".join(command) in OF_OTHERS or shlex.join(command) in OF_OTHERS:
            continue
        if command[1:] == ["import", "--help"]:
            code, out, _ = run("import", "--help")
            assert (code, "kcm-log" in out) == (0, True)
            continue
        if command[0] == "jq":
            assert command[3:] == [file, ">", "objects.jsonl"]
            continue
        assert command[0] == "tracekit", command
        places = {"RECORD": str(record(tmp_path / "record")), "FILE": given, "TRACE": f"t{number}",
                  "A": MADE, "B": given}  # fmt: skip
        asked = [places.get(word, word) for word in command[1:]]
        if len(asked) == 1:  # a verb by name is asked of the same trace
            asked.append(file)
        code, out, said = run(*asked)
        assert code == 0, (command, said)


def test_two_lists_of_commands_are_one() -> None:
    """Whatever sentence names another tool's command names one of these."""
    found = set()
    for path in IMPORTERS.rglob("*.py"):
        for said in re.findall(r'"[^"\n]*`(kubectl get [^`"…]*)`[^"\n]*"', path.read_text()):
            found.add(said)
    assert {command for command in found if " -o " in command} <= OF_OTHERS


def templates(tree: ast.AST) -> Iterator[str]:
    """The texts of a module, with `{}` for what is put into them."""
    within = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(p.value if isinstance(p, ast.Constant) else "{}" for p in node.values)
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in within
        ):
            yield node.value


def shape(command: str) -> tuple[str, ...]:
    """The words of a command that are its own: verbs and options."""
    return tuple(
        word for word in command.split() if re.fullmatch(r"[a-z]+(?:-[a-z]+)*|--?[a-z-]+", word)
    )


@pytest.mark.full
def test_every_command_that_a_sentence_names_is_tried(
    run,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By the refusals above: a sentence with another command needs another of them."""
    monkeypatch.chdir(tmp_path)
    tried = set()
    for name, (words, content, _) in REFUSALS.items():
        file = next(word for word in words if word.startswith("it"))
        text(tmp_path / file, content)
        if name in OF_TRACE:
            run("import", file, "-o", MADE, "--force")
        asked = [MADE if word == file and name in OF_TRACE else word for word in words]
        _, _, err = run(*asked, *(["-o", "refused"] if words[0] == "import" else []))
        tried |= {shape(" ".join(command)) for command in commands(err)}
    named = set()
    for path in IMPORTERS.rglob("*.py"):
        tree = ast.parse(path.read_text())
        docs = {
            ast.get_docstring(node, clean=False)
            for node in ast.walk(tree)
            if isinstance(node, DOCUMENTED)
        }
        for said in set(templates(tree)) - docs:
            named |= {shape(command) for command in re.findall(r"`(tracekit [^`]*)`", said)}
    assert len(named) > 5
    assert named <= tried
