"""Our default learner beside OpenSpiel's neural ones, on the same game and machine (extra `interop`).

    python -m benchmarks.neural_peers [--only NAME ...] [--seconds 600] [--seed 0] [--json PATH]

How long until Bob's mean catch ratio (`agents.measures`) is 0.9? The game is the default one at depth 1, a weighted
threshold over five sub-claims, with trembles, so that every learner meets every assignment. Ours plays by the batch and
looks ahead through the rules; OpenSpiel's NFSP, policy gradient (A2C) and PPO learn from sampled rewards of the
exported game (`envs.open_spiel_game`), which is to say that they are told less. NFSP's Bob is its average policy, ours
the averaged copy, the others' the last iterate. Time is the clock of the wall, measuring left out; a learner is stopped
once it is there, and at the limit.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
import time
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from tqdm import tqdm

from agents.learner_config import LearnerConfig
from agents.learning import LEARNERS
from agents.measures import catch_ratios
from agents.positions import policy, positions
from benchmarks.runs import choice, markdown, options, parsed
from envs.config import EnvConfig, ProblemConfig
from envs.game import Game
from fbs.command import give

ENV, PROBLEM = EnvConfig(depth=1), ProblemConfig()
RATIO = 0.9
EVERY = 1.0  # seconds of learning between two measurements
DEBATES = 64  # of a peer, between two looks at the clock


class Learner(Protocol):
    """A pair that learns.

    Attributes:
        debates: How many it has played. finished: Whether it has come to its planned end.
    """

    debates: int
    finished: bool

    def advance(self) -> None:
        """Learn for a short while."""

    def bob(self) -> np.ndarray:
        """float64 (1, R, 2 + Q): the chances of Bob's responses, as `agents.positions.policy` has them."""


class Ours:
    """The default learner, with its default configuration."""

    def __init__(self, seed: int) -> None:
        self._config = LearnerConfig()
        self._learner = LEARNERS["mmd"](Game(ENV, PROBLEM, torch), self._config, seed)
        self._game = Game(ENV, PROBLEM).evaluation()

    @property
    def debates(self) -> int:
        return self._learner.iteration * self._config.batch

    @property
    def finished(self) -> bool:
        return self._learner.iteration == self._config.iterations

    def advance(self) -> None:
        self._learner.step()

    def bob(self) -> np.ndarray:
        return policy(self._game, self._learner.players()["bob"])


class Peer:
    """A learner of OpenSpiel, an agent for each player, on the exported game.

    Attributes:
        agents: Alice's and Bob's. environments: Where they meet.
        asked: What Bob is asked at each position, as a time step of OpenSpiel.
    """

    agents: list[Any]
    finished = False

    def __init__(self, seed: int, environments: int = 1) -> None:
        from open_spiel.python.rl_environment import ChanceEventSampler, Environment

        from envs.open_spiel_game import export

        np.random.seed(seed)
        torch.manual_seed(seed)
        self.exported = export(ENV, PROBLEM, tremble=ENV.tremble)
        self.environments = [
            Environment(self.exported, chance_event_sampler=ChanceEventSampler(seed + number))
            for number in range(environments)
        ]
        self.inputs = self.exported.information_state_tensor_size()
        self.moves = self.exported.num_distinct_actions()
        self.debates = 0
        self.asked = self._questions()

    def _questions(self) -> list[Any]:
        """Debates of one level, each led to Bob's turn: by its assignment, and then any lie, as he sees none."""
        from open_spiel.python.rl_environment import StepType, TimeStep

        tree, found = self.exported.tree, {}
        for deal in range(len(tree.root.chances)):
            start = tree.child(tree.root, deal)
            for number in start.legal:
                answered = tree.child(tree.child(start, number), 0)  # the outcome 0 is that she does not tremble
                asked = tree.child(answered, answered.legal[0])
                found[int(tree.game.library.code(asked.seen.assignment)[0])] = asked
        steps = []
        for code in range(len(positions(tree.game).claimed)):
            known, legal = found[code].known(1), list(found[code].legal)
            tensor = np.zeros((tree.moments, tree.size), np.float32)
            tensor[: len(known)] = [moment.features for moment in known]
            seen = {"info_state": [None, tensor.ravel()], "legal_actions": [None, legal], "current_player": 1}
            steps.append(TimeStep(seen, None, None, StepType.MID))
        return steps

    def bob(self) -> np.ndarray:
        rows = np.array([np.asarray(self.chances(step), np.float64) for step in self.asked])
        return rows[None, :, : 2 + self.exported.tree.game.width]

    def chances(self, asked: Any) -> Any:
        """Bob's chance of each move."""
        return self.agents[1].step(asked, is_evaluation=True).probs

    def advance(self) -> None:
        (environment,) = self.environments
        for _ in range(DEBATES):
            step = environment.reset()
            while not step.last():
                step = environment.step([self.agents[step.current_player()].step(step).action])
            for agent in self.agents:
                agent.step(step)
        self.debates += DEBATES


class FictitiousSelfPlay(Peer):
    """OpenSpiel's NFSP, with the settings of its own examples (`nfsp_kuhn_pytorch`, `nfsp_leduc_pytorch`)."""

    def __init__(self, seed: int) -> None:
        from open_spiel.python.pytorch.nfsp import MODE, NFSP

        super().__init__(seed)
        self._average = MODE.AVERAGE_POLICY
        self.agents = [
            NFSP(
                player, self.inputs, self.moves, [128], reservoir_buffer_capacity=2_000_000, anticipatory_param=0.1,
                replay_buffer_capacity=200_000, epsilon_start=0.06, epsilon_end=0.001,
                epsilon_decay_duration=3_000_000, seed=seed + player,
            )
            for player in (0, 1)
        ]  # fmt: skip

    def chances(self, asked: Any) -> Any:
        with self.agents[1].temp_mode_as(self._average):
            return super().chances(asked)


