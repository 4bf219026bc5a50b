"""What an audit found, in numbers and in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from ..accounting import Curve, Event
from ..display import rounded_down, rounded_up, scientific

VIOLATION = "violation certified"
INPUTS = ("the first input", "the second input")


@dataclass(frozen=True)
class Witness:
    """The one event that speaks against a claim, or comes nearest to it.

    Attributes:
        words: What the event is.
        score: The kind of score that it is a threshold of.
        order: 0: likelier with the first input than with the second; 1: the other way round.
        p_lower: What its probability is at least, with the input for which it is likelier.
        q_upper: What its probability is at most, with the other.
        allowed: The most that the claimed curve allows it to have, given `q_upper` (THEORY 1.5).

    Example:
        >>> print(Witness("output ≤ 0.5", "value", 1, p_lower=0.52, q_upper=0.11, allowed=0.3))
        output ≤ 0.5: at least 0.52 with the second input, at most 0.11 with the first input, where 0.3 is allowed
    """

    words: str
    score: str
    order: int
    p_lower: float
    q_upper: float
    allowed: float

    def __str__(self) -> str:
        likelier, other = INPUTS[self.order], INPUTS[1 - self.order]
        least, most, allowed = rounded_down(self.p_lower), rounded_up(self.q_upper), rounded_up(self.allowed)
        return (
            f"{self.words}: at least {least} with {likelier}, at most {most} with {other}, where {allowed} is allowed"
        )


@dataclass(frozen=True)
class AuditReport:
    """What was certified of a mechanism on one pair of inputs.

    All bounds hold together, with the stated confidence, for independent outputs.

    Attributes:
        claimed: The event or the curve that was claimed.
        claimed_epsilon: The claimed ε at
        delta: this δ.
        epsilon_lower: The true ε at that δ is at least this (THEORY 1.3).
        delta_lower: The true δ at the claimed ε is at least this.
        factor_lower: The event sets the inputs at least so many times as far apart as the claim allows; under 1, how
            near the audit came. Noise too small by a factor sets them apart by that factor, or nearly so.
        violated: Whether the claimed trade-off curve is certainly broken (THEORY 1.5).
        witness: The event that shows it, or comes nearest.
        samples: Outputs drawn for each input; half of them certify.
        confidence: How often, at least, an audit of an honest claim certifies no violation.
        escapes_factor: A bug that sets the inputs apart by this factor of what the claim allows, or more, is found in
            95 of 100 audits at least, if an event that shows it is looked at; a smaller one may escape.
        escapes_failure: The same of a failure that gives an input away with this probability, or a larger one.

    Example:
        >>> from sitr.accounting import PureDP
        >>> witness = Witness("output ≤ 0.5", "value", 1, p_lower=0.52, q_upper=0.11, allowed=0.3)
        >>> report = AuditReport(PureDP(1.0), 1.0, 0.0, 1.55, 0.22, 1.55, True, witness, 1000, 0.95, 1.4, 0.03)
        >>> report.verdict, report.epsilon_lower
        ('violation certified', 1.55)
    """

    claimed: Event | Curve
    claimed_epsilon: float
    delta: float
    epsilon_lower: float
    delta_lower: float
    factor_lower: float
    violated: bool
    witness: Witness
    samples: int
    confidence: float
    escapes_factor: float
    escapes_failure: float

    @property
    def verdict(self) -> str:
        """Say "violation certified", or that none was found and what may have escaped; never that all is well."""
        if self.violated:
            return VIOLATION
        return f"no violation found with {self.samples} samples ({self.escapes})"

    @property
    def escapes(self) -> str:
        """What an audit of this size may overlook; what is larger it finds in 95 of 100 cases at least."""
        failure = f"a failure rarer than {scientific(self.escapes_failure)} may escape"
        if math.isinf(self.escapes_factor):
            return f"a bug of any size and {failure}"
        return f"a bug smaller than {rounded_up(self.escapes_factor, 4)} × the claim or {failure}"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON holds it.

        Example:
            >>> from sitr.accounting import PureDP
            >>> witness = Witness("output ≤ 0.5", "value", 1, p_lower=0.52, q_upper=0.11, allowed=0.3)
            >>> report = AuditReport(PureDP(1.0), 1.0, 0.0, 1.55, 0.22, 1.55, True, witness, 1000, 0.95, 1.4, 0.03)
            >>> report.to_dict()["witness"]["p_lower"]
            0.52
        """
        record = {name: value for name, value in vars(self).items() if name not in ("claimed", "witness")}
        claimed = self.claimed.to_dict() if isinstance(self.claimed, Event) else None
        return {"claimed": claimed, **record, "verdict": self.verdict, "witness": dict(vars(self.witness))}

    def __str__(self) -> str:
        return "\n".join(
            [
                self.verdict,
                f"claimed    ε = {rounded_up(self.claimed_epsilon)} at δ = {scientific(self.delta)}",
                f"certified  ε ≥ {rounded_down(self.epsilon_lower)} at that δ, δ ≥ {rounded_down(self.delta_lower)} at "
                f"that ε, {rounded_down(self.factor_lower)} × the claimed distance; "
                f"confidence {100 * self.confidence:g} %",
                f"event      {self.witness}",
            ]
        )
