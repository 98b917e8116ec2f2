"""Traces named by a URL: the file system behind it, and its complaints as sentences.

S3, Google Cloud Storage and Azure Blob Storage are spoken by pyarrow itself; every other scheme
(https, hf, …) by fsspec, where it is installed. Credentials, regions and endpoints come from where
each provider's own tools take them: the environment, profiles, the machine's role.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct
from pyarrow import fs

from tracekit.base.errors import TraceFormatError

_SAME = {"s3a": "s3", "gcs": "gs", "az": "abfs", "abfss": "abfs"}
_WEB = ("http", "https")
_BY_RANGE = ("s3", "gs", "abfs")
_TRIES = 3
_CONNECT_S = 10
#: A request to a web server, and how long nothing of its answer may come.
_ANSWER_S = 300
_SILENCE_S = 30
#: Of what is read whole: lists of folders, and documents.
_ANSWER_BYTES_MAX = 256 << 20
_PIECE_BYTES = 1 << 16
_REQUEST_S = 60
#: So many does one process ask of a store.
REQUESTS_AT_ONCE = 8

#### What a store says when it refuses, has no such bucket, cannot be reached ####

_NO_BUCKET = re.compile(r"NO_SUCH_BUCKET|ContainerNotFound|bucket does not exist", re.IGNORECASE)
_NO_ROOM = re.compile(r"No space left|Read-only file system|quota exceeded", re.IGNORECASE)
_UNREACHABLE = re.compile(
    r"NETWORK_CONNECTION|connect|resolve host|timed? ?out|UNAVAILABLE", re.IGNORECASE
)
_REFUSED = re.compile(
    r"ACCESS_DENIED|INVALID_ACCESS_KEY|SIGNATURE|UNRECOGNIZED_CLIENT|EXPIRED|INVALID_TOKEN|"
    r"MISSING_AUTHENTICATION|PERMISSION_DENIED|UNAUTHENTICATED|\b40[13]\b|credential",
    re.IGNORECASE,
)
#: Which of many requests it was, before what was said to it.
_REQUEST = re.compile(r"^When [^:]*: (?=AWS Error)")
_LOGIN = {
    "s3": "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "set GOOGLE_APPLICATION_CREDENTIALS, or run `gcloud auth application-default login`",
    "abfs": "set AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY, or run `az login`",
}


class Address(Struct, frozen=True):
    """What a URL says, and the environment about its kind, before anything is asked."""

    url: str
    scheme: str
    #: The folder that the URL names: bucket and path.
    path: str
    #: What besides the scheme tells this store from others: the host of an endpoint, an account.
    place: str = ""
    #: The endpoint's URL, where the environment names one.
    endpoint: str = ""


class Store(Struct, frozen=True):
    """A file system, and the folder in it that a URL names."""

    address: Address
    files: fs.FileSystem
    path: str

    @property
    def reads_ranges(self) -> bool:
        """Whether a part of a file can be had without the rest of it, whatever the server."""
        return self.address.scheme in _BY_RANGE

    def listed(self, path: str) -> dict[str, fs.FileInfo]:
        """What lies directly under a path, by name; nothing if there is no such folder."""
        found = self._found(path, recursive=False)
        # The folders of a web server end in a slash.
        named = {info.path.rstrip("/").rpartition("/")[2]: info for info in found}
        return {name: self._measured(info) for name, info in named.items()}

    def folders(self, path: str) -> set[str]:
        """Names of the folders directly under a path."""
        if self.address.scheme != "gs":
            found = self.listed(path)
            return {name for name, info in found.items() if info.type == fs.FileType.Directory}
        # Google's has no folders but in the names of objects, and pyarrow infers none from them.
        below = (info.path.removeprefix(f"{path}/") for info in self._found(path, recursive=True))
        return {name.partition("/")[0] for name in below if "/" in name}

    def _found(self, path: str, *, recursive: bool) -> list[fs.FileInfo]:
        try:
            found: list[fs.FileInfo] = self.files.get_file_info(
                fs.FileSelector(path, recursive=recursive)
            )
        except OSError as error:
            # Not every store's error has the number.
            if isinstance(error, FileNotFoundError) or "No such file or dir" in str(error):
                return []
            raise
        return found

    def _measured(self, info: fs.FileInfo) -> fs.FileInfo:
        """The same with its size, which the listing of a web server does not have."""
        if info.type == fs.FileType.File and info.size is None:
            return self.files.get_file_info(info.path)
        return info


@contextmanager
def complaints(address: Address, done: str = "read") -> Iterator[None]:
    """Make every complaint of a store one sentence about the URL; `done`: what it cannot be."""
    try:
        yield
    except TraceFormatError:
        raise
    except Exception as error:  # each provider's library has errors of its own
        raise TraceFormatError(_sentence(address, error, done)) from error


def _sentence(address: Address, error: Exception, done: str) -> str:
    url = address.url
    said = " ".join(str(error).split()).rstrip(".")
    if _NO_BUCKET.search(said):
        bucket = address.path.partition("/")[0]
        what = "is not a trace" if done == "read" else f"cannot be {done}"
        return (
            f"{url} {what}: there is no bucket {bucket}; check its name, and the endpoint "
            "that the environment names"
        )
    if _UNREACHABLE.search(said):
        return (
            f"{url} cannot be reached ({said}): check the network, and the endpoint that the "
            "environment names"
        )
    if _REFUSED.search(said):
        login = _LOGIN.get(address.scheme, "give credentials for it in the environment")
        may = "list and read it" if done == "read" else "write there"
        said = _REQUEST.sub("", said)  # the same for every part
        why = f"access is refused ({said})"
        return f"{url} cannot be {done}, {why}: {login}, of somebody who may {may}"
    if _NO_ROOM.search(said):
        return (
            f"{url} cannot be copied here ({said}): name a directory with more room in "
            "TRACEKIT_CACHE_DIR"
        )
    if done != "read":
        return f"{url} cannot be {done} ({said}): see that the store takes it, and run again"
    return f"{url} cannot be read ({said}): copy the trace here with the store's own tools"


#### From a URL to its store ####

#: A user with a password before a host; a key of S3 may hold slashes, and a bucket has no colon.
_PASSWORD_WEB = re.compile(r"[^/@]*:[^/@]*@")
_PASSWORD = re.compile(r"[^/@]*:[^@]*@")


def locate(url: str) -> Address:
    """Where a URL leads."""
    written, _, rest = url.partition("://")
    scheme = _SAME.get(written.lower(), written.lower())
    path = rest.rstrip("/")
    if (_PASSWORD_WEB if scheme in _WEB else _PASSWORD).match(rest):
        raise TraceFormatError(
            "the URL of a trace holds a password, which messages and lists of processes show: "
            "leave user and password out, docs/object-storage.md says from where they are taken"
        )
    if scheme == "s3":
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
        return Address(url, scheme, path, urlsplit(endpoint).netloc, endpoint)
    if scheme == "gs":
        endpoint = os.environ.get("STORAGE_EMULATOR_HOST") or ""
        endpoint = endpoint if "://" in endpoint or not endpoint else f"http://{endpoint}"
        return Address(url, scheme, path, urlsplit(endpoint).netloc, endpoint)
    if scheme == "abfs":
        # abfs://container@account.dfs.core.windows.net/path, or az://container/path
        container, slash, folder = path.partition("/")
        container, _, host = container.partition("@")
        account = host.partition(".")[0] or os.environ.get("AZURE_STORAGE_ACCOUNT") or ""
        return Address(url, scheme, f"{container}{slash}{folder}", account)
    return Address(url, scheme, path)


def open_store(url: str) -> Store:
    """The store that a URL names; of S3 alone something is asked already: a bucket's region."""
    address = locate(url)
    with complaints(address):
        match address.scheme:
            case "s3":
                files = _s3(address)
            case "gs":
                files = _gs(address)
            case "abfs":
                files = _abfs(address)
            case _:
                files = _fsspec(address)
    web = address.scheme in _WEB
    return Store(address, files, f"{address.scheme}://{address.path}" if web else address.path)


