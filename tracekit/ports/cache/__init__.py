"""Informer caches that can be read at a cut."""
