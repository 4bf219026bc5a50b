"""Exact samplers for rational parameters."""
