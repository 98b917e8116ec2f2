"""The recorder: list and watch of a live cluster into a trace."""
