"""Is what the record shows what a controller meant to write? Field by field, with the paths."""
