"""The debate as a PettingZoo environment: one agent, one action at a time.

The rules move whole assignments; here Alice says one bit a step. While she does, only a prefix is kept, and the rules
are asked once she has said the last bit. What a step may be is the action mask: an agent that keeps to it never makes
an illegal move, and one that does not loses. See docs/environment.md for actions, observations and rewards.
"""

from __future__ import annotations

from dataclasses import fields
from operator import index
from os import PathLike, fspath
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import EzPickle
from pettingzoo import AECEnv
from pettingzoo.utils.wrappers import OrderEnforcingWrapper

from envs import rules
from envs.claim_tree import ClaimTree
from envs.completion import FLIPPED, Completions, Prefix
from envs.config import ConfigError, EnvConfig, ProblemConfig
from envs.engine import query_book, step
from envs.game import Game
from envs.observation import SIGN, Layout
from envs.picture import picture
from envs.render import transcript
from envs.rules import ASSIGN, ENDINGS, LIE, RESPOND, State
from envs.view import View, legal_moves, view

ALICE, BOB = "alice_0", "bob_0"
OTHER = {ALICE: BOB, BOB: ALICE}
RENDER_MODES = ("human", "ansi", "rgb_array")

Problem = ProblemConfig | ClaimTree | dict[str, Any] | str | PathLike[str] | None


def env(**kwargs: Any) -> OrderEnforcingWrapper:
    """The environment as it is meant to be used; the arguments are those of `raw_env`."""
    return OrderEnforcingWrapper(raw_env(**kwargs))


