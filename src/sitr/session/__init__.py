"""Session: what a user holds."""
