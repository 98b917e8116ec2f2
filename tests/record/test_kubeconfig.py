"""Finding the cluster as kubectl does, and one sentence for everything that is wrong with it."""

from __future__ import annotations

import base64
import os
import socket
import stat
import threading
from contextlib import suppress
from pathlib import Path

import pytest
import urllib3
import yaml

from tracekit.base.errors import ClusterError
from tracekit.record.credentials import kubeconfig as module
from tracekit.record.credentials import plugins
from tracekit.record.credentials.kubeconfig import Connection
from tracekit.record.credentials.options import ConnectOptions


def _write(path: Path, *, current: str | None = "one", users: dict | None = None) -> Path:
    users = users or {"me": {"token": "secret-1"}, "you": {"token": "secret-2"}}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": name, "cluster": {"server": f"http://{name}.example:1"}} for name in ("a", "b")
        ],
        "users": [{"name": name, "user": user} for name, user in users.items()],
        "contexts": [
            {"name": "one", "context": {"cluster": "a", "user": "me", "namespace": "team"}},
            {"name": "two", "context": {"cluster": "b", "user": "me"}},
        ],
    }
    if current is not None:
        document["current-context"] = current
    path.write_text(yaml.safe_dump(document))
    return path


@pytest.fixture(autouse=True)
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


def test_flag_beats_environment_beats_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home" / ".kube"
    home.mkdir(parents=True)
    _write(home / "config", current="two")
    assert Connection(ConnectOptions()).host == "http://b.example:1"
    monkeypatch.setenv("KUBECONFIG", str(_write(tmp_path / "env")))
    connection = Connection(ConnectOptions())
    assert (connection.host, connection.namespace) == ("http://a.example:1", "team")
    flag = _write(tmp_path / "flag", current="two")
    connection = Connection(ConnectOptions(kubeconfig=str(flag)))
    assert (connection.host, connection.namespace) == ("http://b.example:1", "default")


def test_the_first_file_of_a_list_names_the_context(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = _write(tmp_path / "1", current="two"), _write(tmp_path / "2", current="one")
    missing = tmp_path / "missing"
    monkeypatch.setenv("KUBECONFIG", f"{missing}:{first}:{second}")
    assert Connection(ConnectOptions()).host == "http://b.example:1"


def test_cluster_and_user_go_on_top_of_the_context(tmp_path: Path) -> None:
    path = str(_write(tmp_path / "config"))
    connection = Connection(ConnectOptions(kubeconfig=path, cluster="b", user="you"))
    assert connection.host == "http://b.example:1"
    assert connection.headers()["Authorization"] == "Bearer secret-2"
    assert connection.namespace == "team"


def test_token_and_impersonation(tmp_path: Path) -> None:
    path = str(_write(tmp_path / "config"))
    options = ConnectOptions(
        kubeconfig=path,
        token="t",  # noqa: S106
        impersonate_user="jane",
        impersonate_groups=("dev", "ops"),
    )
    headers = Connection(options).headers()
    assert headers["Authorization"] == "Bearer t"
    assert headers["Impersonate-User"] == "jane"
    assert headers.getlist("Impersonate-Group") == ["dev", "ops"]


def test_impersonation_of_the_kubeconfig(tmp_path: Path) -> None:
    users = {"me": {"token": "x", "as": "robot", "as-groups": ["g"], "as-user-extra": {"k": ["v"]}}}
    headers = Connection(
        ConnectOptions(kubeconfig=str(_write(tmp_path / "config", users=users)))
    ).headers()
    assert headers["Impersonate-User"] == "robot"
    assert headers["Impersonate-Extra-k"] == "v"


def test_reload_reads_a_new_token_once_per_generation(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")
    path = _write(tmp_path / "config", users={"me": {"tokenFile": str(token)}})
    connection = Connection(ConnectOptions(kubeconfig=str(path)))
    assert connection.headers()["Authorization"] == "Bearer old"
    token.write_text("new")
    connection.reload(0)
    assert connection.headers()["Authorization"] == "Bearer new"
    token.write_text("newer")
    connection.reload(0)  # another thread saw the same 401: it was dealt with
    assert connection.headers()["Authorization"] == "Bearer new"
    connection.reload(1)
    assert connection.headers()["Authorization"] == "Bearer newer"


def _plugin(path: Path, body: str) -> dict:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    version = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": version, "command": str(path), "interactiveMode": "Never"}}


def test_exec_plugins(tmp_path: Path) -> None:
    answer = (
        '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential",'
        '"status":{"token":"from-plugin"}}'
    )
    user = _plugin(tmp_path / "good", f"echo '{answer}'")
    path = _write(tmp_path / "config", users={"me": user})
    headers = Connection(ConnectOptions(kubeconfig=str(path))).headers()
    assert headers["Authorization"] == "Bearer from-plugin"


def test_a_plugin_that_fails_is_named(tmp_path: Path) -> None:
    user = _plugin(tmp_path / "bad", "exit 3")
    path = _write(tmp_path / "config", users={"me": user})
    with pytest.raises(ClusterError, match=r"credential plugin .*bad gave no token"):
        Connection(ConnectOptions(kubeconfig=str(path)))
    options = ConnectOptions(kubeconfig=str(path), token="t")  # noqa: S106
    assert Connection(options).headers()


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("echo hello", "it printed no ExecCredential"),
        ("""echo '{"status": {}}'""", "it answers in another apiVersion than "),
        (
            'echo \'{"apiVersion": "client.authentication.k8s.io/v1", "status": {"token": {}}}\'',
            "its ExecCredential has a value of another type than text",
        ),
    ],
)
def test_why_an_answer_is_none_is_said(tmp_path: Path, body: str, why: str) -> None:
    path = _write(tmp_path / "config", users={"me": _plugin(tmp_path / "plugin", body)})
    with pytest.raises(ClusterError, match=rf"gave no token \({why}"):
        Connection(ConnectOptions(kubeconfig=str(path)))


