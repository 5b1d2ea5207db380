"""The rules of the debate, written once: (state, moves) -> state, for a batch of debates at once.

Every function is pure and takes whole moves: a candidate, an assignment, a set of lies, a response. Randomness is an
argument, `u`: float64 (N, game.draws) uniform in [0, 1). The source runs on NumPy and on torch alike, since it uses
operators, indexing and the array's own namespace. All debates of a batch are in the same phase; those that are over
are carried along unchanged.

One debate (DESIGN section 2; protocol of section 4 in Li, Xun, Chen, Brown-Cohen):

    deal -> [claim] -> { [decompose] -> assign -> [lie] -> respond } per level -> the oracle's answer at a leaf
"""

from __future__ import annotations

from typing import Any, NamedTuple

from envs.game import Game

Array = Any  # numpy.ndarray or torch.Tensor

CLAIM, DECOMPOSE, ASSIGN, LIE, RESPOND, OVER = range(6)
PHASES = ("claim", "decompose", "assign", "lie", "respond", "over")
ALICE_PHASES = (CLAIM, DECOMPOSE, ASSIGN, LIE)
ACCEPT, CHALLENGE, SAMPLE = 0, 1, 2  # a response of SAMPLE + i samples sub-claim i

# How a debate ended.
RUNNING, ORACLE, INCONSISTENT, RIGHT_CHALLENGE, WRONG_CHALLENGE, CONCEDED, ILLEGAL, IMPOSSIBLE = range(8)
ENDINGS = (
    "still running",
    "the oracle answered",
    "Alice's assignment does not give the bit she claimed",
    "Bob showed that the assignment is too sensitive",
    "Bob challenged an assignment that is not too sensitive",
    "Bob accepted the claim",
    "an illegal move",
    "no assignment gives the bit claimed",
)


class State(NamedTuple):
    """A batch of N debates between two moves. Q is the widest aggregator, K the length of a menu.

    Attributes:
        phase: Whose move it is and which, the same for the whole batch.
        path: For each response so far the sub-claim sampled, int64 (N,); -1 where the debate was over.
        node: int64 (N,) place in the claim tree, 0 in a procedural problem.
        level: int64 (N,) of the present claim; 0 is a leaf.
        claimed, truth: int8 (N,) the bit claimed for the present claim, and its real truth.
        root_claimed, root_truth: int8 (N,) the same at the root.
        menu: int64 (N, K) aggregators on offer, -1 where the menu is shorter.
        answers: int8 (N, K, Q) true answers of the sub-claims of every candidate; zeros with the adversarial oracle.
        choice: int64 (N,) the candidate chosen.
        assignment: int8 (N, Q) Alice's answers z to the sub-claims, zeros beyond the width.
        truths: int8 (N, Q) the sub-claims' real truths.
        over: bool (N,). ending: int64 (N,), one of `ENDINGS`.
        reward: float64 (N,) Alice's; Bob's is its negative.
        answer: int8 (N,) what the oracle said, -1 where it was not asked.
    """

    phase: int
    path: tuple[Array, ...]
    node: Array
    level: Array
    claimed: Array
    truth: Array
    root_claimed: Array
    root_truth: Array
    menu: Array
    answers: Array
    choice: Array
    assignment: Array
    truths: Array
    over: Array
    ending: Array
    reward: Array
    answer: Array


def deal(game: Game, u: Array) -> State:
    """N debates at their root, from draws u (N, game.draws)."""
    library, n = game.library, u.shape[0]
    integers, bits = library.zeros((n,), "int64"), library.zeros((n,), "int8")
    false = library.array(u[:, 1] < game.p_false, "int8")
    even = library.array(u[:, 0] < 0.5, "int8")
    truth = even ^ false if game.tree is None else game.tree.answer[integers]
    claimed = bits if game.free_root else truth ^ false
    state = State(
        phase=CLAIM, path=(), node=integers, level=integers + game.depth, claimed=claimed, truth=truth,
        root_claimed=claimed, root_truth=truth, menu=library.zeros((n, game.menu), "int64"),
        answers=library.zeros((n, game.menu, game.width), "int8"), choice=integers,
        assignment=library.zeros((n, game.width), "int8"), truths=library.zeros((n, game.width), "int8"),
        over=bits > 0, ending=integers, reward=library.zeros((n,), "float64"), answer=bits - 1,
    )  # fmt: skip
    return state if game.free_root else _arrive(game, state, u)


def claim(game: Game, state: State, bit: Array, u: Array) -> State:
    """Alice claims `bit` (N,) at the root (root_claim `free`). Anything but 0 or 1 loses."""
    legal = (bit == 0) | (bit == 1)
    claimed = game.library.array(bit * legal, "int8")
    state = _end(game, state, ~legal, ILLEGAL, -1.0)
    return _arrive(game, state._replace(claimed=claimed, root_claimed=claimed), u)


def decompose(game: Game, state: State, k: Array) -> State:
    """Alice picks candidate k (N,) of the menu; one that is not on it loses."""
    inside = (k >= 0) & (k < game.menu)
    k = k * inside
    legal = inside & (state.menu[game.rows(k), k] >= 0)
    return _end(game, state, ~legal, ILLEGAL, -1.0, phase=ASSIGN, choice=k)


