"""Damaged and hostile traces: whatever is done to one, an answer or one sentence."""
