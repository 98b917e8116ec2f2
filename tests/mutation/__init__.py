"""Port mutation: every row of the version table matters to some real trace, or is listed."""
