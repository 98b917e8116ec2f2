"""How results are shown: data in, text out."""
