"""What went wrong in a trace, as findings: each decided from the record and its replay. Pure."""