def test_a_plugin_that_hangs_is_ended_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what it began, which would hold its pipe open."""
    monkeypatch.setattr(plugins, "UNATTENDED_DEADLINE_S", 0.3)
    user = _plugin(tmp_path / "slow", "sleep 600 & sleep 600")
    path = _write(tmp_path / "config", users={"me": user})
    with pytest.raises(
        ClusterError, match=r"plugin .*slow gave no token \(no answer within 0.3 s\)"
    ):
        Connection(ConnectOptions(kubeconfig=str(path)))


def test_a_plugin_that_prints_without_end_is_ended_and_named(tmp_path: Path) -> None:
    path = _write(tmp_path / "config", users={"me": _plugin(tmp_path / "talker", "exec yes")})
    with pytest.raises(ClusterError, match=r"talker gave no token \(it prints more than 1 MiB\)"):
        Connection(ConnectOptions(kubeconfig=str(path)))


def test_a_plugin_is_not_looked_for_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _plugin(tmp_path / "log-in", "exit 0")
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "log-in"}}
    path = _write(tmp_path / "config", users={"me": user})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", ":.:/usr/bin:/bin")
    with pytest.raises(ClusterError, match=r"log-in gave no token \(it is not on the PATH\)"):
        Connection(ConnectOptions(kubeconfig=str(path)))


def test_in_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "token").write_text("pod-token")
    (tmp_path / "ca.crt").write_text("certificate")
    (tmp_path / "namespace").write_text("home\n")
    monkeypatch.setattr(module, "SERVICE_ACCOUNT_DIR", tmp_path)
    monkeypatch.setattr(
        module,
        "RESTClientObject",
        lambda _: type("Pool", (), {"pool_manager": urllib3.PoolManager()}),
    )
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    connection = Connection(ConnectOptions())
    assert (connection.host, connection.namespace) == ("https://10.0.0.1:443", "home")
    assert connection.headers()["Authorization"] == "bearer pod-token"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"context": "three"}, r'context "three" does not exist: known contexts: one, two'),
        ({"cluster": "c"}, r'no cluster "c"'),
        ({"user": "u"}, r'no user "u"'),
        ({"impersonate_groups": ("g",)}, r"--as-group needs --as"),
    ],
)
def test_wrong_names(tmp_path: Path, options: dict, expected: str) -> None:
    path = str(_write(tmp_path / "config"))
    with pytest.raises(ClusterError, match=expected):
        Connection(ConnectOptions(kubeconfig=path, **options))


def test_no_current_context(tmp_path: Path) -> None:
    path = str(_write(tmp_path / "config", current=None))
    with pytest.raises(ClusterError, match=r"no current context; choose one with --context"):
        Connection(ConnectOptions(kubeconfig=path))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", r"cannot be used|empty"),
        ("[1, 2]", r"cannot be read|not a mapping"),
        ("{", r"cannot be read"),
        ("current-context: x", r'context "x" does not exist'),
        ("contexts: {a: b}\ncurrent-context: a", r"kubeconfig"),
    ],
)
def test_broken_files_are_one_sentence(tmp_path: Path, text: str, expected: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(ClusterError, match=expected):
        Connection(ConnectOptions(kubeconfig=str(path)))


@pytest.mark.parametrize(
    ("where", "value", "place"),
    [
        ("user", ["hunter2hunter2"], r"users\[0\]\.user"),
        ("user", {"exec": "hunter2hunter2"}, r"users\[0\]\.user\.exec"),
        ("user", {"exec": {"command": ["hunter2hunter2"]}}, r"exec\.command"),
        ("user", {"exec": {"command": "x", "args": "hunter2hunter2"}}, r"exec\.args"),
        ("user", {"auth-provider": {"name": "x", "config": "hunter2hunter2"}}, r"config"),
        ("cluster", {"server": "http://a", "proxy-url": 5}, r"clusters\[0\]\.cluster\.proxy-url"),
        ("cluster", {"server": "http://a", "proxy-url": ["hunter2hunter2"]}, r"proxy-url"),
        ("cluster", {"server": "a.example:6443"}, r"does not begin with https://"),
        ("cluster", {"server": "ftp://a.example"}, r"does not begin with https://"),
    ],
)
def test_a_value_of_another_type_is_one_sentence(
    tmp_path: Path, where: str, value: object, place: str
) -> None:
    path = _write(tmp_path / "config")
    document = yaml.safe_load(path.read_text())
    document[f"{where}s"][0][where] = value
    path.write_text(yaml.safe_dump(document))
    with pytest.raises(ClusterError, match=place) as refused:
        Connection(ConnectOptions(kubeconfig=str(path)))
    assert "hunter2" not in str(refused.value)


def test_https_in_capitals_is_https(tmp_path: Path) -> None:
    path = _write(tmp_path / "config")
    path.write_text(path.read_text().replace("http://a", "HTTPS://a"))
    options = ConnectOptions(kubeconfig=str(path), insecure_skip_tls_verify=True)
    assert not Connection(options).verifies_server


def test_a_query_of_the_servers_address_is_dropped(tmp_path: Path) -> None:
    """As client-go does; a token stands there in some, and the address is printed and kept."""
    path = _write(tmp_path / "config")
    text = path.read_text().replace("http://a.example:1", "http://u:p?w@a.example:1/x?token=t#f")
    path.write_text(text)
    connection = Connection(ConnectOptions(kubeconfig=str(path)))
    assert connection.host == "http://u:p?w@a.example:1/x"
    assert connection.shown_host == "http://a.example:1/x"


def test_a_socks_proxy_is_one_sentence(tmp_path: Path) -> None:
    path = _write(tmp_path / "config")
    proxied = "server: http://a.example:1\n    proxy-url: socks5://u:secret@b.example:1"
    path.write_text(path.read_text().replace("server: http://a.example:1", proxied))
    with pytest.raises(ClusterError, match=r"is behind a SOCKS proxy .*; name an http") as refused:
        Connection(ConnectOptions(kubeconfig=str(path)))
    assert "secret" not in str(refused.value)


def test_nothing_configured(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match=r"No cluster is configured.*set KUBECONFIG"):
        Connection(ConnectOptions())
    with pytest.raises(ClusterError, match=r"no kubeconfig at"):
        Connection(ConnectOptions(kubeconfig=str(tmp_path / "none")))


ALIAS_BOMB = "a0: &a0 [x]\n" + "".join(
    f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 60)
)
MERGE_BOMB = "a: &a\n" + "".join(f"  k{n}: v\n" for n in range(2000)) + "b:\n" + "- <<: *a\n" * 2000


@pytest.mark.parametrize(
    "text", [ALIAS_BOMB, MERGE_BOMB, "a: &a [*a]\n"], ids=["aliases", "merges", "itself"]
)
def test_aliases_that_stand_for_too_much_are_refused(tmp_path: Path, text: str) -> None:
    path = _write(tmp_path / "config")
    path.write_text(path.read_text() + text)
    with pytest.raises(
        ClusterError, match=r"it has YAML aliases that stand for more than 1,000,000"
    ):
        Connection(ConnectOptions(kubeconfig=str(path)))


def _not_plain(folder: Path) -> list[Path]:
    pipe, large = folder / "pipe", folder / "large"
    os.mkfifo(pipe)
    with large.open("wb") as file:
        file.truncate(1 << 40)
    return [pipe, large, folder, Path("/dev/zero"), Path("/dev/full"), Path("/dev/tty")]


@pytest.mark.parametrize("called", ["tokenFile", "client-certificate", "client-key", None])
def test_files_that_are_named_are_plain_and_bounded(tmp_path: Path, called: str | None) -> None:
    for file in _not_plain(tmp_path):
        user = {called: str(file)} if called else {"token": "x"}
        path = _write(tmp_path / "config", users={"me": user})
        document = yaml.safe_load(path.read_text())
        place = document["clusters"][0]["cluster"]
        place["server"] = "https://127.0.0.1:1"
        if called is None:
            place["certificate-authority"] = str(file)
        path.write_text(yaml.safe_dump(document))
        with pytest.raises(ClusterError, match=r"cannot be (used|read): ") as refused:
            Connection(ConnectOptions(kubeconfig=str(path)))
        assert str(refused.value).count("\n") == 0


def test_a_kubeconfig_is_a_plain_file(tmp_path: Path) -> None:
    for file in _not_plain(tmp_path):
        with pytest.raises(ClusterError, match=r"cannot be read: "):
            Connection(ConnectOptions(kubeconfig=str(file)))


def test_a_token_may_lie_behind_links(tmp_path: Path) -> None:
    """As kubelet mounts it: `token` leads to `..data/token`, and `..data` to a folder."""
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "token").write_text("projected\n")
    (tmp_path / "..data").symlink_to("1")
    (tmp_path / "token").symlink_to("..data/token")
    path = _write(tmp_path / "config", users={"me": {"tokenFile": str(tmp_path / "token")}})
    headers = Connection(ConnectOptions(kubeconfig=str(path))).headers()
    assert headers["Authorization"] == "Bearer projected"


@pytest.mark.parametrize("head", ["BEGIN ENCRYPTED PRIVATE KEY-----", "Proc-Type: 4,ENCRYPTED"])
@pytest.mark.parametrize("inline", [True, False])
def test_a_key_with_a_passphrase_is_refused(tmp_path: Path, head: str, inline: bool) -> None:
    """OpenSSL would ask for it at the terminal."""
    key = f"-----{head}\nAAAA\n-----END-----\n" if "BEGIN" in head else f"-----BEGIN\n{head}\n"
    (tmp_path / "key").write_text(key)
    as_data = {"client-key-data": base64.b64encode(key.encode()).decode()}
    path = _write(
        tmp_path / "config",
        users={"me": as_data if inline else {"client-key": str(tmp_path / "key")}},
    )
    path.write_text(path.read_text().replace("http://a", "https://a"))
    with pytest.raises(ClusterError, match=r"its client-key has a passphrase.*decrypt it"):
        Connection(ConnectOptions(kubeconfig=str(path)))


@pytest.mark.parametrize("name", ["evil\0.example", "evil\x1b.example"])
def test_a_name_that_no_server_has_is_refused(tmp_path: Path, name: str) -> None:
    """OpenSSL was asked for it, and what Python says of that was a fault."""
    path = _write(tmp_path / "config")
    found = yaml.safe_load(path.read_text())
    for cluster in found["clusters"]:
        cluster["cluster"]["tls-server-name"] = name
    path.write_text(yaml.safe_dump(found))
    with pytest.raises(ClusterError, match=r"a tls-server-name has characters that no name"):
        Connection(ConnectOptions(kubeconfig=str(path)))


def test_a_pods_token_is_a_plain_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ca.crt").write_text("certificate")
    monkeypatch.setattr(module, "SERVICE_ACCOUNT_DIR", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with (tmp_path / "token2").open("wb") as file:
        file.truncate(1 << 40)
    (tmp_path / "token").symlink_to("token2")
    with pytest.raises(ClusterError, match=r"service account cannot be used: its token has more"):
        Connection(ConnectOptions())


@pytest.mark.parametrize("name", ["oidc", "gcp"])
def test_no_issuer_is_asked_for_a_token(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The package would wait without end, and give the client's secret to whoever answers."""
    claims = base64.urlsafe_b64encode(b'{"exp":1}').decode().rstrip("=")
    asked = threading.Event()
    issuer = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        with suppress(OSError):
            issuer.accept()
            asked.set()

    threading.Thread(target=accept, daemon=True).start()
    monkeypatch.setenv("GCE_METADATA_HOST", f"127.0.0.1:{issuer.getsockname()[1]}")
    config = {
        "id-token": f"eyJhbGciOiJub25lIn0.{claims}.Hunter2PlantedSecret0",
        "idp-issuer-url": f"http://127.0.0.1:{issuer.getsockname()[1]}",
        "client-id": "me",
        "client-secret": "hunter2hunter2",
        "refresh-token": "hunter3hunter3",
    }
    user = {"auth-provider": {"name": name, "config": config}}
    path = _write(tmp_path / "config", users={"me": user})
    with pytest.raises(ClusterError, match="exec plugin") as refused:
        Connection(ConnectOptions(kubeconfig=str(path)))
    issuer.close()
    assert not asked.is_set()
    assert "hunter" not in str(refused.value)
    # Another token needs none of it.
    Connection(ConnectOptions(kubeconfig=str(path), token="given")).headers()  # noqa: S106 - made up
