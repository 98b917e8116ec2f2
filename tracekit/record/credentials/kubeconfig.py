"""Where the API server is and who we are, found the way kubectl finds it.

Files, contexts, certificates, exec plugins and token refresh are the `kubernetes` package's work.
What is ours: kubectl's order (flag, $KUBECONFIG list, ~/.kube/config, in-cluster), `--cluster` and
`--user` on top of a context, impersonation, a `reload` that re-reads everything after a 401, and
that no credential gets into a message: the package quotes whole users, and libraries quote headers.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import urllib3
import yaml
from kubernetes.client.configuration import Configuration
from kubernetes.client.rest import RESTClientObject
from kubernetes.config import ConfigException
from kubernetes.config.kube_config import ConfigNode
from msgspec import Struct

from tracekit.base.bounded_http import bound
from tracekit.base.errors import ClusterError
from tracekit.base.plain_files import NoPlainFileError
from tracekit.base.plain_yaml import TooManyValuesError
from tracekit.base.suggest import hint
from tracekit.record.credentials import files, plugins, shapes
from tracekit.record.credentials.options import ConnectOptions
from tracekit.record.credentials.withheld import (
    Credentials,
    is_usable_header,
    kubeconfig_credentials,
    url_credentials,
    without_query,
    without_userinfo,
)
from tracekit.record.failures import CredentialsFailed

SERVICE_ACCOUNT_DIR = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_OVERRIDE_CONTEXT = "tracekit-overrides"
_POOL_CONNECTIONS = 64
_UNUSABLE = "is empty, longer than 64 KiB, or has characters that no header can have"
files.install()
plugins.install()


class _Loaded(Struct, frozen=True):
    """One reading of the configuration."""

    configuration: Configuration
    namespace: str
    source: str
    impersonation: tuple[tuple[str, str], ...]


class Connection:
    """A cluster's address with the present credentials; safe to use from many threads."""

    def __init__(self, options: ConnectOptions) -> None:
        self._options = options
        self._lock = threading.Lock()
        #: What no message, trace or metric may hold.
        self.credentials = Credentials()
        self.generation = 0
        self._use(self._load())

    def _load(self) -> _Loaded:
        try:
            loaded = _load(self._options, self.credentials)
        except ClusterError as error:
            # The package quotes what it cannot use.
            raise ClusterError(self.credentials.clean(str(error))) from None
        configuration = loaded.configuration
        for url in (configuration.host, configuration.proxy):
            self.credentials.learn(url_credentials(url))
        _check_token(configuration, loaded.source, self.credentials)
        return loaded

    def _use(self, loaded: _Loaded) -> None:
        self._loaded = loaded
        # Built by the package's own client: it knows proxies, no_proxy and TLS settings. The pool
        # must hold every stream at once, or urllib3 would throw connections away.
        configuration = loaded.configuration
        configuration.connection_pool_maxsize = _POOL_CONNECTIONS
        # The package imports for it what may not be installed, and connects without a deadline.
        if str(configuration.proxy or "").lower().startswith("socks"):
            raise ClusterError(
                f"{loaded.source} is behind a SOCKS proxy (proxy-url or the environment's), which "
                "is not spoken here; name an http:// or https:// proxy."
            )
        try:
            self.pool: urllib3.PoolManager = bound(RESTClientObject(configuration).pool_manager)
        except (OSError, ValueError, urllib3.exceptions.HTTPError) as error:
            reason = self.credentials.clean(str(error))
            raise ClusterError(
                f"The TLS or proxy settings of {loaded.source} cannot be used ({reason}); check "
                "certificate-authority, client-certificate and proxy-url."
            ) from None

    @property
    def host(self) -> str:
        """Base address of the API server, without a trailing slash.

        Without a query and a fragment, which client-go drops (`rest.NewRESTClient`), and in which
        a credential may stand.
        """
        return without_query(str(self._loaded.configuration.host)).rstrip("/")

    @property
    def shown_host(self) -> str:
        """The same for people: without a user and password in it."""
        return without_userinfo(self.host)

    @property
    def _is_https(self) -> bool:
        return self.host.lower().startswith("https:")

    @property
    def verifies_server(self) -> bool:
        """False when the server's certificate is not checked."""
        return bool(self._loaded.configuration.verify_ssl) or not self._is_https

    @property
    def namespace(self) -> str:
        """The namespace of the context, `default` when it has none."""
        return self._loaded.namespace

    @property
    def source(self) -> str:
        """Where the configuration came from, for people."""
        return self._loaded.source

    def headers(self) -> urllib3.HTTPHeaderDict:
        """Give the headers of one request; a token that is about to expire is renewed here.

        Raises:
            CredentialsFailed: there is no token to send, now.
        """
        result = urllib3.HTTPHeaderDict({"User-Agent": "kube-tracekit"})
        with self._lock:
            loaded = self._loaded
            token = self._token(loaded)
        if token is not None:
            result["Authorization"] = token
        for name, value in loaded.impersonation:
            result.add(name, value)
        return result

    def _token(self, loaded: _Loaded) -> str | None:
        try:
            with _quiet_package():
                value = loaded.configuration.get_api_key_with_prefix("BearerToken")
        except Exception as error:  # noqa: BLE001 (whatever a plugin's or provider's answer provokes)
            reason = self.credentials.clean(_reason(error))
            raise CredentialsFailed(f"they cannot be renewed: {reason}") from None
        if value is None:
            return None
        # The file of a token often ends in a newline, which is not part of the token.
        value = str(value).strip()
        if not is_usable_header(value) or " " not in value:
            raise CredentialsFailed(f"the token {_UNUSABLE}")
        self.credentials.learn_sent(value.partition(" ")[2])
        return value

    def reload(self, generation: int) -> None:
        """Read the configuration again unless another thread did since `generation`."""
        with self._lock:
            if generation != self.generation:
                return
            self._use(self._load())
            self.generation += 1


