"""`tracekit report --serve`: the page from a server on this machine."""

from __future__ import annotations

from contextlib import closing
from threading import Thread

from tracekit.base.stopping import interrupted_at_once
from tracekit.base.time_input import TimeRange
from tracekit.cli.messages import say, tell_all, waiting
from tracekit.report.serving.answers import Answers
from tracekit.report.serving.server import LOOPBACK, ReportServer
from tracekit.sql.session import Session


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
    with closing(server):
        serving = Thread(target=server.serve)
        serving.start()
        try:
            say(f"Open {server.url} in a browser of this machine; Ctrl-C ends it")
            with waiting("Judging the trace"), interrupted_at_once():
                server.judge()
            tell_all([*session.problems, *session.warnings], printed)
            serving.join()
        except KeyboardInterrupt:
            say("Ended")
        finally:
            server.stop()
            serving.join()
