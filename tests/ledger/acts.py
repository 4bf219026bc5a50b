"""What tests of the ledger do again and again."""

from sitr.accounting import PureDP
from sitr.ledger.entry import sealed
from sitr.ledger.keeper import Keeper
from sitr.ledger.totals import Total

ONE = PureDP(epsilon=1.0)


def ask(ledger, datasets="clinic", event=ONE, analyst="amina", answer="a", **about):
    """Reserve, start and commit."""
    with ledger.reserve(datasets, event, analyst=analyst, **about) as grant:
        grant.commit(answer)
    return grant


def create_joined(ledger, name, budget):
    """Create a budget of (ε,δ) that a Rényi order and pure ε keep together, as books of older forms have them."""
    keeper = Keeper.of(budget).joined()
    new = Total(name, 1, keeper.to_json(), keeper.nothing, keeper.nothing)
    ledger.store.create_budget(new, sealed({"definition": new.body, "name": name}))


def spent(ledger, name="clinic", **share):
    """What was spent of a budget."""
    return ledger.spent(name, **share).value
