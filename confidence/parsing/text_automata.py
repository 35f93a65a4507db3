"""Automata that find an expression in many texts, each in one pass over its bytes, and note its groups.

A state is the list of threads of Pike's machine in the order of preference, each with the registers that hold
the places it has noted. Steps between states move registers (tagged automata: Laurikari, *NFAs with tagged
transitions*, SPIRE 2000). States and steps are made as texts ask for them. What the machine finds first by
preference is found, as RE2 and Perl do.

- Behind a thread that has matched all others are dropped: they are of less preference.
- When a state with such a thread is left for one without, its places are kept in registers of their own. What
  matches later is preferred, as it came of a thread before.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from confidence.parsing.finding import FREE, HERE, find_lines
from confidence.parsing.text_programs import (
    BEGIN,
    END,
    MATCH,
    NOTE,
    SPLIT,
    TAKE,
    Program,
    UnreadError,
    program_of,
)

__all__ = ["MOST_STATES", "Automaton"]

MOST_STATES: Final = 1_000
"""An expression that takes more is left to others."""

Thread = tuple[int, tuple[int, ...]]
"""An instruction, and of each place the register that holds it, `HERE` or `FREE`."""


class Automaton:
    """Finds one expression; not to be used by two threads at once.

    Parameters
    ----------
    pattern : str
        The regular expression. `UnreadError` if it is of a kind that is not read.
    names : sequence of str
        The groups to note.
    """

    def __init__(self, pattern: str, names: Sequence[str]) -> None:
        self._program: Program = program_of(pattern, names)
        self._places = 2 * len(names)
        masks = sorted({mask for kind, _, _, mask in self._program.instructions if kind == TAKE})
        kinds: dict[tuple[bool, ...], int] = {}
        self._classes = np.array(
            [
                kinds.setdefault(tuple(bool(mask >> byte & 1) for mask in masks), len(kinds))
                for byte in range(256)
            ],
            np.int64,
        )
        self._bytes = [int(np.flatnonzero(self._classes == number)[0]) for number in range(len(kinds))]
        self._threads: list[list[Thread]] = [[]]
        self._numbers: dict[tuple[Thread, ...], int] = {(): 0}
        self._known_steps: dict[tuple[Any, ...], int] = {}
        self._registers = 0
        self._table = np.full((8, len(kinds)), -1, np.int32)
        self._steps = np.zeros((16, 4), np.int32)
        self._moves = np.zeros((32, 2), np.int32)
        self._ends = np.full((8, 2, 1 + self._places), FREE, np.int32)
        self._move_count = 0
        self._step_of(-1, self._closure([(self._program.start, (FREE,) * self._places)], begins=True))

    def find(self, letters: Any, begins: Any, ends: Any) -> tuple[Any, Any]:
        """Search some texts, in one pass over their bytes.

        Parameters
        ----------
        letters : (m,) uint8
            UTF-8.
        begins, ends : (n,) int64
            Where each text begins, and where it ends; -1 for a begin: there is none.

        Returns
        -------
        spans : (2 * groups, n) int64
            Where each group begins and ends; -1 where it took no part.
        fits : (n,) bool
            Where the expression was found.

        Raises
        ------
        UnreadError
            If the automaton grows too large.
        """
        spans = np.empty((self._places, len(begins)), np.int64)
        fits = np.zeros(len(begins), np.bool_)
        missing = np.zeros(2, np.int64)
        done = 0
        while True:
            registers = np.full(self._first_kept() + self._places + 1, FREE, np.int64)
            done = find_lines(
                letters, begins, ends, self._classes, self._table, self._steps, self._moves, self._ends,
                registers, spans, fits, missing, done,
            )  # fmt: skip
            if done >= len(begins):
                return spans, fits
            self._make_step(int(missing[0]), int(missing[1]))

    def _first_kept(self) -> int:
        """Return the first register of the latest match; these come behind all others."""
        return 2 * MOST_STATES

    def _make_step(self, state: int, kind: int) -> None:
        byte = self._bytes[kind]
        threads = [
            (after, places)
            for number, places in self._threads[state]
            for what, after, _, mask in (self._program.instructions[number],)
            if what == TAKE and mask >> byte & 1
        ]
        self._table[state, kind] = self._step_of(state, self._closure(threads))

    def _closure(
        self, threads: Sequence[Thread], *, begins: bool = False, ends: bool = False
    ) -> list[Thread]:
        """Return the threads that some reach before the next byte, up to the first match."""
        reached: list[Thread] = []
        seen: set[int] = set()
        waiting = list(reversed(threads))
        while waiting:
            number, places = waiting.pop()
            if number in seen:
                continue
            seen.add(number)
            kind, after, other, _ = self._program.instructions[number]
            if kind == SPLIT:
                waiting += [(other, places), (after, places)]
            elif kind == NOTE:
                waiting.append((after, (*places[:other], HERE, *places[other + 1 :])))
            elif kind == BEGIN and ends:
                raise UnreadError("the begin is looked for behind the end")
            elif kind == BEGIN or (kind == END and ends):
                waiting += [(after, places)] if begins or ends else []
            else:
                reached.append((number, places))
                if kind == MATCH:
                    break
        return reached

    def _step_of(self, state: int, threads: Sequence[Thread]) -> int:
        """Return the number of the step from a state to the one of some threads."""
        if not threads:
            return self._added_step(state, 0, ())
        # Of each place the first register is its own, so that what is noted once is never moved.
        registers: dict[tuple[int, int], int] = {}
        used: set[int] = set()
        renamed = []
        for number, places in threads:
            row = []
            for place, source in enumerate(places):
                if source != FREE and (place, source) not in registers:
                    register = place
                    while register in used:
                        register += self._places
                    used.add(register)
                    registers[place, source] = register
                row.append(FREE if source == FREE else registers[place, source])
            renamed.append((number, tuple(row)))
        key = tuple(renamed)
        target = self._numbers.get(key)
        if target is None:
            target = self._added_state(renamed)
            self._numbers[key] = target
        moves = [(register, source) for (_, source), register in registers.items() if source != register]
        match = self._match_of(state)
        if match is not None and self._match_of(target) is None:
            kept = self._first_kept()
            moves += [(kept + place, source) for place, source in enumerate(match)]
            moves.append((kept + self._places, HERE))
        return self._added_step(state, target, moves)

    def _match_of(self, state: int) -> tuple[int, ...] | None:
        """Return the registers of the thread that has matched, if there is one."""
        if state < 0 or not self._threads[state]:
            return None
        number, places = self._threads[state][-1]
        return places if self._program.instructions[number][0] == MATCH else None

    def _added_state(self, threads: list[Thread]) -> int:
        number = len(self._threads)
        largest = max((register for _, places in threads for register in places), default=0)
        if number >= MOST_STATES or largest >= MOST_STATES:
            raise UnreadError("the expression takes too many states")
        self._threads.append(threads)
        if number >= len(self._table):
            self._table = np.concatenate([self._table, np.full_like(self._table, -1)])
            self._ends = np.concatenate([self._ends, np.full_like(self._ends, FREE)])
        last = self._closure(threads, ends=True)
        at_end = next((places for at, places in last if self._program.instructions[at][0] == MATCH), None)
        for row, places in ((0, self._match_of(number)), (1, at_end)):
            if places is not None:
                self._ends[number, row, 0] = 1
                self._ends[number, row, 1:] = places
        return number

    def _added_step(self, state: int, target: int, moves: Sequence[tuple[int, int]]) -> int:
        if len(moves) >= MOST_STATES:
            raise UnreadError("the expression takes too many registers")
        key = (state, target, tuple(moves))
        if key in self._known_steps:
            return self._known_steps[key]
        number = self._known_steps[key] = len(self._known_steps)
        moved = {register for register, _ in moves}
        in_turn = list(moves)
        apart = moved.isdisjoint(source for _, source in moves)
        if not apart:
            # All are read before one is written.
            spare = MOST_STATES
            in_turn = [(spare + place, source) for place, (_, source) in enumerate(moves)]
            in_turn += [(register, spare + place) for place, (register, _) in enumerate(moves)]
        while number >= len(self._steps):
            self._steps = np.concatenate([self._steps, np.zeros_like(self._steps)])
        while self._move_count + len(in_turn) > len(self._moves):
            self._moves = np.concatenate([self._moves, np.zeros_like(self._moves)])
        begin, end = self._move_count, self._move_count + len(in_turn)
        if in_turn:
            self._moves[begin:end] = in_turn
        self._move_count = end
        # What is moved by a step that is taken again and again is moved by the last one alike.
        self._steps[number] = target, begin, end, state == target and apart
        return number
