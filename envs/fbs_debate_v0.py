"""Version 0 of the debate environment: `from envs import fbs_debate_v0; env = fbs_debate_v0.env()`.

Importing it also registers the id `fbs_debate_v0` with PettingZoo's registry (PettingZoo 1.27 and newer), after which
`pettingzoo.make("aec", "fbs_debate_v0")` makes one too.
"""

from __future__ import annotations

import pettingzoo

from envs.fbs_debate import env, raw_env

__all__ = ["env", "raw_env"]

if hasattr(pettingzoo, "register") and "fbs_debate-v0" not in pettingzoo.aec_registry:
    pettingzoo.register("aec", "fbs_debate_v0", entry_point="envs.fbs_debate_v0:env")
