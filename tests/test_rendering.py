"""Debates as text and as pictures."""

from __future__ import annotations

import json
import re
import warnings
from typing import Any

import numpy as np
import pytest
from configurations import FOOTBRIDGE, legal_action, play

from envs import fbs_debate_v0


class TestRendering:
    def finished(self, **kwargs: Any) -> Any:
        """The debate of the README: Alice says that all is well, Bob picks the bolts and among them S3."""
        env = fbs_debate_v0.env(problem=FOOTBRIDGE, rho=9, p_false=1, **kwargs)
        env.reset(seed=0)
        for action in (1, 1, 1, 1, 1, 4, *[1] * 8, 8):
            env.step(action)
        return env

    def test_a_transcript_can_be_read(self) -> None:
        text = self.finished(render_mode="ansi").render()
        for line in (
            "The root claim, level 3: The Mill Lane footbridge can stay open this winter",
            "  Alice claims that it is true (1).",
            "  It is decided by 'threshold 3,2,2,1,1 >= 7'. She answers 1 1 1 1 1 (sensitivity 3, stable).",
            "    4  The divers found no scour at either pier: 1",
            "  Bob samples sub-claim 2.",
            "  It is decided by 'and'. She answers 1 1 1 1 1 1 1 1 (sensitivity 8, stable).",
            "Claim 2/6, level 0: Bolt S3 was tightened to 320 Nm (the log has no entry for it)",
            "  The oracle is asked and answers 0.",
            "Bob wins: the oracle contradicted Alice.",
            "In truth the root claim was false.",
            "  Below the root claim Alice lied about 2, 3.",
            "  Below claim 2 Alice lied about 6.",
        ):
            assert line in text.splitlines()

    def test_the_unfinished_assignment_is_shown(self) -> None:
        env = fbs_debate_v0.env(render_mode="ansi")
        env.reset(seed=0)
        env.step(1), env.step(0)
        assert env.render().splitlines()[-1] == "  Alice is answering: 1 0 ..."

    def test_people_get_the_lines_as_they_come(self, capsys: pytest.CaptureFixture) -> None:
        self.finished(render_mode="human")
        assert capsys.readouterr().out == self.finished(render_mode="ansi").render()

    @pytest.mark.parametrize(
        ("text", "shown"),
        [
            ("red \x1b[31m\a", r"red \x1b[31m\x07"),
            ("two\nlines\tand a tab\n", r"two\nlines\tand a tab"),
            ("\x9b31m \u2028 \x7f", r"\x9b31m \u2028 \x7f"),
            ("a \u202eb", r"a \u202eb"),
            ("Ça \N{NO-BREAK SPACE}\N{SNOWMAN} می‌خواهم 日本", "Ça \N{NO-BREAK SPACE}\N{SNOWMAN} می‌خواهم 日本"),
            ("$\\frac{$ or $5", "$\\frac{$ or $5"),
            ("$\\frac{$", "$\\frac{$"),
        ],
    )
    def test_other_peoples_text_does_no_harm(self, text: str, shown: str, tmp_path: Any) -> None:
        """What would move a terminal's cursor is written out; what matplotlib would read as a formula is drawn."""
        leaf = {"claim": text, "answer": 1}
        (tmp_path / "tree.json").write_text(json.dumps({"claim": text, "aggregator": "and", "children": [leaf] * 2}))
        for mode in ("ansi", "rgb_array"):
            env = fbs_debate_v0.env(problem=str(tmp_path / "tree.json"), rho=9, p_false=0, render_mode=mode)
            env.reset(seed=0)
            for action in (1, 1, 2):
                env.step(action)
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Glyph")  # the font need not have every letter
                rendered = env.render()
            if mode == "ansi":
                assert f"The root claim, level 1: {shown}" in rendered.split("\n")
                assert f"    0  {shown}: 1" in rendered.split("\n")

    def test_every_ending_is_told(self) -> None:
        env = fbs_debate_v0.env(render_mode="ansi", rho=2, root_claim="free")
        rng, seen = np.random.default_rng(0), set()
        env.reset(seed=0)
        while len(seen) < 7:
            env.reset()
            play(env, rng, illegal=0.02)
            lines = env.render().splitlines()
            seen |= {line for line in lines if re.match("(Alice|Bob) wins", line)}
        assert seen == {
            "Alice wins: Bob accepted the claim.",
            "Alice wins: Bob made an illegal move.",
            "Bob wins: Alice made an illegal move.",
            "Alice wins: the oracle agreed with Alice.",
            "Bob wins: the oracle contradicted Alice.",
            "Bob wins: Bob showed that the assignment is too sensitive.",
            "Alice wins: Bob challenged an assignment that is not too sensitive.",
        }

    def test_a_picture_has_one_size_and_changes(self) -> None:
        env, rng = fbs_debate_v0.env(render_mode="rgb_array", problem=FOOTBRIDGE), np.random.default_rng(0)
        env.reset(seed=0)
        pictures = [env.render()]
        for _ in range(4):
            for _ in range(4):
                if not env.terminations[env.agent_selection]:
                    env.step(legal_action(env.observe(env.agent_selection)["action_mask"], rng))
            pictures.append(env.render())
        assert len({picture.shape for picture in pictures}) == 1
        assert len({picture.tobytes() for picture in pictures}) >= 4

    def test_without_a_mode_it_says_so(self) -> None:
        env = fbs_debate_v0.env()
        env.reset()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert env.render() is None
        assert "render_mode" in str(caught[0].message)
