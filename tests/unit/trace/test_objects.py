"""How a user may name a Job or CronJob of a trace, and what is said of a name that is not there."""

from __future__ import annotations

import pytest

from tracekit.base.errors import UsageError
from tracekit.trace.reading.objects import Objects

OBJECTS = Objects(
    jobs=(("job", "odd"), ("shop", "export"), ("shop", "import"), ("yard", "import")),
    cronjobs=(("shop", "nightly"),),
    pods=(("shop", "export-x7k2p", "export"), ("yard", "import-9f8d1", "import")),
    others=(("shop", "driver"),),
)


@pytest.mark.parametrize(
    ("text", "namespace", "key"),
    [
        ("shop/import", None, ("shop", "import")),
        ("shop/import", "shop", ("shop", "import")),
        ("export", None, ("shop", "export")),
        ("nightly", None, ("shop", "nightly")),
        ("import", "yard", ("yard", "import")),
        ("job/import", "yard", ("yard", "import")),
        ("jobs.batch/export", None, ("shop", "export")),
        ("cj/nightly", None, ("shop", "nightly")),
        ("export-x7k2p", None, ("shop", "export")),
        ("pod/import-9f8d1", None, ("yard", "import")),
        ("yard/import-9f8d1", None, ("yard", "import")),
        ("job/odd", None, ("job", "odd")),  # a namespace that is called like a kind
    ],
)
def test_names_are_taken_as_users_write_them(text, namespace, key) -> None:
    assert OBJECTS.key(text, namespace) == key


@pytest.mark.parametrize(
    ("text", "namespace", "said"),
    [
        ("import", None, "'import' is not unique: name one of shop/import, yard/import"),
        ("job/import", None, "not unique"),
        ("exprot", None, "no Job, CronJob or pod 'exprot'; did you mean export"),
        ("shop/imprt", None, "no Job or CronJob shop/imprt; did you mean shop/import"),
        ("shop/import", "yard", "shop/import is not in the namespace yard: leave out -n"),
        ("cronjob/import", None, "no CronJob 'import'"),
        ("export", "yard", "'export' is not in the namespace yard: it is shop/export"),
        ("exprt", "yard", "no Job, CronJob or pod 'exprt' in the namespace yard"),
        ("/import", None, "write it like NAMESPACE/NAME"),
        ("shop/", None, "write it like NAMESPACE/NAME"),
        ("driver", None, "the pod shop/driver has no Job in this trace"),
        ("shop/driver", None, "the pod shop/driver has no Job in this trace"),
        ("pod/export-x7k2", None, "no pod 'export-x7k2'; did you mean export-x7k2p"),
    ],
)
def test_a_name_that_names_nothing_or_too_much_is_told(text, namespace, said) -> None:
    with pytest.raises(UsageError) as error:
        OBJECTS.key(text, namespace)
    assert said in str(error.value)