class PolicyGradient(Peer):
    """OpenSpiel's advantage actor-critic, with the settings of its own example (`catch_pytorch_policy_gradient`)."""

    def __init__(self, seed: int) -> None:
        from open_spiel.python.pytorch import policy_gradient

        super().__init__(seed)
        self.agents = [
            policy_gradient.PolicyGradient(
                player, self.inputs, self.moves, "a2c", hidden_layers_sizes=[128, 128], batch_size=128,
                entropy_cost=0.01, critic_learning_rate=0.1, pi_learning_rate=0.1, num_critic_before_pi=3,
            )
            for player in (0, 1)
        ]  # fmt: skip


class ProximalPolicy(Peer):
    """OpenSpiel's PPO for each player, 64 debates side by side, without a discount; the rest by its defaults.

    Args:
        entropy, learning_rate: Two of them, its defaults.
    """

    SIDE_BY_SIDE, ROUNDS = 64, 16  # debates at a time, and times between two updates

    def __init__(self, seed: int, entropy: float = 0.01, learning_rate: float = 2.5e-4) -> None:
        from open_spiel.python.pytorch.ppo import PPO, PPOAgent

        super().__init__(seed, self.SIDE_BY_SIDE)
        self.agents = [
            PPO(
                (self.inputs,), self.moves, 2, player, num_envs=self.SIDE_BY_SIDE, agent_fn=PPOAgent, gamma=1.0,
                steps_per_batch=self.ROUNDS * (2 if player == 0 else 1), entropy_coef=entropy,
                learning_rate=learning_rate,
            )
            for player in (0, 1)
        ]  # fmt: skip

    def chances(self, asked: Any) -> Any:
        return self.agents[1].step([asked], is_evaluation=True)[0].probs

    def advance(self) -> None:
        for _ in range(self.ROUNDS):
            steps = self._debate()
        for agent in self.agents:
            agent.learn(steps)
        self.debates += self.ROUNDS * self.SIDE_BY_SIDE

    def _debate(self) -> list[Any]:
        """One debate in each environment; all are in the same phase. Rewards come at the end."""
        steps, waiting = [environment.reset() for environment in self.environments], set()
        nothing, going_on, over = ([x] * self.SIDE_BY_SIDE for x in (0.0, False, True))
        while not steps[0].last():
            player = steps[0].current_player()
            if player in waiting:
                self.agents[player].post_step(nothing, going_on)
            waiting.add(player)
            moves = self.agents[player].step(steps)
            steps = [e.step([move.action]) for e, move in zip(self.environments, moves, strict=True)]
        for player in waiting:
            self.agents[player].post_step([step.rewards[player] for step in steps], over)
        return steps


LEARNERS_MEASURED = {
    "ours": Ours,
    "OpenSpiel NFSP": FictitiousSelfPlay,
    "OpenSpiel A2C": PolicyGradient,
    "OpenSpiel PPO": ProximalPolicy,
    "OpenSpiel PPO, more entropy": partial(ProximalPolicy, entropy=0.1, learning_rate=1e-3),
}


def race(name: str, seconds: float, seed: int) -> dict[str, Any]:
    """Let one learner learn until its Bob is there, or the time is over."""
    torch.set_num_threads(1)
    game = Game(ENV, PROBLEM).evaluation()
    learner: Learner = LEARNERS_MEASURED[name](seed)
    spent, curve = 0.0, []
    while spent < seconds and not learner.finished:
        started = time.perf_counter()
        while True:
            learner.advance()
            passed = time.perf_counter() - started
            if passed >= EVERY or spent + passed >= seconds or learner.finished:
                break
        spent += passed
        ratios = catch_ratios(game, learner.bob())
        curve.append(
            {"seconds": spent, "debates": learner.debates, "mean": float(ratios.mean()), "min": float(ratios.min())}
        )
        if curve[-1]["mean"] >= RATIO:
            break
    best = max(curve, key=lambda point: point["mean"])
    return {
        "name": name,
        "seed": seed,
        "limit": seconds,
        "reached": best["mean"] >= RATIO,
        "best": best,
        "curve": curve,
    }


def printed(runs: list[dict[str, Any]]) -> str:
    """The table, in Markdown."""
    columns = [
        "learner", f"seconds to a mean catch ratio of {RATIO}", "debates", "best mean ratio (after)", "mean at the end",
        "debates a second",
    ]  # fmt: skip
    rows = []
    for run in runs:
        best, last = run["best"], run["curve"][-1]
        reached = f"{best['seconds']:.1f}" if run["reached"] else f"not reached within {last['seconds']:.0f} s"
        rows.append([
            run["name"], reached, f"{last['debates']:,}", f"{best['mean']:.3f} ({best['seconds']:.0f} s)",
            f"{last['mean']:.3f}", f"{last['debates'] / last['seconds']:,.0f}",
        ])  # fmt: skip
    return markdown(columns, rows)


def main() -> int:
    parser = options(__doc__, seeds=False)
    choice(parser, "--only", LEARNERS_MEASURED)
    parser.add_argument("--seconds", type=float, default=600.0, help="limit for each learner")
    parser.add_argument("--seed", type=int, default=0)
    given = parsed(parser)
    runs = []
    for name in tqdm(given.only, unit="learner"):
        runs.append(race(name, given.seconds, given.seed))
    give(runs, printed(runs), given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
