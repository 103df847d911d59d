"""The papers' experiments on the real engine: one command each, a picture and a table of it.

Time and sizes differ from the papers', the shapes are what matters. Unless time itself is
compared, results are counted by the position in the input, not by the clock, so that a curve is
the same on any machine. Studies are experiments on plans alone; they need no engine.
"""

from braid.experiment import d_cape, zhu_migrations, zhu_plans, zhu_replanning
from braid.experiment.perform import perform
from braid.experiment.setup import Experiment
from braid.experiment.study import Study
from braid.experiment.zhu_optimizers import STUDIES

EXPERIMENTS = {
    **d_cape.EXPERIMENTS,
    **zhu_plans.EXPERIMENTS,
    **zhu_migrations.EXPERIMENTS,
    **zhu_replanning.EXPERIMENTS,
}

__all__ = ["EXPERIMENTS", "STUDIES", "Experiment", "Study", "perform"]
