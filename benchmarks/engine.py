"""The batched rules: moves a second, and how cost grows with the batch and the depth.

A move is one decompose, assign, lie or respond of one debate that is still running; debates that are over are carried
along and not counted. Moves are whole, uniform among the legal ones, drawn from the library's tables. Before each move
the mask of all legal moves is made (`envs.view.legal_moves`: 2^Q assignments or lie sets, or 2 + Q responses, for every
debate) and what the player to move sees: its `View`, or on top of that the flat float32 vectors of the PettingZoo
environment (`Layout.batch`), 76 numbers a debate in the default game.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.measurement import Budget, Curve, Result, Row, Skipped, Target, interleaved, rate_of, ratios
from envs import rules
from envs.config import EnvConfig, ProblemConfig
from envs.engine import step
from envs.game import Game
from envs.observation import Layout
from envs.rules import ASSIGN, CLAIM, DECOMPOSE, LIE, OVER, State
from envs.view import legal_moves, view

Array = Any  # numpy.ndarray or torch.Tensor
DEPTH, DEBATES = 3, 8192
BATCHES = (4096, 8192, 16384, 32768, 65536)
DEPTHS = (1, 2, 4, 8, 16)


def measure(budget: Budget) -> Iterator[Result]:
    """Both array libraries, the growth curves, memory, OpenSpiel beside ours, and a GPU if there is one."""
    import torch

    torch.set_num_threads(1)
    game = new_game(DEPTH)
    measures = {
        "NumPy": rollouts(game, DEBATES, budget),
        "NumPy, flat vectors too": rollouts(game, DEBATES, budget, flat=True),
        "torch": rollouts(game.on(torch), DEBATES, budget),
        "torch, flat vectors too": rollouts(game.on(torch), DEBATES, budget, flat=True),
    }
    kuhn = kuhn_poker(budget)
    if isinstance(kuhn, Skipped):
        yield kuhn
    else:
        measures["OpenSpiel"] = kuhn
    rates = interleaved(measures, budget.repeats)
    fast, slow = Target(at_least=10e6), Target(at_least=20)
    size = f"depth {DEPTH}, width 5, {DEBATES:,} debates"
    for name in list(measures)[:4]:
        yield Row(f"moves, {name} ({size})", rates[name], "moves/s", fast if name.startswith("NumPy") else None)
    if "OpenSpiel" in rates:
        yield Row("moves, OpenSpiel kuhn_poker from Python, chance included", rates["OpenSpiel"], "moves/s")
        yield Row("NumPy / OpenSpiel kuhn_poker", ratios(rates["NumPy"], rates["OpenSpiel"]), "x", slow)
    yield from growth(budget)
    yield Row("peak memory, one batch, NumPy", (peak_megabytes(game, DEBATES),), "MB", note=f"{size}, arrays alone")
    yield from on_gpu(budget)


def new_game(depth: int) -> Game:
    """The default game at another depth."""
    return Game(EnvConfig(depth=depth), ProblemConfig())


def growth(budget: Budget) -> Iterator[Result]:
    """Moves a second by batch size, seconds a debate by depth."""
    game = new_game(DEPTH)
    for flat in (False, True):
        rates = interleaved({str(n): rollouts(game, n, budget, flat) for n in BATCHES}, budget.repeats)
        what = "flat vectors too" if flat else "NumPy"
        for end, pick, target in (("slowest", min, Target(at_least=0.75)), ("fastest", max, Target(at_most=1.25))):
            size = pick(BATCHES, key=lambda n, rates=rates: np.median(rates[str(n)]))
            name = f"{end} of {BATCHES[0]:,} to {BATCHES[-1]:,} debates / {DEBATES:,}, {what}"
            yield Row(name, ratios(rates[str(size)], rates[str(DEBATES)]), "x", target, f"{size:,} debates")
        points = [(n, float(np.median(rates[str(n)]))) for n in BATCHES]
        yield Curve("Moves a second by batch size", "debates", "moves a second", {what: points}, "x")
    costs = interleaved({str(d): seconds_per_debate(new_game(d), budget) for d in DEPTHS}, budget.repeats)
    yield Row(
        f"cost of a debate, largest departure from a line in the depth, {DEPTHS[0]} to {DEPTHS[-1]}",
        tuple(departure_from_line(DEPTHS, one) for one in zip(*costs.values(), strict=True)), "%", Target(at_most=10),
    )  # fmt: skip
    points = [(d, 1e6 * float(np.median(costs[str(d)]))) for d in DEPTHS]
    yield Curve("Cost of a debate by depth", "depth", "microseconds a debate", {"NumPy": points}, "")


def departure_from_line(x: Any, y: Any) -> float:
    """How far, in percent, the worst point is from the line through them that fits best relative to their size."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    fitted = np.polyval(np.polyfit(x, y, 1, w=1 / y), x)
    return float(100 * np.abs(fitted / y - 1).max())