#### Loading ####


def _load(options: ConnectOptions, credentials: Credentials) -> _Loaded:
    credentials.learn([options.token or ""])
    paths = _kubeconfig_paths(options)
    if not any(_is_there(path) for path in paths):
        if options.kubeconfig is not None:
            raise ClusterError(
                f"There is no kubeconfig at {options.kubeconfig}; give --kubeconfig another path."
            )
        if options.context or options.cluster or options.user:
            raise ClusterError(_no_configuration(paths))
        return _load_in_cluster(options, paths)
    return _load_files(options, paths, credentials)


def _kubeconfig_paths(options: ConnectOptions) -> list[str]:
    if options.kubeconfig is not None:
        return [options.kubeconfig]
    listed = [path for path in os.environ.get("KUBECONFIG", "").split(os.pathsep) if path]
    return listed or ["~/.kube/config"]


def _no_configuration(paths: list[str]) -> str:
    return (
        f"No cluster is configured: {', '.join(paths)} does not exist and this is not a pod; "
        "give --kubeconfig, set KUBECONFIG, or run inside a cluster."
    )


def _load_in_cluster(options: ConnectOptions, paths: list[str]) -> _Loaded:
    configuration = Configuration()
    place = SERVICE_ACCOUNT_DIR
    try:
        files.PodAccount(str(place / "token"), str(place / "ca.crt")).load_and_set(configuration)
    except files.UnusableFileError as error:
        raise ClusterError(f"The pod's service account cannot be used: {error}.") from None
    except (ConfigException, OSError) as error:
        raise ClusterError(_no_configuration(paths)) from error
    try:
        namespace = files.read_token(str(place / "namespace"), "namespace").strip() or "default"
    except (ConfigException, OSError):
        namespace = "default"
    _apply_flags(configuration, options)
    source = "the pod's service account"
    return _Loaded(configuration, namespace, source, _impersonation(options, {}))


def _load_files(options: ConnectOptions, paths: list[str], credentials: Credentials) -> _Loaded:
    where = os.pathsep.join(paths)
    configuration = Configuration()
    try:
        # A failed exec plugin is reported by the check below.
        with _quiet_package():
            config = files.merged(paths)
            entries = _plain(config)
            credentials.learn(kubeconfig_credentials(entries))
            shapes.check(entries)
            context = _choose_context(config, options, paths)
            loader: Any = plugins.Loader(
                config_dict=config, active_context=context, has_token=options.token is not None
            )
            loader.load_and_set(configuration)
    except ClusterError:
        raise
    except shapes.ShapeError as error:
        raise ClusterError(f"The kubeconfig {where} cannot be read: {error}; mend it.") from None
    except ConfigException as error:
        raise ClusterError(f"The kubeconfig {where} cannot be used: {_reason(error)}.") from None
    except Exception as error:  # noqa: BLE001 (yaml and the package raise anything)
        raise ClusterError(f"The kubeconfig {where} cannot be read: {_reason(error)}.") from None
    # No public accessor gives the merged entries with the overrides applied.
    entry = loader._current_context["context"]  # noqa: SLF001
    user: dict[str, Any] = dict(loader._user.value) if loader._user else {}  # noqa: SLF001
    if not configuration.host or "server" not in loader._cluster:  # noqa: SLF001
        raise ClusterError(f"The cluster of {_shown_context(options, config)} names no server.")
    if not configuration.host.lower().startswith(("http://", "https://")):
        raise ClusterError(
            f"The server of {_shown_context(options, config)} does not begin with https:// or "
            "http://; write it so."
        )
    if options.token is None:
        _check_exec(user, configuration)
    _apply_flags(configuration, options)
    namespace = str(entry.safe_get("namespace") or "default")
    source = f"{_shown_context(options, config)} of {where}"
    return _Loaded(configuration, namespace, source, _impersonation(options, user))


@contextmanager
def _quiet_package() -> Iterator[None]:
    """Keep what the package logs, a plugin's stderr too, off our stderr."""
    previous = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(previous)


