"""The deterministic kernel: virtual clock."""
