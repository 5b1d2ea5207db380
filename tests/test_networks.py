"""The networks' symmetry, and that their policies are distributions over legal moves."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from random_weights import random_weights

from agents.networks import Facts, NetworkInput
from agents.policy import AlicePolicy, BobPolicy, LearnedPlayer
from envs import rules
from envs.config import EnvConfig, ProblemConfig
from envs.engine import debate, draws, step
from envs.game import Game
from envs.rules import OVER, RESPOND
from envs.view import legal_moves, view


def swapped_table(bits: str, order: tuple[int, ...]) -> str:
    """The truth table of z -> f(z[order]), with no use of the package."""
    q = len(order)
    rows = list(itertools.product((0, 1), repeat=q))
    value = dict(zip(rows, bits, strict=True))
    return "".join(value[tuple(row[i] for i in order)] for row in rows)


PAIRS = [
    ("threshold 3,2,2,1,1 >= 5", "threshold 1,3,2,1,2 >= 5", (1, 2, 4, 0, 3)),  # weights move as the sub-claims do
    ("table 01101000", "table " + swapped_table("01101000", (2, 0, 1)), (2, 0, 1)),
]


# Beside these two more than are known by name, so that the written facts are what is looked at.
OTHERS = ["and 2", "or 2", "parity 2", "and 3", "or 3", "parity 3", "majority 3"]


@pytest.mark.parametrize(("first", "second", "order"), PAIRS)
def test_reordering_the_sub_claims_reorders_the_outputs(first, second, order):
    """g(z) = f(z[order]): sub-claim order[j] of g plays the part of sub-claim j of f, for both debaters."""
    game = Game(EnvConfig(rho=5), ProblemConfig(aggregators=[first, second, *OTHERS]), torch)
    q = game.width
    torch.manual_seed(0)
    alice, bob = random_weights(AlicePolicy(game, 32), 1), random_weights(BobPolicy(game, 32), 2)
    z = torch.tensor(list(itertools.product((0, 1), repeat=q)))
    moved = torch.zeros_like(z)
    moved[:, list(order)] = z
    n = len(z)

    def at(aggregator: int, assignment: torch.Tensor) -> NetworkInput:
        ones = torch.ones(n, dtype=torch.long)
        return NetworkInput(ones, ones, ones, ones * aggregator, assignment, torch.full((n, q), -1))

    ours, theirs = bob.responses(at(0, z)), bob.responses(at(1, moved))
    torch.testing.assert_close(theirs[:, :2], ours[:, :2])
    torch.testing.assert_close(theirs[:, 2:][:, list(order)], ours[:, 2:])
    assert ours[:, 2:].std(0).min() > 1e-4  # the assignment matters, so the comparison above says something
    torch.testing.assert_close(alice.lies(at(1, moved))[:, list(order)], alice.lies(at(0, z)))
    torch.testing.assert_close(alice.answers(at(1, moved))[:, list(order)], alice.answers(at(0, z)))


NEGATED = [  # of the same claims: f(not z1, z2, ...), and not f(z1, z2, ...)
    ("threshold 3,2,2,1,1 >= 5", "threshold -3,2,2,1,1 >= 2", "threshold -3,-2,-2,-1,-1 >= -4"),
    ("table 01101000", "table 10000110", "table 10010111"),
]


@pytest.mark.parametrize(("f", "of_negated", "negated"), NEGATED)
def test_among_many_aggregators_negation_changes_nothing_once_all_is_answered(f, of_negated, negated):
    """What can be flipped is the same, whether a sub-claim or the claim is put one way or as its negation."""
    game = Game(EnvConfig(rho=5), ProblemConfig(aggregators=[f, of_negated, negated, *OTHERS]), torch)
    library = game.library
    torch.manual_seed(0)
    alice, bob = random_weights(AlicePolicy(game, 32), 3), random_weights(BobPolicy(game, 32), 4)
    q = library.aggregators[0].width
    z = torch.tensor(list(itertools.product((0, 1), repeat=q)))
    z = torch.cat([z, torch.full((len(z), game.width - q), -1)], 1)
    turned = z.clone()
    turned[:, 0] = 1 - z[:, 0]
    codes = (z[:, :q] @ 2 ** torch.arange(q - 1, -1, -1)) << (game.width - q)

    def at(aggregator: int, z: torch.Tensor, claimed: torch.Tensor, lied: int) -> NetworkInput:
        a = torch.full((len(z),), aggregator)
        return NetworkInput(torch.ones_like(a), claimed, claimed ^ lied, a, z, torch.full_like(z, -1))

    claimed = library.outputs[0, codes].long()
    for policy in (lambda seen: bob.responses(seen)[:, : 2 + q], lambda seen: alice.lies(seen)[:, :q]):
        ours = policy(at(0, z, claimed, 1))
        torch.testing.assert_close(policy(at(1, turned, claimed, 1)), ours)
        torch.testing.assert_close(policy(at(2, z, 1 - claimed, 1)), ours)
        assert ours.std(0).min() > 1e-4  # the assignment matters, so the comparisons above say something
    told = alice.lies(at(0, z, claimed, 1)) - alice.lies(at(0, z, claimed, 0))
    assert told.abs().max() > 1e-4  # and so does whether the claim is true


def test_among_many_aggregators_idle_answers_show_where_their_truth_is_known():
    """majority 5 at 11100 turns by a one alone, so a lie at a zero changes nothing, but is one; and rho is not seen."""
    many = ["majority 5", "and 4", *OTHERS]
    games = [Game(EnvConfig(rho=rho, oracle="random"), ProblemConfig(aggregators=many), torch) for rho in (4, 5)]
    torch.manual_seed(0)
    bob = random_weights(BobPolicy(games[0], 32), 7)
    ones = torch.ones(4, dtype=torch.long)
    z = torch.tensor([[1, 1, 1, 0, 0]]).repeat(4, 1)
    y = torch.tensor([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [0, 1, 1, 0, 0], [-1] * 5])
    seen = NetworkInput(ones, ones, ones, 0 * ones, z, y)
    found = bob.responses(seen)
    for row in (1, 2):
        assert (found[row] - found[0]).abs().max() > 1e-4
    torch.testing.assert_close(found[3, 5], found[3, 6])
    assert (found[3, 2] - found[3, 5]).abs() > 1e-4
    mirrored = NetworkInput(ones, 0 * ones, 0 * ones, 0 * ones, 1 - z, torch.where(y < 0, y, 1 - y))
    torch.testing.assert_close(bob.responses(mirrored), found)  # all negated: truths turn with the answers
    other = BobPolicy(games[1], 32)
    other.load_state_dict(bob.state_dict())
    torch.testing.assert_close(other.responses(seen), found)


def test_interchangeable_sub_claims_of_a_named_aggregator_look_the_same():
    """Swapping sub-claims that the aggregator does not tell apart swaps the outputs; swapping others does not."""
    game = Game(EnvConfig(rho=5), ProblemConfig(aggregators=["or(and 2, parity 2)"]), torch)
    torch.manual_seed(0)
    bob = random_weights(BobPolicy(game, 32), 5)
    z = torch.tensor([[1, 0, 0, 1], [0, 1, 0, 1], [0, 1, 1, 0]])
    ones = torch.ones(3, dtype=torch.long)
    scores = bob.responses(NetworkInput(ones, ones, -ones, ones * 0, z, torch.full((3, 4), -1)))[:, 2:]
    torch.testing.assert_close(scores[1], scores[0][[1, 0, 2, 3]])
    assert (scores[2] - scores[0][[2, 3, 0, 1]]).abs().max() > 1e-3


def test_assignments_are_named_by_the_ones_in_each_class():
    """or(and 2, parity 2) has two classes of two sub-claims, so 3 * 3 names; majority 3 after it 4 more, and the last
    is that of no assignment yet: 14 together. Seven pairs have 3^7, which are too many."""
    library = Game(EnvConfig(rho=5), ProblemConfig(aggregators=["or(and 2, parity 2)", "majority 3"])).library
    facts = Facts(library, 2, 5.0)
    z = torch.tensor(list(itertools.product((0, 1), repeat=4)))

    def names(aggregator: int, z: torch.Tensor) -> list[int]:
        ones = torch.ones(len(z), dtype=torch.long)
        return facts.name(NetworkInput(ones, ones, -ones, aggregator * ones, z, torch.full_like(z, -1))).tolist()

    pairs = dict(zip(map(tuple, z.tolist()), names(0, z), strict=True))
    assert len(set(pairs.values())) == 9
    for (a, b, c, d), name in pairs.items():
        assert name == pairs[b, a, c, d] == pairs[a, b, d, c]
    assert sorted(set(names(1, z[::2]))) == [9, 10, 11, 12]
    assert set(names(1, torch.full_like(z, -1))) == {13} and facts.names == 14
    wide = Game(EnvConfig(), ProblemConfig(aggregators=["threshold 1,1,2,2,3,3,4,4,5,5,6,6,7,7 >= 28"])).library
    assert Facts(wide, 2, 3.0).names == 1


def test_weights_from_a_game_that_numbers_assignments_otherwise_know_none_by_name():
    """Every assignment is then what one not finished was, the last of those numbered where the weights come from."""
    learned, other = (
        BobPolicy(Game(EnvConfig(rho=5), ProblemConfig(aggregators=[aggregator])), 8)
        for aggregator in ("threshold 3,2,2,1,1 >= 5", "majority 3")
    )
    saved = learned.state_dict()
    other.load_state_dict(saved)
    vectors = other.network.names.weight
    torch.testing.assert_close(vectors, learned.network.names.weight[-1:].expand(5, -1))
    assert len(saved["network.names.weight"]) == 2 * 3 * 3 + 1
    alike = BobPolicy(Game(EnvConfig(rho=5), ProblemConfig(aggregators=["threshold 1,3,3,2,2 >= 6"])), 8)
    alike.load_state_dict(saved)  # as many names, for other assignments
    torch.testing.assert_close(alike.network.names.weight, vectors[:1].expand(19, -1))
    many = BobPolicy(
        Game(EnvConfig(rho=5), ProblemConfig(aggregators=["threshold 3,2,2,1,1 >= 5", *OTHERS, "and 4"])), 8
    )
    for ours, theirs in ((many, saved), (learned, many.state_dict())):
        with pytest.raises(RuntimeError, match="by name"):
            ours.load_state_dict(theirs)
    learned.load_state_dict(saved)
    torch.testing.assert_close(learned.network.names.weight, saved["network.names.weight"])


def test_where_truths_are_drawn_a_few_assignments_can_be_scored_as_a_whole():
    """Two of five like sub-claims answered 1, and neither one nor three: flips alike, however biased, give at most
    10 (2/5)^2 (3/5)^3 = 0.35 to that; 300 steps must give it 0.95. Sub-claims that trade places still change nothing.
    """
    game = Game(EnvConfig(rho=5, oracle="random"), ProblemConfig(aggregators=["majority 5"]), torch)
    torch.manual_seed(0)
    alice, ones = AlicePolicy(game, 16), torch.ones(1, dtype=torch.long)
    bits = game.library.bits.float()
    hidden = torch.full((1, 5), -1)
    seen = NetworkInput(ones, 0 * ones, 0 * ones, 0 * ones, hidden, torch.zeros_like(hidden))
    two = bits.sum(-1) == 2
    optimizer = torch.optim.Adam(alice.parameters(), lr=0.01)
    for _ in range(300):
        chances = alice.answer_scores(seen, bits).log_softmax(-1)[0]
        optimizer.zero_grad()
        (-chances[two].logsumexp(0)).backward()
        optimizer.step()
    assert float(chances[two].exp().sum().detach()) > 0.95
    torch.testing.assert_close(chances[two], chances[two].mean().expand(10), rtol=0, atol=1e-4)


@pytest.mark.parametrize("others", [[], OTHERS], ids=["by name", "by table"])
def test_a_swapped_table_is_told_apart(others):
    """Two tables of the same size whose sub-claims differ must not look the same to Bob."""
    game = Game(EnvConfig(rho=5), ProblemConfig(aggregators=["table 00010111", "table 00000111", *others]), torch)
    torch.manual_seed(0)
    bob = random_weights(BobPolicy(game, 32), 6)
    ones = torch.ones(1, dtype=torch.long)
    z, hidden = torch.tensor([[1, 1, 1]]), torch.full((1, 3), -1)
    outputs = [bob.responses(NetworkInput(ones, ones, ones, ones * a, z, hidden)) for a in (0, 1)]
    assert (outputs[0] - outputs[1]).abs().max() > 1e-4


@pytest.mark.parametrize("xp", [np, torch])
@pytest.mark.parametrize(
    ("env", "problem"),
    [
        (EnvConfig(root_claim="free"), ProblemConfig()),
        (EnvConfig(oracle="random", bob_sees="truth"), ProblemConfig(aggregators=["majority 3", "or 4"], menu=3)),
    ],
)
def test_learned_players_play_legal_moves_with_their_probabilities(env, problem, xp):
    """Every probability row sums to 1 on legal moves alone, and nobody ever loses by an illegal move."""
    game = Game(env, problem, xp)
    torch.manual_seed(1)
    policies = random_weights(AlicePolicy(game, 16), 8), random_weights(BobPolicy(game, 16), 9)
    alice, bob = map(LearnedPlayer, policies)
    uniform = draws(0)
    numbers = uniform if xp is np else (lambda n, k: torch.as_tensor(uniform(n, k)))
    state = rules.deal(game, numbers(200, game.draws))
    while state.phase != OVER:
        player = bob if state.phase == RESPOND else alice
        seen = view(game, state)
        chances, legal = np.asarray(player.probabilities(seen)), np.asarray(legal_moves(seen))
        going = np.asarray(seen.active)
        np.testing.assert_allclose(chances[going].sum(-1), 1, atol=1e-6)
        assert chances[going][~legal[going]].max(initial=0) < 1e-12
        state = step(game, state, player.act(seen, numbers(200, 1 + game.width)), numbers(200, game.draws))
    assert not np.isin(np.asarray(state.ending), [rules.ILLEGAL, rules.INCONSISTENT]).any()


def test_learned_moves_follow_the_probabilities():
    """Counts of 20,000 assignments at one claim against the probabilities: chi-square below its 99.9% quantile."""
    from scipy.stats import chi2

    game = Game(EnvConfig(), ProblemConfig(), np)
    torch.manual_seed(2)
    alice = LearnedPlayer(random_weights(AlicePolicy(game, 16), 10))
    state = rules.deal(game, draws(0)(1, game.draws))
    state = state._replace(**{k: np.repeat(v, 20_000, 0) for k, v in state._asdict().items() if hasattr(v, "shape")})
    seen = view(game, state)
    expected = alice.probabilities(seen)[0] * 20_000
    moves = alice.act(seen, draws(3)(20_000, 1 + game.width))
    counts = np.bincount(np.asarray(game.library.code(moves)), minlength=len(expected))
    met = expected > 5
    statistic = ((counts - expected)[met] ** 2 / expected[met]).sum()
    assert statistic < chi2.ppf(0.999, met.sum() - 1)


def test_players_with_random_weights_finish_a_wide_claim_tree(tmp_path):
    """A claim with 21 sub-claims: answers are drawn without listing them, and give the claimed bit whenever one can."""
    import json

    leaves = [{"claim": f"paper {i}", "answer": i % 2} for i in range(21)]
    path = tmp_path / "wide.json"
    path.write_text(json.dumps({"claim": "it holds", "aggregator": "majority", "children": leaves}))
    game = Game(EnvConfig(rho=21), ProblemConfig(path=str(path)), np)
    torch.manual_seed(0)
    policies = random_weights(AlicePolicy(game, 16), 11), random_weights(BobPolicy(game, 16), 12)
    end = debate(game, *map(LearnedPlayer, policies), 300, draws(0))
    assert not np.isin(end.ending, [rules.ILLEGAL, rules.INCONSISTENT]).any()
