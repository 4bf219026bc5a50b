"""Privacy filters: budgets that hold against an analyst who picks every next event after seeing all answers (THEORY 5).

The composition theorems fix the parameters in advance. A filter does not: it admits an event as long as a running sum
stays under a limit, by a theorem that allows it. Sums are whole numbers, so they do not depend on the order of events
and a ledger can keep them; docs/decisions/0006 says how a full budget is decided, and 0022 how several filters hold
together.
"""

from .filter import MOST, WHOLE, Filter, Units, added, covers, rescaled
from .odometer import Odometer
from .single import AdvancedFilter, GDPFilter, PureFilter, RDPFilter, SingleFilter, ZCDPFilter, choose_filter
from .union import Order, UnionFilter, choose_union
from .whole import WholeFilter

__all__ = [
    "MOST",
    "WHOLE",
    "AdvancedFilter",
    "Filter",
    "GDPFilter",
    "Odometer",
    "Order",
    "PureFilter",
    "RDPFilter",
    "SingleFilter",
    "UnionFilter",
    "Units",
    "WholeFilter",
    "ZCDPFilter",
    "added",
    "choose_filter",
    "choose_union",
    "covers",
    "rescaled",
]
