"""When to optimize a running query, and when to change its plan; numbers in, decisions out.

    statistics                            what is known of a running query, and how well
    data_driven, memory_driven, refined   triggers: when to look for another plan
    trend                                 what they remember of a figure, and if it rises
    hysteresis                            whether a plan that was found is worth the change
    query_log                             which plan served which statistics
    advisor                               all of it in a row
    accord                                several advisors, who agree on few plans

As with the strategies of `braid.control`, every policy is a frozen object that gives the one to
ask next time. There is no clock: the time is a number in the situation.
"""

from braid.optimize.timing.accord import UnitView, agree_on_plans
from braid.optimize.timing.advisor import OPTIMIZERS, Advice, Advisor
from braid.optimize.timing.contract import Decision, Trigger
from braid.optimize.timing.data_driven import DataDriven
from braid.optimize.timing.hysteresis import Hysteresis
from braid.optimize.timing.memory_driven import MemoryDriven
from braid.optimize.timing.query_log import QueryLog
from braid.optimize.timing.refined import RefinedMemoryDriven
from braid.optimize.timing.statistics import (
    UNKNOWN,
    Certainty,
    DataStatistics,
    Load,
    Measure,
    Situation,
)

TRIGGERS = {
    "data": DataDriven,
    "memory": MemoryDriven,
    "refined": RefinedMemoryDriven,
}
"""By the names that `--replan-when` takes."""

__all__ = [
    "OPTIMIZERS",
    "TRIGGERS",
    "UNKNOWN",
    "Advice",
    "Advisor",
    "Certainty",
    "DataDriven",
    "DataStatistics",
    "Decision",
    "Hysteresis",
    "Load",
    "Measure",
    "MemoryDriven",
    "QueryLog",
    "RefinedMemoryDriven",
    "Situation",
    "Trigger",
    "UnitView",
    "agree_on_plans",
]