def _s3(address: Address) -> fs.FileSystem:
    options: dict[str, Any] = _endpoint(address)
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if region is None and not address.endpoint:
        with suppress(OSError):  # whatever is wrong with the bucket is told when it is listed
            region = fs.resolve_s3_region(address.path.partition("/")[0])
    return fs.S3FileSystem(
        region=region,
        connect_timeout=_CONNECT_S,
        request_timeout=_REQUEST_S,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=_TRIES),
        **options,
    )


def _gs(address: Address) -> fs.FileSystem:
    options: dict[str, Any] = _endpoint(address)
    if address.endpoint:
        options["anonymous"] = True  # an emulator
    return fs.GcsFileSystem(retry_time_limit=timedelta(seconds=_REQUEST_S), **options)


def _abfs(address: Address) -> fs.FileSystem:
    if not address.place:
        raise TraceFormatError(
            f"{address.url} does not say whose container it is: write "
            "abfs://CONTAINER@ACCOUNT/PATH, or set AZURE_STORAGE_ACCOUNT"
        )
    if not hasattr(fs, "AzureFileSystem"):
        raise TraceFormatError(
            f"{address.url} needs a pyarrow that speaks to Azure: pip install -U pyarrow"
        )
    return fs.AzureFileSystem(
        address.place,
        account_key=os.environ.get("AZURE_STORAGE_KEY"),
        sas_token=os.environ.get("AZURE_STORAGE_SAS_TOKEN"),
    )


