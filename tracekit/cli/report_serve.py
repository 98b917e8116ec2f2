"""`tracekit report --serve`: the page from a server on this machine."""

from __future__ import annotations

from contextlib import closing
from signal import SIGINT
from threading import Thread

from tracekit.base.stopping import Interrupts, on_signals
from tracekit.base.time_input import TimeRange
from tracekit.cli.messages import say, tell_all, waiting
from tracekit.report.serving.answers import Answers
from tracekit.report.serving.server import LOOPBACK, ReportServer
from tracekit.sql.session import Session

#: A choice: how long it may take to be seen that the server ended of itself, which it never should.
_LOOK_S = 5.0


def serve_report(
    session: Session, key: str | None, times: TimeRange, namespace: str | None, *, port: int
) -> None:
    """Serve one trace's page until the user ends it.

    Raises:
        UsageError: There is no such object, or the port cannot be had.
    """
    printed = set(session.problems)
    with waiting("Reading the trace"):
        answers = Answers(session, key, times, namespace)
        server = ReportServer(answers, address=LOOPBACK[0], port=port)
    ctrl_c = Interrupts()
    with closing(server), on_signals(ctrl_c.came, SIGINT):
        serving = Thread(target=server.serve)
        serving.start()
        try:
            say(f"Open {server.url} in a browser of this machine; Ctrl-C ends it")
            with waiting("Judging the trace"):
                server.judge()
            tell_all([*session.problems, *session.warnings], printed)
            while serving.is_alive() and not ctrl_c.asked.wait(_LOOK_S):
                pass
        except (Exception, KeyboardInterrupt):
            if not ctrl_c.asked.is_set():
                raise
        finally:
            server.stop()
            serving.join()
    if ctrl_c.asked.is_set():
        say("Ended")
