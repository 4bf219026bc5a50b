"""Tables: what the owner declared, and the engine behind it; the only place that touches a database's rows."""

from .declaration import Declaration

__all__ = ["Declaration"]
