"""The auditor: it attacks a mechanism with samples, and certifies how much privacy was lost at least."""
