"""Where the API server is and who we are, found the way kubectl finds it.

Files, contexts, certificates, exec plugins and token refresh are the `kubernetes` package's work.
What is ours: kubectl's order (flag, $KUBECONFIG list, ~/.kube/config, in-cluster), `--cluster` and
`--user` on top of a context, impersonation, and a `reload` that re-reads everything after a 401.
"""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3
from kubernetes.client.configuration import Configuration
from kubernetes.client.rest import RESTClientObject
from kubernetes.config import ConfigException
from kubernetes.config.incluster_config import InClusterConfigLoader
from kubernetes.config.kube_config import ConfigNode, KubeConfigLoader, KubeConfigMerger

from tracekit.errors import ClusterError

SERVICE_ACCOUNT_DIR = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_OVERRIDE_CONTEXT = "tracekit-overrides"
_POOL_CONNECTIONS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectOptions:
    """What the command line says about the cluster; None leaves it to the configuration."""

    kubeconfig: str | None = None
    context: str | None = None
    cluster: str | None = None
    user: str | None = None
    impersonate_user: str | None = None
    impersonate_groups: tuple[str, ...] = ()
    token: str | None = None
    insecure_skip_tls_verify: bool = False


@dataclass(frozen=True, slots=True)
class _Loaded:
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
        self.generation = 0
        self._use(_load(options))

    def _use(self, loaded: _Loaded) -> None:
        self._loaded = loaded
        # Built by the package's own client: it knows proxies, no_proxy and TLS settings. The pool
        # must hold every stream at once, or urllib3 would throw connections away.
        configuration = loaded.configuration
        configuration.connection_pool_maxsize = _POOL_CONNECTIONS
        try:
            self.pool: urllib3.PoolManager = RESTClientObject(configuration).pool_manager
        except (OSError, ValueError, urllib3.exceptions.HTTPError) as error:
            raise ClusterError(
                f"The TLS or proxy settings of {loaded.source} cannot be used ({error}); check "
                "certificate-authority, client-certificate and proxy-url."
            ) from error

    @property
    def host(self) -> str:
        """Base address of the API server, without a trailing slash."""
        return str(self._loaded.configuration.host).rstrip("/")

    @property
    def namespace(self) -> str:
        """The namespace of the context, `default` when it has none."""
        return self._loaded.namespace

    @property
    def source(self) -> str:
        """Where the configuration came from, for people."""
        return self._loaded.source

    def headers(self) -> urllib3.HTTPHeaderDict:
        """Give the headers of one request; a token that is about to expire is renewed here."""
        result = urllib3.HTTPHeaderDict({"User-Agent": "kube-tracekit"})
        with self._lock:
            loaded = self._loaded
            try:
                token = loaded.configuration.get_api_key_with_prefix("BearerToken")
            except (OSError, ConfigException) as error:
                raise ClusterError(
                    f"The credentials in {loaded.source} cannot be refreshed ({error})."
                ) from error
        if token:
            result["Authorization"] = token
        for name, value in loaded.impersonation:
            result.add(name, value)
        return result

    def reload(self, generation: int) -> None:
        """Read the configuration again unless another thread did since `generation`."""
        with self._lock:
            if generation != self.generation:
                return
            self._use(_load(self._options))
            self.generation += 1


#### Loading ####


def _load(options: ConnectOptions) -> _Loaded:
    paths = _kubeconfig_paths(options)
    if not any(Path(path).expanduser().exists() for path in paths):
        if options.kubeconfig is not None:
            raise ClusterError(
                f"There is no kubeconfig at {options.kubeconfig}; give --kubeconfig another path."
            )
        if options.context or options.cluster or options.user:
            raise ClusterError(_no_configuration(paths))
        return _load_in_cluster(options, paths)
    return _load_files(options, paths)


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
    try:
        InClusterConfigLoader(
            token_filename=str(SERVICE_ACCOUNT_DIR / "token"),
            cert_filename=str(SERVICE_ACCOUNT_DIR / "ca.crt"),
        ).load_and_set(configuration)
    except (ConfigException, OSError) as error:
        raise ClusterError(_no_configuration(paths)) from error
    try:
        namespace = (SERVICE_ACCOUNT_DIR / "namespace").read_text().strip() or "default"
    except OSError:
        namespace = "default"
    _apply_flags(configuration, options)
    source = "the pod's service account"
    return _Loaded(configuration, namespace, source, _impersonation(options, {}))


