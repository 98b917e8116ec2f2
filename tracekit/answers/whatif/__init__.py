"""What other rules would have done with the Jobs of a record."""
