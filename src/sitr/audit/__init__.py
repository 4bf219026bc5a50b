"""The auditor: it attacks a mechanism with samples, and certifies how much privacy was lost at least.

It takes callables and arrays, and draws no noise of its own. It never says that a mechanism passes: it says "violation
certified", or what size of bug may have escaped.
"""

from .one_run import OneRunReport, audit_one_run
from .pairs import audit
from .report import AuditReport, Witness

__all__ = ["AuditReport", "OneRunReport", "Witness", "audit", "audit_one_run"]
