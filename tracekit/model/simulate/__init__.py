"""Runs of the model: a world, a version, a seed; out comes what a recorder would have seen."""
