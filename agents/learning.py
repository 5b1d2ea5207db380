"""The learners by name: one file each, one interface (`MirrorDescent` documents it)."""

from __future__ import annotations

from agents.mirror_descent import MirrorDescent
from agents.ppo import ProximalPolicy

LEARNERS = {"mmd": MirrorDescent, "ppo": ProximalPolicy}
