"""Numerical composition with certified brackets: the vertical line, lattices, rare events (THEORY 4.5)."""
