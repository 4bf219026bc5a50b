"""Queries: counts, sums, means and what is computed of them, for each group of a table."""
