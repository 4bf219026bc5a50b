"""The ledger: one durable account behind everything that leaves; it keeps its budgets whatever crashes.

Example:
    >>> from sitr.accounting import Laplace
    >>> from sitr.ledger import Budget, Ledger
    >>> ledger = Ledger.open("memory://")  # or sqlite:///book.db, or postgresql://...
    >>> ledger.create_budget("clinic", Budget(epsilon=1.0))
    >>> with ledger.reserve("clinic", Laplace(noise_multiplier=2), analyst="amina", operation="q-17") as grant:
    ...     grant.commit("a noisy answer")
    >>> ledger.remaining("clinic").value
    0.5
"""

from .answer import Answer
from .budget import Budget
from .entry import Entry, Head
from .grant import Grant
from .ledger import Ledger
from .standing import Amount, Standing
from .statement import Point, Statement
from .verification import Verification

__all__ = [
    "Amount",
    "Answer",
    "Budget",
    "Entry",
    "Grant",
    "Head",
    "Ledger",
    "Point",
    "Standing",
    "Statement",
    "Verification",
]
