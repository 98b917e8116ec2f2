"""Times by whose clock they are: mypy refuses one where another is meant.

All are Unix ns. What is read from a trace is by the recorder's clock; judging begins where receive
times are put on the clock that is judged on (`RecorderClock`), and ends where verdicts go back.
"""

from __future__ import annotations

from typing import NewType

#: By the clock of the recorder's machine, as receive times are.
RecordedNs = NewType("RecordedNs", int)
#: By the clock that a record is judged on: the controller manager's, else the API server's.
JudgedNs = NewType("JudgedNs", int)
#: By an API server's clock, as creationTimestamp, managedFields and Date are.
ServerNs = NewType("ServerNs", int)
