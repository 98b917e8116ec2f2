"""Credentials are planted wherever a kubeconfig can hold them, and searched in all that comes out."""

from __future__ import annotations

import base64
import json
import os
import re
import signal
import socket
import stat
import threading
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import quote

import orjson
import pytest
import yaml

from tests.record.fakecluster import FakeCluster
from tests.record.fakeserver import FakeServer, _chunk, _error
from tests.record.harness import write_kubeconfig
from tests.record.test_record_cli import run
from tests.record.test_watcher import Running
from tracekit.base.errors import ClusterError
from tracekit.cli import record as module
from tracekit.record.credentials.kubeconfig import Connection
from tracekit.record.credentials.options import ConnectOptions
from tracekit.record.credentials.withheld import (
    Credentials,
    kubeconfig_credentials,
    without_userinfo,
)
from tracekit.record.failures import CredentialsFailed, RequestFailed
from tracekit.record.operation.metrics import MetricsServer
from tracekit.record.server.backoff import Backoff
from tracekit.record.server.transport import ApiClient
from tracekit.record.streams.watcher import WatchPolicy
from tracekit.trace.reading.reader import TraceReader

PLANTED = "Hunter2/PlantedSecret+0"
_HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class EchoServer(FakeServer):
    """Accepts any credential and says it back in every way that an answer can."""

    def _answer(
        self, connection: socket.socket, target: str, headers: dict[str, str], body: bytes
    ) -> None:
        said = headers.get("authorization", "")
        headers = {**headers, "authorization": f"Bearer {self.token}"}
        resource = target.partition("?")[0].rpartition("/")[2]
        plain = _plain(said)
        if resource == "resourcequotas":
            return self._status(connection, 403, f"{said} may not see {PLANTED} {plain}")
        if "watch=true" in target and resource == "events":
            connection.sendall(_HEAD)
            _chunk(connection, _error(500, f"cannot serve {said} {plain}"))
            connection.sendall(b"0\r\n\r\n")
            return None
        if "watch=true" in target and resource == "cronjobs":
            connection.sendall(_HEAD)
            _chunk(connection, f"<html>{said} {plain}</html>\n".encode())
            return None
        if "watch=true" in target and resource == "leases":
            connection.sendall(f"HTTP/1.1 500 {said} {plain}\r\nContent-Length: 0\r\n\r\n".encode())
            return None
        if "watch=true" in target and resource == "namespaces":
            return self._status(connection, 401, f"{said} {plain} has expired")
        return super()._answer(connection, target, headers, body)


def _plain(authorization: str) -> str:
    scheme, _, value = authorization.partition(" ")
    return base64.b64decode(value).decode() if scheme == "Basic" else value


@pytest.fixture
def cluster() -> FakeCluster:
    made = FakeCluster()
    made.create("namespaces", name="ns")
    made.create("jobs")
    return made


@pytest.fixture
def server(cluster: FakeCluster) -> Iterator[EchoServer]:
    made = EchoServer(cluster, bookmark_every_s=0.2)
    yield made
    made.close()


def _script(path: Path, body: str) -> str:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def _exec(folder: Path) -> dict:
    """A plugin that works once, for a while, and then complains loudly."""
    version = "client.authentication.k8s.io/v1"
    status = {"token": PLANTED, "expirationTimestamp": "2020-01-01T00:00:00Z"}
    answer = json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status})
    body = (
        f"test -e {folder}/once && {{ echo $PLUGIN_SECRET {PLANTED} >&2; exit 1; }}\n"
        f"touch {folder}/once\necho '{answer}'"
    )
    return {
        "exec": {
            "apiVersion": version,
            "command": _script(folder / "plugin", body),
            "args": [f"--client-secret={PLANTED}"],
            "env": [{"name": "PLUGIN_SECRET", "value": PLANTED}],
            "interactiveMode": "Never",
        }
    }


def _jwt() -> str:
    part = base64.urlsafe_b64encode(b'{"iss":"planted"}').decode().rstrip("=")
    return f"eyJhbGciOiJub25lIn0.{part}.Hunter2PlantedSecret0"


def _users(folder: Path) -> dict[str, dict]:
    newline = folder / "token"
    newline.write_text(f"{PLANTED}\n")
    provider = {"id-token": _jwt(), "refresh-token": PLANTED, "client-secret": PLANTED}
    return {
        "token": {"token": PLANTED},
        "tokenFile": {"tokenFile": str(newline)},
        "basic": {"username": "me", "password": PLANTED},
        "exec": _exec(folder),
        "oidc": {"auth-provider": {"name": "oidc", "config": provider}},
    }


