"""Ports of the upstream controllers: pure code that turns cache and clock into actions."""
