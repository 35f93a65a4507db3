"""The kernel that runs an automaton over texts, and one that copies parts of texts."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from confidence.kernel import POSITIVE, kernel

__all__ = ["FREE", "HERE", "copy_spans", "find_lines"]

FREE: Final = -1
"""No place."""
HERE: Final = -2
"""The place in the text that is reached."""


INDEX: Final[Any] = np.int64(POSITIVE)
"""The mask of indexes, also for those of int32, which NumPy joins with no wider number of Python."""


@kernel
def find_lines(
    letters: Any, begins: Any, ends: Any, classes: Any, table: Any, steps: Any, moves: Any, ends_of: Any,
    registers: Any, spans: Any, fits: Any, missing: Any, first: int,
) -> int:  # fmt: skip
    """Run an automaton over the texts from ``first`` on; O(bytes).

    Parameters
    ----------
    letters : (m,) uint8
    begins, ends : (n,) int64
        A begin of -1: no text.
    classes : (256,) int64
        The kind of each byte.
    table : (states, kinds) int32
        The step that is taken; -1: not made yet. State 0 is the dead end, 1 the first one.
    steps : (s, 4) int32
        The state that a step leads to, its moves from one up to, but without, another, and whether it may be
        taken again and again before they are made.
    moves : (k, 2) int32
        A register, and that, or what, comes into it.
    ends_of : (states, 2, 1 + places) int32
        Of a match that goes no further, and of one at the end of the text: whether there is one, and where
        its places are.
    registers : (r,) int64
        The last ones are those of the last match, and whether there is one.
    spans : (places, n) int64
    fits : (n,) bool
    missing : (2,) int64
        The state, and the kind of byte, whose step is not made yet.
    first : int

    Returns
    -------
    int
        The first text that is not done: one that lacks a step, or n.
    """
    places = spans.shape[0]
    kept = registers.shape[0] - places - 1
    for row in range(first, begins.shape[0]):
        place, end = begins[row], ends[row]
        if place < 0:
            for number in range(places):
                spans[number, row] = FREE
            continue
        registers[kept + places] = FREE
        state = 1
        at_end = 1
        # The first step notes what begins with the text.
        for move in range(steps[0, 1], steps[0, 2]):
            registers[moves[move & INDEX, 0]] = place
        while place < end:
            kind = classes[letters[place & INDEX]] & INDEX
            step = table[state & INDEX, kind]
            if step < 0:
                missing[0], missing[1] = state, kind
                return row
            target = steps[step & INDEX, 0]
            if target == 0:
                at_end = 0
                break
            place += 1
            if steps[step & INDEX, 3]:
                while place < end and table[state & INDEX, classes[letters[place & INDEX]] & INDEX] == step:
                    place += 1
            for move in range(steps[step & INDEX, 1], steps[step & INDEX, 2]):
                source = moves[move & INDEX, 1]
                if source == HERE:
                    registers[moves[move & INDEX, 0]] = place
                elif source == FREE:
                    registers[moves[move & INDEX, 0]] = FREE
                else:
                    registers[moves[move & INDEX, 0]] = registers[source]
            state = target
        if ends_of[state, at_end, 0] == 1:
            fits[row] = True
            for number in range(places):
                source = ends_of[state, at_end, 1 + number]
                if source == HERE:
                    spans[number, row] = place
                elif source == FREE:
                    spans[number, row] = FREE
                else:
                    spans[number, row] = registers[source]
        elif registers[kept + places] != FREE:
            fits[row] = True
            for number in range(places):
                spans[number, row] = registers[kept + number]
        else:
            for number in range(places):
                spans[number, row] = FREE
    done: int = begins.shape[0]
    return done


@kernel
def copy_spans(letters: Any, begins: Any, offsets: Any, copied: Any) -> None:
    """Copy parts of a text one behind the other; O(bytes).

    Parameters
    ----------
    letters : (m,) uint8
    begins : (n,) int64
        Where each part begins.
    offsets : (n + 1,) int32
        Where each part goes.
    copied : (offsets[n],) uint8
    """
    for row in range(begins.shape[0]):
        begin = begins[row]
        place = np.int64(offsets[row])
        for number in range(offsets[row + 1] - place):
            copied[(place + number) & INDEX] = letters[(begin + number) & INDEX]
