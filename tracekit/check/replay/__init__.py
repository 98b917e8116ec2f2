"""Drivers that run the ported controllers over a trace."""
