"""The estimates of a plan, compared with what the embedded engine consumes.

``verify`` reads a design's declaration (volumes, sizes, facts, ``returns``), generates items of
that shape, runs every pattern on the embedded engine through the data layer, and compares the
consumed capacity with the plan's estimates.

The generator reads the declaration a second time and shares no code with the planner's estimates.
If both used the same code, both could be wrong in the same way. The generator guesses what is not
declared, and the report names each guess (``declared_shape`` lists them).

This package measures. It changes no plan and prints nothing; ``stator plan --verify`` prints.
"""

from stator.verification.verification_report import (
    ItemSize,
    PlaceUnits,
    VerificationReport,
    VerificationRow,
)
from stator.verification.verifier import verify

__all__ = ["ItemSize", "PlaceUnits", "VerificationReport", "VerificationRow", "verify"]
