"""tracekit: record and replay traces of the Kubernetes batch controllers."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("kube-tracekit")
except PackageNotFoundError:  # a source tree that was never installed
    __version__ = "0+unknown"

__all__ = ["__version__"]