def _load_files(options: ConnectOptions, paths: list[str]) -> _Loaded:
    where = os.pathsep.join(paths)
    configuration = Configuration()
    # The package reports a failed exec plugin on the root logger only; the check below does it.
    previous = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        config = KubeConfigMerger(where).config
        _check_document(config, where)
        context = _choose_context(config, options, paths)
        loader: Any = KubeConfigLoader(
            config_dict=config, active_context=context, config_base_path=None
        )
        loader.load_and_set(configuration)
    except ClusterError:
        raise
    except ConfigException as error:
        raise ClusterError(f"The kubeconfig {where} cannot be used: {error}.") from error
    except Exception as error:  # yaml and the package raise whatever the file provokes
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ClusterError(f"The kubeconfig {where} cannot be read: {reason}.") from error
    finally:
        logging.disable(previous)
    # No public accessor gives the merged entries with the overrides applied.
    entry = loader._current_context["context"]  # noqa: SLF001
    user: dict[str, Any] = dict(loader._user.value) if loader._user else {}  # noqa: SLF001
    if not configuration.host or "server" not in loader._cluster:  # noqa: SLF001
        raise ClusterError(f"The cluster of {_shown_context(options, config)} names no server.")
    if options.token is None:
        _check_exec(user, configuration)
    _apply_flags(configuration, options)
    namespace = str(entry.safe_get("namespace") or "default")
    source = f"{_shown_context(options, config)} of {where}"
    return _Loaded(configuration, namespace, source, _impersonation(options, user))


def _check_document(config: ConfigNode | None, where: str) -> None:
    if config is None or not isinstance(config.value, dict):
        raise ClusterError(f"The kubeconfig {where} is empty or not a mapping; mend it.")


def _shown_context(options: ConnectOptions, config: ConfigNode) -> str:
    name = options.context or config.value.get("current-context")
    return f"context {name}" if name else "the chosen cluster"


def _choose_context(config: ConfigNode, options: ConnectOptions, paths: list[str]) -> str:
    """Name the context to use; --cluster and --user make a new one on top of it."""
    names = [str(item.value["name"]) for item in config.value["contexts"]]
    chosen = options.context or _current_context(config, paths)
    if chosen and chosen not in names:
        known = ", ".join(sorted(names)) or "none"
        raise ClusterError(f'The context "{chosen}" does not exist; known contexts: {known}.')
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


def _current_context(config: ConfigNode, paths: list[str]) -> str:
    """Find the first file's current-context, as kubectl does (the package takes the last)."""
    for path in paths:
        if Path(path).expanduser().exists():
            value = KubeConfigMerger(path).config.value.get("current-context")
            if value:
                return str(value)
    return str(config.value.get("current-context") or "")


def _check_exec(user: dict[str, Any], configuration: Configuration) -> None:
    """Refuse to go on as nobody when the credential plugin failed."""
    if "exec" not in user or configuration.api_key.get("BearerToken") or configuration.cert_file:
        return
    command = (user["exec"] or {}).get("command", "?")
    raise ClusterError(
        f"The credential plugin {command} gave no token; run it by hand (or `kubectl get ns`) to "
        "see why."
    )


def _apply_flags(configuration: Configuration, options: ConnectOptions) -> None:
    if options.token is not None:
        configuration.refresh_api_key_hook = None
        configuration.api_key["BearerToken"] = f"Bearer {options.token}"
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
