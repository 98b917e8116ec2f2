"""The report's page from a server on this machine, which asks the trace for what the page shows."""
