"""The HTML report: one file that a browser opens without a network."""
