"""Virtual time: the clock, and the loop of everything that happens on it."""