def _reason(error: Exception) -> str:
    """Say what a parser or the package complains of, without the text that it quotes."""
    if isinstance(error, NoPlainFileError):
        return f"it {error}"
    if isinstance(error, TooManyValuesError):
        return f"it has {error}"
    if isinstance(error, yaml.YAMLError):
        mark = getattr(error, "problem_mark", None)
        return "it is no YAML" if mark is None else f"it is no YAML (line {mark.line + 1})"
    if isinstance(error, OSError):
        # Not the name: a token written where the name of its file belongs is a common slip.
        return f"a file that it names: {error.strerror or type(error).__name__}"
    if str(error).startswith("File does not exist"):
        return "a file that it names does not exist"
    lines = str(error).splitlines()
    # The package names a user by all that is in it: `config/{'name': …`.
    return lines[0].partition("{")[0].rstrip(" ./:") if lines else type(error).__name__


def _plain(config: ConfigNode) -> dict[str, Any]:
    """Take the package's wrappers off the merged document."""
    return {
        name: [item.value for item in config.value.get(name) or ()]
        for name in ("clusters", "users")
    }


def _check_token(configuration: Configuration, source: str, credentials: Credentials) -> None:
    """Refuse a token that can never be sent, when it is read and not with each request."""
    value = configuration.api_key.get("BearerToken")
    if value is None:
        return
    value = str(value).strip()
    if not is_usable_header(value) or " " not in value:
        raise ClusterError(f"The token of {source} {_UNUSABLE}; write it anew.")
    credentials.learn_sent(value.partition(" ")[2])


def _shown_context(options: ConnectOptions, config: ConfigNode) -> str:
    name = options.context or config.value.get("current-context")
    return f"context {name}" if name else "the chosen cluster"


def _choose_context(config: ConfigNode, options: ConnectOptions, paths: list[str]) -> str:
    """Name the context to use; --cluster and --user make a new one on top of it."""
    names = [str(item.value["name"]) for item in config.value["contexts"]]
    chosen = options.context or str(config.value["current-context"] or "")
    if chosen and chosen not in names:
        known = f"known contexts: {', '.join(sorted(names)) or 'none'}"
        raise ClusterError(f'The context "{chosen}" does not exist{hint(chosen, names, known)}')
    if not chosen and not options.cluster:
        known = ", ".join(sorted(names)) or "none"
        raise ClusterError(
            f"The kubeconfig has no current context; choose one with --context ({known})."
        )
    config.value["current-context"] = chosen
    if not (options.cluster or options.user):
        return chosen
    base = {}
    if chosen:
        base = dict(config["contexts"].get_with_name(chosen).value["context"])
    for kind, name in (("cluster", options.cluster), ("user", options.user)):
        if name is None:
            continue
        if config[f"{kind}s"].get_with_name(name, safe=True) is None:
            raise ClusterError(f'The kubeconfig has no {kind} "{name}"; check --{kind}.')
        base[kind] = name
    entry = {"name": _OVERRIDE_CONTEXT, "context": base}
    config.value["contexts"].append(ConfigNode(_OVERRIDE_CONTEXT, entry, paths[0]))
    return _OVERRIDE_CONTEXT


def _is_there(path: str) -> bool:
    try:
        return Path(path).expanduser().exists()
    except RuntimeError:  # below the home directory of a user who has none
        return False


def _check_exec(user: dict[str, Any], configuration: Configuration) -> None:
    """Refuse to go on as nobody when the credential plugin failed."""
    if "exec" not in user or configuration.api_key.get("BearerToken") or configuration.cert_file:
        return
    command = (user["exec"] or {}).get("command", "?")
    why = f" ({reason})" if (reason := plugins.why_none()) else ""
    raise ClusterError(
        f"The credential plugin {command} gave no token{why}; run it by hand (or `kubectl get ns`) "
        "to see why."
    )


def _apply_flags(configuration: Configuration, options: ConnectOptions) -> None:
    if options.token is not None:
        configuration.refresh_api_key_hook = None
        configuration.api_key["BearerToken"] = f"Bearer {options.token.strip()}"
    if options.insecure_skip_tls_verify:
        configuration.verify_ssl = False
        configuration.ssl_ca_cert = None
    if not configuration.verify_ssl:
        # Asked for by the user or the kubeconfig: a warning a minute would drown the rest.
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)


def _impersonation(options: ConnectOptions, user: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """List the Impersonate headers: flags first, else the kubeconfig user's `as` fields."""
    if options.impersonate_user is not None:
        pairs = [("Impersonate-User", options.impersonate_user)]
        pairs += [("Impersonate-Group", group) for group in options.impersonate_groups]
        return tuple(pairs)
    if options.impersonate_groups:
        raise ClusterError("--as-group needs --as; name the user to impersonate.")
    if not user.get("as"):
        return ()
    pairs = [("Impersonate-User", str(user["as"]))]
    if user.get("as-uid"):
        pairs.append(("Impersonate-Uid", str(user["as-uid"])))
    pairs += [("Impersonate-Group", str(group)) for group in user.get("as-groups") or ()]
    for key, values in (user.get("as-user-extra") or {}).items():
        pairs += [(f"Impersonate-Extra-{key}", str(value)) for value in values]
    return tuple(pairs)
