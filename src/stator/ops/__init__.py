"""Tools that operate tables in production: what they use, what that costs, and what to change.

``capacity`` replays the use of tables over every way to pay for it, recommends one, and carries it
out (``stator advise``, ``stator scale``). ``dashboards`` writes dashboards and alarms from a
design, for Grafana, Prometheus, CloudWatch, CloudFormation and Terraform (``stator dashboards``,
``stator alarms``). ``live`` reads what tables use at this moment (``stator top --tables``),
``report`` what they used in a month and what that cost (``stator report``).

This floor talks to AWS, or to an endpoint that answers like it, through botocore clients that the
caller passes. It serves no requests and moves no data; ``stator.server`` and ``stator.pipeline``
do.
"""

from stator.model.scaling.capacity_window import CapacityWindow
from stator.model.scaling.scheduled_action import ScheduledAction
from stator.model.scaling.target_tracking import CapacityBounds, TargetTracking
from stator.ops.capacity.advice import (
    CapacityAdvice,
    PriceOfBeingWrong,
    TableAdvice,
    UnusedIndex,
    advise,
)
from stator.ops.capacity.bill import MonthlyBill
from stator.ops.capacity.capacity_state import CapacityState, ScaledDimension
from stator.ops.capacity.cloudwatch import CloudWatchMetrics
from stator.ops.capacity.history import kept_history, live_history
from stator.ops.capacity.history_file import read_history, write_history
from stator.ops.capacity.live_table import LiveTable, describe_live
from stator.ops.capacity.metric_source import MemoryMetrics, MetricQuery, MetricSource
from stator.ops.capacity.options import (
    CapacityOption,
    FigureRange,
    OptionSearch,
    capacity_options,
)
from stator.ops.capacity.planned_state import planned_state
from stator.ops.capacity.policies import (
    SCENARIOS,
    FixedPolicy,
    OnDemandPolicy,
    ScaledPolicy,
    Scenario,
)
from stator.ops.capacity.replay import DimensionReplay, Replay, replay
from stator.ops.capacity.reserved import ReservedBlocks, reserved_blocks
from stator.ops.capacity.scaling_registry import capacity_state
from stator.ops.capacity.scaling_request import ScalingRequest, scaled_state
from stator.ops.capacity.staged_change import (
    StagedCall,
    StagedChange,
    apply_change,
    read_record,
    stage,
)
from stator.ops.capacity.use_series import Dimension, TableHistory, UseSeries
from stator.ops.capacity.week.schedule import WeekSchedule, week_needs, week_schedule

__all__ = [
    "SCENARIOS",
    "CapacityAdvice",
    "CapacityBounds",
    "CapacityOption",
    "CapacityState",
    "CapacityWindow",
    "CloudWatchMetrics",
    "Dimension",
    "DimensionReplay",
    "FigureRange",
    "FixedPolicy",
    "LiveTable",
    "MemoryMetrics",
    "MetricQuery",
    "MetricSource",
    "MonthlyBill",
    "OnDemandPolicy",
    "OptionSearch",
    "PriceOfBeingWrong",
    "Replay",
    "ReservedBlocks",
    "ScaledDimension",
    "ScaledPolicy",
    "ScalingRequest",
    "Scenario",
    "ScheduledAction",
    "StagedCall",
    "StagedChange",
    "TableAdvice",
    "TableHistory",
    "TargetTracking",
    "UnusedIndex",
    "UseSeries",
    "WeekSchedule",
    "advise",
    "apply_change",
    "capacity_options",
    "capacity_state",
    "describe_live",
    "kept_history",
    "live_history",
    "planned_state",
    "read_history",
    "read_record",
    "replay",
    "reserved_blocks",
    "scaled_state",
    "stage",
    "week_needs",
    "week_schedule",
    "write_history",
]
