"""Making traces from what other recorders wrote."""
