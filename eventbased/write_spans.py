"""Writes ``spans_written_out.py``: ``python -m eventbased.write_spans``.

A kernel for each length calls that of its chains (:mod:`confidence.chain.written_out`). So Python calls one
kernel for all matches of a call of the join, and only the kernels of one length are compiled.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from confidence.chain.side_by_side import LENGTHS

__all__ = ["PLACE", "written_out"]

PLACE: Final = Path(__file__).with_name("spans_written_out.py")

_HEAD: Final = '''"""Confidences of the matches of spans, written by :mod:`eventbased.write_spans`."""

from __future__ import annotations

from confidence.chain.written_out import (
{chains}
)
from confidence.kernel import kernel
from eventbased.span_chains import SPAN, chains_of_spans

__all__ = [
{names}
]
'''

_KERNEL: Final = '''

@kernel
def confidences_of_{length}(
    ordered, blocks, spans, count, cursor, lower, upper, longest, chosen, own, chains, w, out
):
    """Fill the confidences of matches of {length} events; return how many are NaN.

    See :mod:`eventbased.span_chains`.
    """
    lost = 0
    while cursor[SPAN] < count:
        filled = chains_of_spans(
            ordered, blocks, spans, count, cursor, lower, upper, longest, chosen, own, chains, out
        )
        if filled:
            lost += chains_of_{length}(chains.bounds, w, filled, chains.place, chains.values, out)
    return lost
'''


def written_out() -> str:
    """Return the text of ``spans_written_out.py``."""
    chains = "\n".join(f"    chains_of_{length}," for length in LENGTHS)
    names = "\n".join(f'    "confidences_of_{length}",' for length in LENGTHS)
    text = _HEAD.format(chains=chains, names=names)
    return text + "".join(_KERNEL.format(length=length) for length in LENGTHS)


if __name__ == "__main__":
    PLACE.write_text(written_out())
