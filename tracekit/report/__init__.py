"""How results are shown: data in, text out.

Knows: answers, verdicts, SQL; opens no files.
Called by: cli, api.
"""
