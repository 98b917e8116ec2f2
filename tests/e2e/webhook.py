"""An admission webhook that refuses some of the controllers' writes, on loopback, over TLS.

What it refuses comes from a seed and the order in which it is asked. Users' writes and the stand-in
kubelet's pass: it is told in which requests to meddle by the name of the asking service account.
"""

import random
import ssl
import tempfile
import threading
import time
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import orjson

from tests.e2e import keys
from tests.e2e.api import Api, RawObject

CONTROLLERS = "system:serviceaccount:kube-system:"
TIMEOUT_SECONDS = 1  # of the server's patience; a slower answer is a refusal of its own kind
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
#: What is asked about: the writes by which the batch controllers work.
RULES: list[RawObject] = [
    {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"],
     "operations": ["CREATE", "UPDATE", "DELETE"]},
    {"apiGroups": ["batch"], "apiVersions": ["*"], "resources": ["jobs", "jobs/status"],
     "operations": ["CREATE", "UPDATE", "DELETE"]},
]  # fmt: skip


class RefusingWebhook:
    """Refuses one in `one_in` of the controllers' writes of a namespace while it is registered."""

    def __init__(self, seed: int, *, one_in: int = 4) -> None:
        """Start to listen; nobody is asked before `register`."""
        self._chance = random.Random(seed)
        self._one_in = one_in
        self._lock = threading.Lock()
        webhook = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                webhook._answer(self)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            keys.make_keys(folder)
            self._authority = b64encode((folder / keys.CERTIFICATE).read_bytes()).decode()
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(folder / keys.CERTIFICATE, folder / keys.CERTIFICATE_KEY)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def register(self, admin: Api, namespace: str) -> None:
        """Have the API server ask about writes in one namespace."""
        admin.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": {"e2e": namespace}}})
        port = self._server.server_address[1]
        client = {"url": f"https://127.0.0.1:{port}/", "caBundle": self._authority}
        asked: RawObject = {
            "name": "refuses.e2e.tracekit.dev",
            "clientConfig": client,
            "rules": RULES,
            "namespaceSelector": {"matchLabels": {"e2e": namespace}},
            "failurePolicy": "Fail",
            "sideEffects": "None",
            "timeoutSeconds": TIMEOUT_SECONDS,
            "admissionReviewVersions": ["v1"],
        }
        admin.create(CONFIGURATIONS, {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": namespace},
            "webhooks": [asked],
        })  # fmt: skip

    def withdraw(self, admin: Api, namespace: str) -> None:
        """Have the API server ask no more."""
        admin.delete(f"{CONFIGURATIONS}/{namespace}")

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, asked: BaseHTTPRequestHandler) -> None:
        review = orjson.loads(asked.rfile.read(int(asked.headers["Content-Length"])))
        request = review["request"]
        with self._lock:
            refused = self._chance.randrange(self._one_in) == 0
            code = self._chance.choice((403, 403, 500, 0))
        answer: RawObject = {"uid": request["uid"], "allowed": True}
        if refused and request["userInfo"]["username"].startswith(CONTROLLERS):
            if not code:
                time.sleep(TIMEOUT_SECONDS + 0.3)
            why = {"code": code or 500, "message": "not now, says the webhook of the test"}
            answer |= {"allowed": False, "status": why}
        body = orjson.dumps({**{k: review[k] for k in ("apiVersion", "kind")}, "response": answer})
        try:
            asked.send_response(200)
            asked.send_header("Content-Type", "application/json")
            asked.send_header("Content-Length", str(len(body)))
            asked.end_headers()
            asked.wfile.write(body)
        except OSError:
            asked.close_connection = True  # the server did not wait
