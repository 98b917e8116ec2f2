"""Why pods ended and what Jobs wait for: typed answers out of the record's objects and Events."""
