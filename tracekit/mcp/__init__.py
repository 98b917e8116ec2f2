"""Traces for agents, over the Model Context Protocol: `server.py` is the face (docs/mcp.md).

Knows: the Python API, the verbs as processes.
Called by: cli.
"""
