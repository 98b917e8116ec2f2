"""Why things happened: endings, waits, findings, and what other rules would have done.

Knows: judgements and the record's objects; asks the model and the rules.
Called by: sql and above.
"""
