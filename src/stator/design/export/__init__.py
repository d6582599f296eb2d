"""A design for other tools: CloudFormation, Terraform, CDK, NoSQL Workbench, boto3, IAM.

    exported = export(shop, "terraform")
    exported.text, exported.notes

Each target has a module whose function ``export`` takes an ``ExportSource``. If the format of a
target cannot express something, a note says so. Nothing here reads or writes files:
``stator export-design`` does. Documents for readers are in ``stator.design.documents``, exports of
table data in ``stator.pipeline.bulk``.
"""

from __future__ import annotations

from typing import Final

from stator.design.declaration import Declaration
from stator.design.export import boto3_script, cdk, cloudformation, iam, nosql_workbench, terraform
from stator.design.export.iam import policy
from stator.design.export.source import Exported, Exporter, ExportSource
from stator.design.plan.plan import Plan
from stator.design.planner.planner import plan as plan_of
from stator.errors import DesignError

TARGETS: Final[dict[str, Exporter]] = {
    "cloudformation": cloudformation.export,
    "terraform": terraform.export,
    "cdk": cdk.export,
    "nosql-workbench": nosql_workbench.export,
    "boto3": boto3_script.export,
    "iam": iam.export,
}

__all__ = ["TARGETS", "ExportSource", "Exported", "export", "policy"]


def export(
    design: Declaration, target: str, plan: Plan | None = None, *, with_patterns: bool = False
) -> Exported:
    """Return a design in the format of ``target``, with notes on what the format cannot express.

    ``target`` is a key of ``TARGETS``, such as ``terraform``. ``plan`` is exported instead of a new
    plan of the design. The export includes the table ``<design>-stator`` if the design has unique
    fields. ``with_patterns`` includes that table in any case, for programs that use pattern objects
    such as locks and counters.
    """
    exporter = TARGETS.get(target)
    if exporter is None:
        raise DesignError(
            f"there is no export to {target!r}", hint=f"choose one of {', '.join(TARGETS)}"
        )
    return exporter(ExportSource(design, plan_of(design) if plan is None else plan, with_patterns))