def rollouts(
    game: Game, debates: int, budget: Budget, flat: bool = False, clock: Callable[[], float] = time.process_time
) -> Callable[[], float]:
    """A measure of moves a second."""
    uniform, layout = draws(game), Layout(game) if flat else None
    rollout(game, debates, uniform, layout)
    return lambda: rate_of(lambda: rollout(game, debates, uniform, layout), budget.seconds, clock)


def seconds_per_debate(game: Game, budget: Budget) -> Callable[[], float]:
    """A measure of seconds that one debate of a batch costs."""
    uniform = draws(game)

    def debates() -> int:
        rollout(game, DEBATES, uniform)
        return DEBATES

    return lambda: 1 / rate_of(debates, budget.seconds / 2)


def draws(game: Game) -> Callable[[int, int], Array]:
    """Uniform float64 (n, k) blocks on the game's array library."""
    if game.xp is np:
        rng = np.random.default_rng(0)
        return lambda n, k: rng.random((n, k))
    xp, device = game.xp, game.library.device
    return lambda n, k: xp.rand(n, k, dtype=xp.float64, device=device)


def rollout(game: Game, debates: int, uniform: Callable[[int, int], Array], layout: Layout | None = None) -> int:
    """A batch from beginning to end, masks and observations made before each move; returns the moves."""
    running = []
    state = rules.deal(game, uniform(debates, game.draws))
    while state.phase != OVER:
        seen = view(game, state)
        legal_moves(seen)
        if layout is not None:
            layout.batch(seen)
        running.append(seen.active.sum())
        move = random_move(game, state, uniform(debates, 1)[:, 0])
        state = step(game, state, move, uniform(debates, rules.draws(game, state.phase)))
    return int(sum(running))


def random_move(game: Game, state: State, u: Array) -> Array:
    """Whole legal moves, uniform if u (N,) is."""
    library = game.library
    if state.phase == CLAIM:
        return library.array(2 * u, "int64")
    if state.phase == DECOMPOSE:
        return library.array(u * (state.menu >= 0).sum(-1), "int64")
    a = rules.aggregator(game, state)
    if state.phase == ASSIGN:
        return library.spread(library.bits, library.draw(a, state.claimed, u))
    if state.phase == LIE:
        return library.spread(library.bits, library.draw(a, state.truth, u)) ^ state.assignment
    return library.array(u * (rules.SAMPLE + library.pick(library.widths, a)), "int64")


def peak_megabytes(game: Game, debates: int) -> float:
    """Most memory that the arrays of one batch take at a time (NumPy reports its allocations)."""
    uniform, layout = draws(game), Layout(game)
    rollout(game, debates, uniform, layout)
    tracemalloc.start()
    rollout(game, debates, uniform, layout)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def kuhn_poker(budget: Budget) -> Callable[[], float] | Skipped:
    """Moves a second of OpenSpiel's game with random legal actions, its chance moves counted too."""
    try:
        import pyspiel
    except ImportError:
        return Skipped("OpenSpiel kuhn_poker", "not installed (pip install open_spiel)")
    game, rng = pyspiel.load_game("kuhn_poker"), np.random.default_rng(0)
    picks = iter(())

    def play() -> int:
        nonlocal picks
        moves, state = 0, game.new_initial_state()
        while not state.is_terminal():
            legal = state.legal_actions()
            pick = next(picks, None)
            if pick is None:
                picks = iter(rng.random(10_000).tolist())
                pick = next(picks)
            state.apply_action(legal[int(pick * len(legal))])  # the deal is uniform as well
            moves += 1
        return moves

    return lambda: rate_of(play, budget.seconds)


def on_gpu(budget: Budget) -> Iterator[Result]:
    """The same code on CUDA."""
    import torch

    if not torch.cuda.is_available():
        yield Skipped("moves, torch on a GPU", "torch sees none here: untested")
        return

    def clock() -> float:
        torch.cuda.synchronize()
        return time.perf_counter()

    game = new_game(DEPTH).on(torch, "cuda")
    for debates in (DEBATES, 1 << 20):
        rate = rollouts(game, debates, budget, flat=True, clock=clock)
        values = tuple(rate() for _ in range(budget.repeats))
        yield Row(f"moves, torch on {torch.cuda.get_device_name()}, {debates:,} debates", values, "moves/s")
