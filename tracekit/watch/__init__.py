"""Verdicts and findings while a record grows: `follow` reads it, `live` judges, `news` is reported.

Knows: traces, judge, answers; not the recorder.
Called by: cli.
"""
