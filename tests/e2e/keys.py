"""The keys of a test cluster: one serving certificate for all, one key for service accounts."""

import subprocess
from pathlib import Path

CERTIFICATE, CERTIFICATE_KEY, SERVICE_ACCOUNT_KEY = "server.crt", "server.key", "sa.key"


def make_keys(folder: Path) -> None:
    """Write the keys into `folder`, once: restarted programs must find the ones they had."""
    if (folder / SERVICE_ACCOUNT_KEY).exists():
        return
    _openssl(
        *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-subj", "/CN=e2e"),
        *("-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"),
        # it is its own authority, and newer Pythons insist that an authority says so
        *("-addext", "keyUsage=critical,digitalSignature,keyCertSign"),
        *("-keyout", str(folder / CERTIFICATE_KEY), "-out", str(folder / CERTIFICATE)),
    )
    _openssl("genrsa", "-out", str(folder / SERVICE_ACCOUNT_KEY), "2048")


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