def _document(server: FakeServer, user: dict, *, proxy: bool = False) -> dict:
    cluster = {"server": server.url}
    if proxy:
        cluster = {
            "server": f"http://me:{PLANTED.replace('/', '%2F')}@api.invalid",
            "proxy-url": f"http://me:{PLANTED.replace('/', '%2F')}@127.0.0.1:{server.port}",
        }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u", "namespace": "ns"}}],
    }


@dataclass
class Said:
    """Everything that a recording gave away."""

    stderr: str
    metrics: str
    trace: str
    files: bytes


def _recorded(
    tmp_path: Path, config: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Said:
    """Record until garbage has become a gap; with a back-off that tests can wait for."""
    quick = partial(WatchPolicy, backoff=lambda: Backoff(first_s=0.01, most_s=0.05))
    monkeypatch.setattr(module, "WatchPolicy", quick)
    servers: list[MetricsServer] = []
    metrics: list[str] = []

    def serve(*args: object, **kwargs: object) -> MetricsServer:
        servers.append(MetricsServer(*args, **kwargs))
        threading.Thread(target=scrape, daemon=True).start()
        return servers[0]

    def scrape() -> None:
        url = f"http://127.0.0.1:{servers[0].port}/metrics"
        text = ""
        # The first is until the first list has ended, which is refused before it is answered.
        while not re.search(r'stream_gaps_total{stream="cronjobs"} ([2-9]|\d\d)', text):
            with urllib.request.urlopen(url, timeout=5) as answer:
                text = answer.read().decode()
        metrics.append(text)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(module, "MetricsServer", serve)
    trace = tmp_path / "trace"
    base = ("record", "-o", str(trace), "--kubeconfig", str(config), "-n", "ns")
    run(*base, "--metrics-port", "0", "--duration", "60s")
    reader = TraceReader(trace)
    rows = reader.table(("type", "raw", "gap_reason", "reason")).to_pylist()
    said = capfd.readouterr()
    return Said(
        stderr=said.err + said.out,
        metrics=metrics[0],
        trace=json.dumps(rows) + (trace / "trace.json").read_text(),
        files=b"".join(p.read_bytes() for p in trace.rglob("*") if p.is_file()),
    )


@pytest.mark.parametrize("kind", ["token", "tokenFile", "basic", "exec", "oidc", "proxy"])
def test_no_credential_gets_out(
    tmp_path: Path, server: EchoServer, monkeypatch, capfd, kind: str
) -> None:
    user = _users(tmp_path)["token" if kind == "proxy" else kind]
    config = tmp_path / "config"
    config.write_text(yaml.safe_dump(_document(server, user, proxy=kind == "proxy")))
    said = _recorded(tmp_path, config, monkeypatch, capfd)
    sent = {headers.get("authorization", "") for headers in server.headers} - {""}
    assert len(sent) == 1, "the test is about a credential that is sent"
    assert "[credential]" in said.stderr
    assert "[credential]" in said.trace
    secrets = {
        *("Hunter2", "PlantedSecret", PLANTED, _jwt(), *(s.partition(" ")[2] for s in sent)),
        base64.b64encode(PLANTED.encode()).decode(),
    }
    for text in (said.stderr, said.metrics, said.trace):
        assert not [secret for secret in secrets if secret in text], text
    assert not [secret for secret in secrets if secret.encode() in said.files]
    rows = said.trace
    assert "500 [credential]" in rows or "cannot serve" in rows, "an ERROR frame is kept, cleaned"
    assert "cannot be read past this point" in rows, "a gap's reason too"


def test_a_token_file_may_end_in_a_newline(tmp_path: Path, cluster: FakeCluster) -> None:
    server = FakeServer(cluster)
    config = write_kubeconfig(tmp_path / "config", server, namespace="ns")
    (tmp_path / "config.token").write_text(f"{server.token}\n")
    base = ("record", "-o", str(tmp_path / "trace"), "--kubeconfig", config)
    assert run(*base, "--duration", "300ms") == 0
    server.close()
    assert {h["authorization"] for h in server.headers} == {f"Bearer {server.token}"}


@pytest.mark.parametrize("text", ["", " \n", f"{PLANTED}\nsecond", f"{PLANTED}\x00", f"{PLANTED}é"])
def test_a_token_that_cannot_be_sent_is_refused_without_quoting_it(
    tmp_path: Path, cluster: FakeCluster, capsys, text: str
) -> None:
    server = FakeServer(cluster)
    config = write_kubeconfig(tmp_path / "config", server, namespace="ns")
    (tmp_path / "config.token").write_text(text)
    code = run("record", "-o", str(tmp_path / "trace"), "--kubeconfig", config)
    server.close()
    said = capsys.readouterr().err
    if text == "":  # the package takes an empty file for no token: then the server refuses
        assert (code, "401" in said) == (2, True)
        return
    assert code == 2
    assert "no header can have" in said
    assert "Hunter2" not in said
    assert server.requests == []


def test_a_bad_token_is_read_again_until_it_is_good(tmp_path: Path, cluster: FakeCluster) -> None:
    """Written as a CSI driver may: the file is half there while the recorder looks."""
    server = FakeServer(cluster)
    running = Running(tmp_path, server)
    running.live()
    token = tmp_path / "config.token"
    token.write_text(f"{PLANTED}\nhalf")
    server.expire_token()
    server.drop_all()
    status = running.watcher.status
    running.until(lambda: "no header can have" in (status.last_failure or ""))
    token.write_text(server.token + "\n")
    running.until(lambda: status.down_since_ns is None)
    uid = cluster.create("jobs")
    running.until(lambda: any(uid.encode() in getattr(i, "raw", b"") for i in running.sink.items))
    running.stop()
    server.close()
    assert "GAP" not in running.types()
    assert not any(b"Hunter2" in getattr(i, "raw", b"") for i in running.sink.items)


def test_credentials_that_cannot_be_renewed_are_no_end(tmp_path: Path) -> None:
    user = _exec(tmp_path)
    config = tmp_path / "config"
    cluster = {"clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}]}
    contexts = [{"name": "c", "context": {"cluster": "c", "user": "u"}}]
    users = [{"name": "u", "user": user}]
    config.write_text(
        yaml.safe_dump({**cluster, "users": users, "contexts": contexts, "current-context": "c"})
    )
    connection = Connection(ConnectOptions(kubeconfig=str(config)))
    connection._loaded.configuration.refresh_api_key_hook = lambda _: {}["id-token"]
    with pytest.raises(CredentialsFailed, match="cannot be renewed"):
        connection.headers()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"users: [{{name: u, user: {{token: *{PLANTED}}}}}]", r"no YAML \(line 1\)"),
        (f"users:\n- {{name: u, user: {{token: !{PLANTED} x}}}}", r"no YAML \(line 2\)"),
        (
            f"exec: {{apiVersion: {PLANTED}}}",
            r"credential plugin . gave no token|missing required field",
        ),
        (f"tokenFile: {PLANTED}", r"a file that it names: No such file"),
        (f"client-key: {PLANTED}", r"a file that it names does not exist"),
        (
            f"auth-provider: {{name: gcp, config: {{cmd-path: {PLANTED}}}}}",
            r"cannot be (read|used)",
        ),
        (f"username: [{PLANTED}]\npassword: {PLANTED}", r"cannot be (read|used)"),
        (f"auth-provider: {{name: oidc, config: {{idp: {PLANTED}}}}}", r"key id-token"),
    ],
)
def test_broken_kubeconfigs_are_not_quoted(tmp_path: Path, text: str, expected: str) -> None:
    """The package names a user by all that is in it, YAML quotes its input."""
    path = tmp_path / "config"
    if not text.startswith("users:"):
        user = yaml.safe_load(text)
        base = {"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}
        context = {"name": "c", "context": {"cluster": "c", "user": "u"}}
        document = {"clusters": [base], "contexts": [context], "current-context": "c"}
        text = yaml.safe_dump({**document, "users": [{"name": "u", "user": user}]})
    path.write_text(text)
    with pytest.raises(ClusterError, match=expected) as raised:
        Connection(ConnectOptions(kubeconfig=str(path)))
    said = [raised.value, raised.value.__cause__]
    assert not any("Hunter2" in str(error) for error in said)


def test_every_place_of_a_kubeconfig_is_known(tmp_path: Path) -> None:
    users = [{"name": name, "user": user} for name, user in _users(tmp_path).items()]
    gcp = {"cmd-path": "gcloud", "cmd-args": f"config --key {PLANTED}", "access-token": PLANTED}
    users.append({"name": "gcp", "user": {"auth-provider": {"name": "gcp", "config": gcp}}})
    users.append({"name": "key", "user": {"client-key-data": PLANTED}})
    found = list(kubeconfig_credentials({"users": users}))
    # token, password, exec argument and variable, oidc (two), gcp (two), key: not the token file.
    assert found.count(PLANTED) == 9
    assert _jwt() in found
    assert list(kubeconfig_credentials({"users": [1, {"user": []}], "clusters": {}})) == []


TOKEN = "Planted-Token/Value+abc=def.123456"  # noqa: S105 - of no server
SPELLINGS: dict[str, str] = {
    "as it is": TOKEN,
    "upper case": TOKEN.upper(),
    "lower case": TOKEN.lower(),
    "URL": quote(TOKEN, safe=""),
    "URL, each character": "".join(f"%{ord(c):02x}" for c in TOKEN),
    "URL in a URL": quote(quote(TOKEN, safe=""), safe=""),
    "JSON": json.dumps(TOKEN).replace("-", "\\u002d").strip('"'),
    "JSON in JSON": json.dumps(json.dumps(TOKEN).replace("-", "\\u002D")).strip('"\\'),
    "Python": "".join(f"\\x{ord(c):02x}" for c in TOKEN),
    "HTML": "".join(f"&#{ord(c)};" for c in TOKEN),
    "HTML, hexadecimal": "".join(f"&#x{ord(c):X};" for c in TOKEN),
    "hexadecimal": TOKEN.encode().hex(),
    **{
        f"base64 {alphabet} after {before}": encode(before + TOKEN.encode()).decode()
        for alphabet, encode in (("", base64.b64encode), ("of URLs", base64.urlsafe_b64encode))
        for before in (b"", b"a", b"ab", b"Bearer ")
    },
}


@pytest.mark.parametrize("text", SPELLINGS.values(), ids=SPELLINGS)
def test_no_spelling_of_a_credential_is_left(text: str) -> None:
    """What a server got it may send back in any encoding that servers and proxies use."""
    credentials = Credentials()
    credentials.learn([f"Bearer {TOKEN}"])
    said = credentials.clean(f"no such token: {text}, 100% \\ &amp;")
    assert "[credential]" in said
    left = said.replace("[credential]", "").removeprefix("no such token: ")
    assert len(left) < 24, said  # what stood before it, and padding
    assert left.endswith(", 100% \\ &amp;")


def test_texts_are_cleaned_of_every_spelling() -> None:
    credentials = Credentials()
    assert credentials.clean(PLANTED) == PLANTED
    credentials.learn([PLANTED, "short", base64.b64encode(b"me:pass word 1").decode()])
    spelled = [PLANTED, PLANTED.replace("/", "%2F").replace("+", "%2B"), "pass word 1"]
    spelled += [PLANTED.replace("/", "\\/")]
    for text in spelled:
        assert credentials.clean(f"<{text}>") == "<[credential]>"
    assert credentials.clean("short") == "short"
    raw = orjson.dumps({"message": f"{PLANTED} é"}) + b"\xff"
    assert credentials.cleaned_bytes(raw) == '{"message":"[credential] é"}'.encode() + b"\xff"
    assert without_userinfo("https://a:b@host:6443/x@y") == "https://host:6443/x@y"


@pytest.mark.parametrize("mark", "/?#")
@pytest.mark.parametrize("place", ["server", "proxy-url", "HTTP_PROXY"])
def test_a_password_that_was_not_escaped_is_not_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, mark: str
) -> None:
    """Such an address cannot be used, and parsers quote what they cannot read."""
    bad = f"http://me:Hunter2Planted{mark}Secret0@api.example:6443"
    cluster = {"server": "http://api.example:6443"}
    if place == "HTTP_PROXY":
        monkeypatch.setenv(place, bad)
    else:
        cluster[place] = bad
    document = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}],
    }
    config = tmp_path / "config"
    config.write_text(json.dumps(document))
    said = []
    try:
        connection = Connection(ConnectOptions(kubeconfig=str(config)))
        said.append(connection.shown_host)
        ApiClient(connection).get("/version")
    except (ClusterError, RequestFailed) as error:
        said.append(str(error))
    assert "Failed to parse" in said[-1]
    assert not [text for text in said if "Hunter2Planted" in text or "Secret0" in text]


def test_a_token_of_megabytes_is_refused_at_once(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("x" * (1 << 22))
    config = tmp_path / "config"
    config.write_text(
        json.dumps(
            {
                "current-context": "c",
                "clusters": [{"name": "c", "cluster": {"server": "http://a.example"}}],
                "users": [{"name": "u", "user": {"tokenFile": str(token)}}],
                "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            }
        )
    )
    with pytest.raises(ClusterError, match="more than 64 KiB"):
        Connection(ConnectOptions(kubeconfig=str(config)))
