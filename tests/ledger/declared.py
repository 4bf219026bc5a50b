"""Terms of a promise that tests write down, and others like them."""

from sitr.ledger.terms import Terms

PROMISE = {"tables.visits.unit": "named by patient", "tables.visits.source": "visits.csv"}
TERMS = Terms("clinic", "clinic", 1, PROMISE, {"visits": "visits.csv"}, {"delta": "1e-08"})
ROWS = PROMISE | {"tables.visits.unit": "each row is one"}


def other(terms=TERMS, **changes):
    """The same terms with some of them changed."""
    return Terms(**{**{name: getattr(terms, name) for name in Terms.__dataclass_fields__}, **changes})
