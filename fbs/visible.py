"""Other people's text, as a terminal may be given it."""

from __future__ import annotations

import unicodedata

# Letters after one of these are shown in another order than they stand in.
DIRECTIONS = frozenset("\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def visible(text: str) -> str:
    r"""The text with its control characters written out: `\x1b[31m` is shown and turns no terminal red.

    Written out are line breaks, tabs and other controls, line and paragraph separators, marks of the direction of
    writing and halves of characters; letters, spaces and signs of any script stay as they are.
    """
    if text.isprintable():
        return text
    return "".join(c.encode("unicode_escape").decode() if _is_control(c) else c for c in text)


def _is_control(character: str) -> bool:
    return character in DIRECTIONS or unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
