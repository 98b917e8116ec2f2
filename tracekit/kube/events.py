"""Words that client-go writes into Events.

Upstream: client-go tools/record/events_cache.go:EventAggregatorByReasonMessageFunc.
"""

from __future__ import annotations

from typing import Final

#: Begins the message of an Event that stands for several which differ in their message only.
COMBINED: Final = "(combined from similar events): "
