"""Words with a meaning of their own, and how a name that is not a plain word is written."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["CLAUSES", "RESERVED", "quote_name"]

CLAUSES: Final = ("PATTERN", "WHERE", "WITHIN", "HAVING", "RETURN", "OUTPUT", "ORDER BY", "LIMIT")
"""The clauses, in the order in which a query gives them."""

RESERVED: Final = frozenset(
    {
        "pattern", "seq", "and", "or", "not", "any", "where", "within", "having", "return", "as",
        "output", "order", "by", "limit", "true", "false", "null",
        "skip_till_any_match", "skip_till_next_match", "partition_contiguity", "strict_contiguity",
    }
)  # fmt: skip
"""Words, in lower case, that cannot name a variable; an attribute or a type may have any name."""

_WORD: Final = re.compile(r"[^\W\d]\w*")


def quote_name(name: str, *, reserved: bool = False) -> str:
    """Return a name as a query writes it: in backticks unless it is a plain word.

    Parameters
    ----------
    name : str
    reserved : bool
        Whether it stands where a reserved word would be misread.
    """
    if _WORD.fullmatch(name) and not (reserved and name.lower() in RESERVED):
        return name
    return "`" + name.replace("`", "``") + "`"
