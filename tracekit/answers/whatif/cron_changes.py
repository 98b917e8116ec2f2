"""What a what-if changes in a CronJob: fields of its spec that are set."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from tracekit.base.cron import CronSpecError, Generation, parse
from tracekit.base.cron.zones import UnknownZoneError, load_zone
from tracekit.base.errors import UsageError
from tracekit.base.kube.cronjob_views import ALLOW, FORBID, REPLACE, CronJobSpec, CronJobView
from tracekit.base.suggest import hint

#: Field of a CronJob's spec -> attribute of its decoded form.
_ATTRIBUTES: Final = {
    "concurrencyPolicy": "concurrency_policy",
    "failedJobsHistoryLimit": "failed_limit",
    "schedule": "schedule",
    "startingDeadlineSeconds": "starting_deadline_s",
    "successfulJobsHistoryLimit": "successful_limit",
    "suspend": "suspend",
    "timeZone": "time_zone",
}
#: The fields of a CronJob's spec that its controllers read; those of its Jobs are `--set`'s.
CRON_FIELDS: Final = tuple(_ATTRIBUTES)
_WHOLE_NUMBERS: Final = frozenset(
    {"failedJobsHistoryLimit", "startingDeadlineSeconds", "successfulJobsHistoryLimit"}
)
_POLICIES: Final = (ALLOW, FORBID, REPLACE)
#: What null makes of a field: the API server's default, or its absence.
_DEFAULTS: Final = {
    "concurrencyPolicy": ALLOW,
    "failedJobsHistoryLimit": 1,
    "successfulJobsHistoryLimit": 3,
    "suspend": False,
}

CronChange = Callable[[CronJobView], CronJobView]


class CronSetting(Struct, frozen=True):
    """One `--set-cron`: a field of a CronJob's spec, and its value; None takes the field away."""

    field: str
    value: Any

    @property
    def name(self) -> str:
        """As it is told: `cronjob spec.suspend=true`."""
        plain = isinstance(self.value, str)
        return f"cronjob spec.{self.field}={self.value if plain else json.dumps(self.value)}"


def parse_cron_settings(texts: Iterable[str]) -> tuple[CronSetting, ...]:
    """What `--set-cron` names: `spec.concurrencyPolicy=Forbid` and its like.

    Raises:
        UsageError: It is no setting, the field is none that the controllers read, or the API server
            would not take the value.
    """
    return tuple(_setting(text) for text in texts)


def _setting(text: str) -> CronSetting:
    path, sign, said = text.partition("=")
    name = path.strip().removeprefix("spec.")
    if not sign:
        raise UsageError(f"--set-cron {text!r} sets nothing: write it like spec.suspend=true")
    if name.startswith("jobTemplate"):
        raise UsageError(
            f"--set-cron {text!r}: what a CronJob's Jobs are made of is set with --set spec.…, "
            "which holds for the Jobs of CronJobs, too"
        )
    if name not in CRON_FIELDS:
        raise UsageError(
            f"--set-cron {text!r}: the controllers read no field spec.{name} of a CronJob"
            + hint(name, CRON_FIELDS, f"they read {', '.join(CRON_FIELDS)}")
        )
    value: Any = said.strip()
    if name not in ("schedule", "timeZone"):
        try:
            value = json.loads(said)
        except json.JSONDecodeError:
            value = said.strip()
    elif value == "null":
        value = None
    _check(name, value, text)
    return CronSetting(name, value)


def _check(name: str, value: Any, text: str) -> None:
    if name == "schedule":
        _check_schedule(value, text)
    if value is None:
        return
    if name == "timeZone":
        try:
            load_zone(value)
        except UnknownZoneError as error:
            raise UsageError(
                f"--set-cron {text!r}: {value!r} is no time zone; give a name of the tz database "
                "such as Europe/Berlin"
            ) from error
    whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    if name in _WHOLE_NUMBERS and not whole:
        raise UsageError(f"--set-cron {text!r}: spec.{name} takes a whole number, not below 0")
    if name == "suspend" and not isinstance(value, bool):
        raise UsageError(f"--set-cron {text!r}: spec.suspend takes true or false")
    if name == "concurrencyPolicy" and value not in _POLICIES:
        raise UsageError(f"--set-cron {text!r}: spec.{name} is one of {', '.join(_POLICIES)}")


def _check_schedule(value: str | None, text: str) -> None:
    if not value:
        raise UsageError(f"--set-cron {text!r}: a CronJob needs a schedule, such as */5 * * * *")
    try:
        parse(value, Generation.GEN3)
    except CronSpecError as error:
        raise UsageError(
            f"--set-cron {text!r}: the schedule cannot be read: {error}; `tracekit cron next` "
            "tries one"
        ) from error


def cron_change(settings: tuple[CronSetting, ...] = ()) -> CronChange:
    """What becomes of a recorded CronJob under settings."""
    values = {_ATTRIBUTES[s.field]: _value(s) for s in settings}

    def change(cron_job: CronJobView) -> CronJobView:
        if not values:
            return cron_job
        spec: CronJobSpec = replace(cron_job.spec, **values)
        return replace(cron_job, spec=spec)

    return change


def _value(setting: CronSetting) -> Any:
    return _DEFAULTS.get(setting.field) if setting.value is None else setting.value


def raw_settings(settings: Iterable[CronSetting]) -> dict[str, Any]:
    """The settings as a JSON merge patch of the spec: None takes a field away."""
    return {setting.field: setting.value for setting in settings}
