"""Ports of the upstream controllers, and of what client-go gives them. Pure.

Knows: versions, Kubernetes words.
Called by: model, check, answers.
"""
