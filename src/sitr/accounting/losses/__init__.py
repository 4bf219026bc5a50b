"""Privacy-loss laws, one file a family: what the engines need to know of a mechanism (THEORY 2)."""
