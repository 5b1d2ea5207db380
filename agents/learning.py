"""The learners by name: one file each, one interface (`MirrorDescent` documents it)."""

from __future__ import annotations

from agents.distillation import Distillation
from agents.fictitious_play import FictitiousPlay
from agents.mirror_descent import MirrorDescent
from agents.ppo import ProximalPolicy
from agents.tabular import TabularMirrorDescent

LEARNERS = {
    "mmd": MirrorDescent,
    "tabular": TabularMirrorDescent,
    "distilled": Distillation,
    "ppo": ProximalPolicy,
    "nfsp": FictitiousPlay,
}
