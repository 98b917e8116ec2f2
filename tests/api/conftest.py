from tests.sql.conftest import session_of, trace_path  # noqa: F401 - fixtures