class raw_env(AECEnv, EzPickle):
    """A debate between `alice_0` and `bob_0`. A copy or a pickle goes on where the original stood.

    Args:
        problem: What is debated: a `ProblemConfig`, a dictionary of its fields, or the path of a claim tree or crowd
            CSV. By default `ProblemConfig()`.
        render_mode: `ansi`: `render` returns a transcript. `rgb_array`: it returns a picture. `human`: the transcript
            is printed as the debate goes on.
        **rules_config: Fields of `EnvConfig`, such as `depth=3`.

    Raises:
        ConfigError: an unknown key or a value that cannot be played; the message names the key.
        ProblemError: the file of the problem is malformed.
    """

    metadata = {
        "name": "fbs_debate_v0",
        "render_modes": list(RENDER_MODES),
        "is_parallelizable": False,
        "render_fps": 1,
    }

    def __init__(self, problem: Problem = None, render_mode: str | None = None, **rules_config: Any) -> None:
        EzPickle.__init__(self, problem, render_mode, **rules_config)
        AECEnv.__init__(self)
        if render_mode not in (None, *RENDER_MODES):
            raise ConfigError(f"render_mode is {render_mode!r}; expected one of {', '.join(RENDER_MODES)}")
        self.render_mode = render_mode
        self.game = Game(_from_keys(EnvConfig, "env", rules_config), _problem(problem))
        self.layout = Layout(self.game)
        self.possible_agents = [ALICE, BOB]
        self._completions = Completions(self.game.library)
        self._make_spaces()
        self._no_draws = np.zeros((1, self.game.draws))
        self._fixed = frozenset(vars(self))  # what a copy makes anew; the rest is the debate
        self.agents: list[str] = []
        self._rng: np.random.Generator | None = None

    def _make_spaces(self) -> None:
        game, layout = self.game, self.layout
        actions = {ALICE: max(2, game.menu), BOB: rules.SAMPLE + game.width}
        self.action_spaces = {agent: spaces.Discrete(n) for agent, n in actions.items()}
        self.observation_spaces = {
            agent: spaces.Dict(
                {
                    "observation": spaces.Box(layout.low, np.ones_like(layout.low)),
                    "action_mask": spaces.Box(0, 1, (n,), np.int8),
                }
            )
            for agent, n in actions.items()
        }
        self.state_space = spaces.Box(layout.state_low, -layout.state_low)
        self._nothing = {agent: np.zeros(n, np.int8) for agent, n in actions.items()}
        self._masks: dict[tuple[int, int | None], np.ndarray] = {}
        bits = np.array([[0, 0], [1, 0], [0, 1], [1, 1]], np.int8)
        self._bit_masks = tuple(np.pad(bits, ((0, 0), (0, actions[ALICE] - 2))))

    def observation_space(self, agent: str) -> spaces.Space:
        return self.observation_spaces[agent]

    def action_space(self, agent: str) -> spaces.Space:
        return self.action_spaces[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Start a debate. Without a seed the stream of the last one goes on; `options` are not used."""
        if seed is not None or self._rng is None:
            self._rng = np.random.default_rng(seed)
        self.agents = self.possible_agents[:]
        self.agent_selection = ALICE
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {"action_mask": mask.copy()} for agent, mask in self._nothing.items()}
        self._observation = np.zeros(self.layout.size, np.float32)
        self._history: list[State] = []
        self._printed = 0
        self._enter(rules.deal(self.game, self._draw()))

    def step(self, action: Any) -> None:
        """Make the selected agent's move; an illegal one ends the debate and loses it. A finished agent takes None."""
        if self.terminations[self.agent_selection]:
            self._was_dead_step(action)
            return
        try:
            move = index(action)
            legal = 0 <= move < len(self._mask) and self._mask[move]
        except TypeError:
            legal = False
        if not legal:
            self._enter(rules.forfeit(self.game, self._state))
        elif self._prefix is not None:
            self._say(move)
        else:
            self._move(np.array([move]))

    def observe(self, agent: str) -> dict[str, np.ndarray]:
        """What the agent observes; all zeros unless it is to move."""
        if agent == self.agent_selection and not self.terminations[agent]:
            return {"observation": self._observation.copy(), "action_mask": self._mask.copy()}
        return {"observation": np.zeros(self.layout.size, np.float32), "action_mask": self._nothing[agent].copy()}

    def state(self) -> np.ndarray:
        """All there is to know, lies included, as float32; the layout is in docs/environment.md."""
        out = np.zeros(self.layout.state_size, np.float32)
        self.layout.state(out, self._state)
        if self._prefix is not None:
            out[: self.layout.size] = self._observation  # nothing is hidden from Alice, and it has her unfinished bits
        return out

    def render(self) -> str | np.ndarray | None:
        """A transcript or a picture, as `render_mode` says."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() needs a render_mode: env(render_mode='ansi') or 'rgb_array'")
        elif self.render_mode == "ansi":
            return transcript(self.game, self._history, self._bits)
        elif self.render_mode == "rgb_array":
            return picture(self.game, self._history, self._bits)
        else:
            lines = transcript(self.game, self._history).splitlines()
            for line in lines[self._printed :]:
                print(line)
            self._printed = len(lines)
        return None

    def close(self) -> None:
        """Nothing is held open."""

    def _draw(self) -> np.ndarray:
        return self._rng.random((1, self.game.draws))

    def _move(self, move: np.ndarray) -> None:
        """Let the rules take a whole move."""
        u = self._draw() if rules.draws(self.game, self._state.phase) else self._no_draws
        self._enter(step(self.game, self._state, move, u))

    def _enter(self, state: State) -> None:
        """The rules have moved: show the next move's observation and mask, or the end."""
        self._state, self._prefix, self._bits = state, None, []
        self._history.append(state)
        if state.over[0]:
            self._finish()
        else:
            seen = view(self.game, state)
            self.layout.write(self._observation, seen)
            self._select(BOB if state.phase == RESPOND else ALICE)
            if state.phase in (ASSIGN, LIE):
                self._start_saying(seen)
            else:
                self._mask = self._whole_mask(seen)
                self.infos[self.agent_selection] = {"action_mask": self._mask.copy()}
        if self.render_mode == "human":
            self.render()

    def _whole_mask(self, seen: View) -> np.ndarray:
        """The mask of a move that is one action. Menus are full, so it depends on the aggregator at most."""
        key = (seen.phase, None if seen.aggregator is None else seen.aggregator.item())
        if key not in self._masks:
            self._masks[key] = self._nothing[BOB if seen.phase == RESPOND else ALICE].copy()
            legal = legal_moves(seen)[0]
            self._masks[key][: len(legal)] = legal
        return self._masks[key]

    def _select(self, agent: str) -> None:
        if agent != self.agent_selection:
            self.infos[self.agent_selection] = {"action_mask": self._nothing[self.agent_selection].copy()}
            self.agent_selection = agent

    def _start_saying(self, seen: View) -> None:
        """Alice is to say the bits of an assignment or of a lie set."""
        a, lying = seen.aggregator.item(), seen.phase == LIE
        self._width = self.game.library.aggregators[a].width
        self._flips = seen.assignment[0].tolist() if lying else [0] * self._width
        self._written = self.layout.lies if lying else self.layout.assignment
        self._prefix: Prefix | None = self._completions.start(a, (seen.truth if lying else seen.claimed).item())
        self._ask(0, self._prefix.allowed())

    def _say(self, bit: int) -> None:
        """Alice says the next bit; after the last one the rules take the whole move."""
        place = len(self._bits)
        self._bits.append(bit)
        if place + 1 < self._width:
            self._observation[self._written + place] = SIGN[bit]
            self._observation[self.layout.position + place] = 0
            self._ask(place + 1, self._prefix.push(bit ^ self._flips[place]))
        else:
            move = np.zeros((1, self.game.width), np.int8)
            move[0, : self._width] = self._bits
            self._move(move)

    def _ask(self, place: int, allowed: int) -> None:
        """Show which sub-claim's bit comes next, and which bits it may be."""
        self._observation[self.layout.position + place] = 1
        self._mask = self._bit_masks[FLIPPED[allowed] if self._flips[place] else allowed]
        self.infos[ALICE] = {"action_mask": self._mask.copy()}

    def _finish(self) -> None:
        """All rewards fall at the end, so nothing has accumulated before."""
        reward = float(self._state.reward[0])
        self.rewards = {ALICE: reward, BOB: -reward}
        self._cumulative_rewards = dict(self.rewards)
        self.terminations = dict.fromkeys(self.agents, True)
        self.infos = {
            agent: {
                "action_mask": mask.copy(),
                "query_book": query_book(self._state) if self._state.answer[0] >= 0 else [],
                "ending": ENDINGS[self._state.ending[0]],
            }
            for agent, mask in self._nothing.items()
        }
        self.agent_selection = OTHER[self.agent_selection]

    def __getstate__(self) -> dict[str, Any]:
        debate = {name: value for name, value in vars(self).items() if name not in self._fixed and name != "_fixed"}
        return {**EzPickle.__getstate__(self), "debate": debate}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        EzPickle.__setstate__(self, saved)
        vars(self).update(saved["debate"])


def _from_keys(config: type, name: str, values: dict[str, Any]) -> Any:
    """A config dataclass from a dictionary, unknown keys refused."""
    known = [field.name for field in fields(config)]
    for key in values:
        if key not in known:
            raise ConfigError(f"{name}.{key}: there is no such key; expected one of {', '.join(known)}")
    return config(**values)


def _problem(problem: Problem) -> ProblemConfig | ClaimTree:
    if problem is None:
        return ProblemConfig()
    if isinstance(problem, ProblemConfig | ClaimTree):
        return problem
    if isinstance(problem, dict):
        return _from_keys(ProblemConfig, "problem", problem)
    if isinstance(problem, str | PathLike):
        return ProblemConfig(path=fspath(problem))
    raise ConfigError(f"problem is {problem!r}; expected a ProblemConfig, a dictionary of its fields or a path")
