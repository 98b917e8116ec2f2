"""Verdicts and findings while a record grows: `follow` reads it, `live` judges, `news` is told."""
