"""The estimates of a plan, compared with what the embedded engine consumes.

``verify`` reads a design's declaration (volumes, sizes, facts, ``returns``), generates items of
that shape, runs every pattern on the embedded engine through the data layer, and compares the
consumed capacity with the plan's estimates.

The generator shares no code with the planner's estimates: it is a second reading of the same
declaration. If both used the same code, both could be wrong in the same way. Where nothing is
declared it assumes something, and the report says what (``declared_shape`` lists the assumptions).

This package measures. It changes no plan and prints nothing; ``stator plan --verify`` prints.
"""

from stator.verification.verification_report import PlaceUnits, VerificationReport, VerificationRow
from stator.verification.verifier import verify

__all__ = ["PlaceUnits", "VerificationReport", "VerificationRow", "verify"]
