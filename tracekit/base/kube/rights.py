"""The right that a 403 of the API server says is missing, and the commands that give it. Pure."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from tracekit.base.escaping import for_shell
from tracekit.base.kube.actors import SERVICE_ACCOUNT

#: Upstream: staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go
#: (forbiddenMessage); before 1.12 it named RESOURCE.GROUP without quotes.
_SAYS: Final = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?!be )(?P<verb>\w+) '
    r'(?:resource "(?P<resource>[^"]+)" in API group "(?P<group>[^"]*)"|(?P<old>[a-z][\w./-]*)) '
    r'(?:in the namespace "(?P<namespace>[^"]*)"|at the cluster scope)'
)
_ANONYMOUS: Final = "system:anonymous"


class MissingRight(Struct, frozen=True):
    """Who may not do what, and where: in all of the cluster, if in no namespace."""

    user: str
    verb: str
    #: As kubectl takes it: `jobs.batch`, `pods/eviction`.
    resource: str
    namespace: str | None

    @property
    def todo(self) -> str:
        """The commands that give the right, and the one that tells whether it is there."""
        ask = f"kubectl auth can-i {for_shell(self.verb)} {for_shell(self.resource)}{self._where}"
        if self.user == _ANONYMOUS:
            return (
                "The request came without credentials that the API server knows: renew the token "
                f"or certificate of the client, and see with it: {ask}"
            )
        name = for_shell(re.sub(r"[^\w-]+", "-", f"{self.verb}-{self.resource}"))
        role = "role" if self.namespace else "clusterrole"
        return (
            f"Give {self.user} the right: kubectl create {role} {name}{self._where} "
            f"--verb={for_shell(self.verb)} --resource={for_shell(self.resource)}; kubectl create "
            f"{role}binding {name}{self._where} --{role}={name} {self._whom}. Then see: {ask} "
            f"--as={for_shell(self.user)}"
        )

    @property
    def _where(self) -> str:
        return f" -n {for_shell(self.namespace)}" if self.namespace else ""

    @property
    def _whom(self) -> str:
        account = self.user.removeprefix(SERVICE_ACCOUNT)
        if account != self.user and account.count(":") == 1:
            return f"--serviceaccount={for_shell(account)}"
        return f"--user={for_shell(self.user)}"


def missing_right(message: str) -> MissingRight | None:
    """The right of which a message says that it is missing; None of any other message."""
    found = _SAYS.search(message)
    if found is None:
        return None
    resource = found["old"] or ""
    if found["resource"]:
        plural, slash, sub = found["resource"].partition("/")
        resource = f"{plural}.{found['group']}" if found["group"] else plural
        resource += slash + sub
    return MissingRight(found["user"], found["verb"], resource, found["namespace"] or None)
