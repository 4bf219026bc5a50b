"""The version of sitr; also in pyproject.toml, and a test holds the two together."""

__version__ = "0.1.0"