def _endpoint(address: Address) -> dict[str, str]:
    parts = urlsplit(address.endpoint)
    return {"endpoint_override": parts.netloc, "scheme": parts.scheme} if parts.netloc else {}


def _self_sufficient(kind: Any) -> Any:
    """The file system, if it needs nothing but paths; a ValueError if it has to be told a host."""
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
    if any(p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters):
        raise ValueError(kind.__name__)
    return kind


def _bounded(scheme: str) -> dict[str, Any]:
    """What makes requests to a web server end: in all, and when nothing comes meanwhile."""
    if scheme not in _WEB:
        return {}
    import aiohttp  # noqa: PLC0415 - an extra

    class Bounded(aiohttp.ClientResponse):
        """An answer that is read whole, so far as it has any business to be long."""

        async def read(self) -> bytes:
            data = bytearray()
            async for piece in self.content.iter_chunked(_PIECE_BYTES):
                data += piece
                if len(data) > _ANSWER_BYTES_MAX:
                    self.close()
                    raise OSError(f"an answer of more than {_ANSWER_BYTES_MAX >> 20} MiB")
            self._body = bytes(data)
            return self._body

    timeout = aiohttp.ClientTimeout(total=_ANSWER_S, sock_connect=_SILENCE_S, sock_read=_SILENCE_S)
    return {"client_kwargs": {"timeout": timeout, "response_class": Bounded}}


def _fsspec(address: Address) -> fs.FileSystem:
    """Whatever fsspec knows: https servers that list their folders, and others by name."""
    import fsspec  # noqa: PLC0415 - slow to import: only such URLs need it

    scheme = address.scheme
    try:
        # Its file systems remember listings, but a trace may have grown since.
        files = _self_sufficient(fsspec.get_filesystem_class(scheme))(
            use_listings_cache=False, skip_instance_cache=True, **_bounded(scheme)
        )
    except ImportError as error:
        wanted = "pip install 'kube-tracekit[http]'" if scheme in _WEB else "install that"
        raise TraceFormatError(
            f"{address.url} needs a package that is not installed ({error}): {wanted}"
        ) from error
    except ValueError as error:
        raise TraceFormatError(
            f"{address.url} is not a trace: nothing here speaks {scheme}; traces are read from "
            "s3://, gs://, abfs:// and https://, and from directories"
        ) from error
    return fs.PyFileSystem(fs.FSSpecHandler(files))
