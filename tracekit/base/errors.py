"""The errors that a user may see: one sentence that says what is wrong and what to do.

`tracekit.cli.main` is the only place that catches them; it prints the sentence and exits 2.
"""


class TracekitError(Exception):
    """Something the user can mend; the message is one whole sentence."""

    #: Whether the message has lines of its own; in all others a line feed comes from some name.
    has_lines = False


class UsageError(TracekitError):
    """The command line asks for something that does not fit together."""


class TraceFormatError(TracekitError):
    """A trace, or a file meant to become one, cannot be read as what it should be."""


class UnsupportedVersionError(TracekitError):
    """A Kubernetes version or a feature gate that the version table cannot resolve."""


class ClusterError(TracekitError):
    """The cluster cannot be reached or the credentials do not do."""
