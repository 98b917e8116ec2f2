"""The world of a record: what users did and what became of pods, not what controllers did."""