def assign(game: Game, state: State, z: Array, u: Array) -> State:
    """Alice answers the sub-claims by z (N, Q), zeros beyond the width; f(z) must be the claimed bit, else she loses.

    With probability `tremble` a legal z is replaced by a uniform one with the same output.
    """
    library, a = game.library, aggregator(game, state)
    z = library.by_sub_claim(z)
    bits = z == 1
    if library.ragged:
        bits = bits & ~library.spread(game.beyond, a)
    legal = (bits == z).all(-1)
    z = library.array(bits, "int8")
    sound = legal & (library.output(a, z) == state.claimed)
    if game.tremble > 0:
        trembles = (u[:, 0] < game.tremble) & sound
        drawn = library.draw(a, state.claimed, u[:, 1])
        z = select(trembles[:, None], library.spread(library.bits, drawn), z)
    truths = z if game.adversarial else state.answers[game.rows(a), state.choice]
    phase = LIE if game.adversarial else RESPOND
    ending = select(legal, INCONSISTENT, ILLEGAL)
    return _end(game, state, ~sound, ending, -1.0, phase=phase, assignment=z, truths=truths)


def lie(game: Game, state: State, lies: Array) -> State:
    """Alice settles which sub-claims are false: lies (N, Q), nonzero where z is wrong; hidden from Bob.

    The aggregator of the truths, z with the lies flipped, must be the claim's real truth, else she loses.
    """
    library, a = game.library, aggregator(game, state)
    false = library.by_sub_claim(lies != 0)
    truths = state.assignment ^ false
    legal = library.output(a, truths) == state.truth
    if library.ragged:
        legal = legal & ~(false & library.spread(game.beyond, a)).any(-1)
    return _end(game, state, ~legal, ILLEGAL, -1.0, phase=RESPOND, truths=truths)


def respond(game: Game, state: State, response: Array, u: Array) -> State:
    """Bob accepts (0), challenges (1) or samples sub-claim i (2 + i); response (N,).

    A sampled sub-claim becomes the present claim, or at a leaf the oracle is asked and the debate ends.
    """
    xp, library, a = game.xp, game.library, aggregator(game, state)
    i = response - SAMPLE
    samples = (i >= 0) & (i < library.pick(library.widths, a))
    i = i * samples
    challenges = response == CHALLENGE
    right = challenges & ~library.stable(a, state.assignment, challenges & ~state.over)
    ending = select(challenges, WRONG_CHALLENGE, select(response == ACCEPT, CONCEDED, ILLEGAL))
    ending = select(right, RIGHT_CHALLENGE, ending)
    reward = 1.0 - 2.0 * right
    moves = samples & ~state.over
    if game.tree is None:
        node, level = state.node, state.level - moves * 1
    else:
        node = xp.where(moves, game.tree.first_child[state.node] + i, state.node)
        level = xp.where(moves, game.tree.level[node], state.level)
    state = _end(
        game, state, ~samples, ending, reward,
        path=(*state.path, select(moves, i, -1)),
        node=node,
        level=level,
        claimed=select(moves, library.entry(state.assignment, i), state.claimed),
        truth=select(moves, library.entry(state.truths, i), state.truth),
    )  # fmt: skip
    return _arrive(game, state, u)


def select(condition: Array, x: Array | int, y: Array | int) -> Array:
    """Integers x where the condition holds and y elsewhere, without the branches that conditions at random mislead."""
    return condition * (x - y) + y


def draws(game: Game, phase: int) -> int:
    """How many of the uniform numbers in u a move of this phase looks at; the first ones, at most `game.draws`."""
    if phase in (DECOMPOSE, LIE):
        return 0
    if phase == ASSIGN:
        return 2 if game.tremble > 0 else 0
    return game.draws if game.menus_vary else int(game.noise > 0)


def forfeit(game: Game, state: State) -> State:
    """Whoever is to move has made an illegal move, one that is no whole move at all, and loses every running debate."""
    reward = 1.0 if state.phase == RESPOND else -1.0
    return _end(game, state, ~state.over, ILLEGAL, reward, phase=OVER)


def aggregator(game: Game, state: State) -> Array:
    """int64 (N,): the aggregator of the candidate chosen."""
    chosen = state.menu[:, 0] if game.menu == 1 else state.menu[game.rows(state.choice), state.choice]
    return chosen if game.tree is None else game.xp.where(chosen < 0, 0, chosen)


def _arrive(game: Game, state: State, u: Array) -> State:
    """The debate has reached the claim in `state`: ask the oracle at a leaf, lay out the menu elsewhere."""
    if len(state.path) == game.depth:
        return _ask_oracle(game, state, u, phase=OVER)
    phase = DECOMPOSE if game.menu > 1 else ASSIGN
    if game.tree is None:
        menu, answers = game.deal_menu(state.claimed if game.adversarial else state.truth, u[:, 2:])
        answers = state.answers if answers is None else answers
        return state._replace(phase=phase, menu=menu, answers=answers)
    menu, answers = game.tree_menu(state.node)
    state = _ask_oracle(game, state, u, menu=menu, answers=answers)
    claimed = game.library.array(state.claimed, "int64")
    impossible = ~game.library.producible[aggregator(game, state), claimed]
    return _end(game, state, impossible, IMPOSSIBLE, -1.0, phase=phase)


def _ask_oracle(game: Game, state: State, u: Array, **changes: Any) -> State:
    """End the debates that have reached a leaf: the oracle says its truth, or with probability `noise` the opposite."""
    leaf = (state.level == 0) & ~state.over
    said = state.truth ^ (u[:, 0] < game.noise) if game.noise else state.truth
    reward = state.reward + game.query_cost + (2 * (said == state.claimed) - 1)  # float64 on both libraries
    return _end(game, state, leaf, ORACLE, reward, answer=select(leaf, said, state.answer), **changes)


def _end(game: Game, state: State, ends: Array, ending: Array | int, reward: Array | float, **changes: Any) -> State:
    """End the running debates where `ends` (N,) holds, with Alice's reward, and make the other changes.

    A debate ends once; until then its reward and its ending are 0.
    """
    ends = ends & ~state.over
    return state._replace(
        over=state.over | ends,
        reward=state.reward + ends * reward,
        ending=state.ending + ends * ending,
        **changes,
    )
