"""The learners by name."""

from __future__ import annotations

from agents.mirror_descent import MirrorDescent

LEARNERS = {"mmd": MirrorDescent}
