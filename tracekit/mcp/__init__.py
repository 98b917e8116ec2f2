"""Traces for agents, over the Model Context Protocol: `server.py` is the face (docs/mcp.md)."""
