"""Matches of at most two clocks, written by :mod:`confidence.shared.write_two_clocks`."""

from __future__ import annotations

import numpy as np

from confidence.chain.written_out import (
    chains_of_2,
    chains_of_3,
    chains_of_4,
    chains_of_5,
    chains_of_6,
    chains_of_7,
    chains_of_8,
)
from confidence.kernel import kernel
from confidence.shared.two_clocks import EXACT, ROOM, gather, lay_out, line, part_tied, write

__all__ = [
    "two_clocks_of_2",
    "two_clocks_of_3",
    "two_clocks_of_4",
    "two_clocks_of_5",
    "two_clocks_of_6",
    "two_clocks_of_7",
    "two_clocks_of_8",
]


@kernel
def _weigh_2(columns, window, size, begins, ends, values):
    for n in range(size):
        c0, l0, w0 = columns[0, n], columns[1, n], columns[2, n]
        c1, l1, w1 = columns[3, n], columns[4, n], columns[5, n]
        o1 = 1.0 if c1 != c0 else 0.0
        wide = w1 if o1 != 0.0 else 0.0
        is_more = o1 != 0.0
        lowest, highest = -w0, wide
        ahead = l0 - l1 + 1.0
        late = ahead if o1 == 0.0 else 0.0
        lowest = max(lowest, ahead if o1 != 0.0 else lowest)
        ahead = l1 - l0 - window
        late = max(late, ahead if o1 == 0.0 else 0.0)
        highest = min(highest, -ahead if o1 != 0.0 else highest)
        near, far = min(0.0, wide - w0), max(0.0, wide - w0)
        count = line(lowest, min(highest, near), w0, wide)
        count += line(max(lowest, near + 1.0), min(highest, far), w0, wide)
        count += line(max(lowest, far + 1.0), highest, w0, wide)
        can_be = (late <= 0.0) & (lowest <= highest)
        value = count / ((w0 + 1.0) * (wide + 1.0)) if can_be else 0.0
        values[n] = np.nan if is_more else value
        begins[n] = max(l0, l0 - highest)
        bound = min(w0, wide - lowest) if o1 == 0.0 else min(wide, w0 + highest)
        ends[n] = l1 + bound if can_be else float(-8 * EXACT)


@kernel
def two_clocks_of_2(matches, stride, events, window, with_confidence, part, room, waiting, out):
    """Weigh matches of 2 events; see :mod:`confidence.shared.two_clocks`."""
    columns, weighed, chains = room.events, room.weighed, room.chains
    confidence = out[2]
    waits = lost = 0
    for begin in range(part[0], part[1], ROOM):
        end = min(begin + ROOM, part[1])
        gather(2, matches, stride, events, begin, end - begin, columns)
        _weigh_2(columns, window, end - begin, weighed[0], weighed[1], weighed[2])
        before = waits
        waits = write(begin, end, weighed, events.origin, waiting, waits, out)
        alone, waits = part_tied(2, columns, begin, waiting, before, waits, chains.place)
        if with_confidence:
            lay_out(2, columns, begin, alone, chains)
            w = window - 1.0
            lost += chains_of_2(chains.bounds, w, alone, chains.place, chains.values, confidence)
    return waits, lost


@kernel
def _weigh_3(columns, window, size, begins, ends, values):
    for n in range(size):
        c0, l0, w0 = columns[0, n], columns[1, n], columns[2, n]
        c1, l1, w1 = columns[3, n], columns[4, n], columns[5, n]
        c2, l2, w2 = columns[6, n], columns[7, n], columns[8, n]
        o1 = 1.0 if c1 != c0 else 0.0
        wide = w1 if o1 != 0.0 else 0.0
        is_more, other = False, c1
        o2 = 1.0 if c2 != c0 else 0.0
        is_more |= (o2 != 0.0) & (other != c0) & (c2 != other)
        wide = w2 if o2 != 0.0 else wide
        lowest, highest = -w0, wide
        ahead = l0 - l1 + 1.0
        late = ahead if o1 == 0.0 else 0.0
        lowest = max(lowest, ahead if o1 != 0.0 else lowest)
        ahead, change = l1 - l2 + 1.0, o2 - o1
        late = max(late, ahead if change == 0.0 else 0.0)
        lowest = max(lowest, ahead if change > 0.0 else lowest)
        highest = min(highest, -ahead if change < 0.0 else highest)
        ahead = l2 - l0 - window
        late = max(late, ahead if o2 == 0.0 else 0.0)
        highest = min(highest, -ahead if o2 != 0.0 else highest)
        near, far = min(0.0, wide - w0), max(0.0, wide - w0)
        count = line(lowest, min(highest, near), w0, wide)
        count += line(max(lowest, near + 1.0), min(highest, far), w0, wide)
        count += line(max(lowest, far + 1.0), highest, w0, wide)
        can_be = (late <= 0.0) & (lowest <= highest)
        value = count / ((w0 + 1.0) * (wide + 1.0)) if can_be else 0.0
        values[n] = np.nan if is_more else value
        begins[n] = max(l0, l0 - highest)
        bound = min(w0, wide - lowest) if o2 == 0.0 else min(wide, w0 + highest)
        ends[n] = l2 + bound if can_be else float(-8 * EXACT)


@kernel
def two_clocks_of_3(matches, stride, events, window, with_confidence, part, room, waiting, out):
    """Weigh matches of 3 events; see :mod:`confidence.shared.two_clocks`."""
    columns, weighed, chains = room.events, room.weighed, room.chains
    confidence = out[2]
    waits = lost = 0
    for begin in range(part[0], part[1], ROOM):
        end = min(begin + ROOM, part[1])
        gather(3, matches, stride, events, begin, end - begin, columns)
        _weigh_3(columns, window, end - begin, weighed[0], weighed[1], weighed[2])
        before = waits
        waits = write(begin, end, weighed, events.origin, waiting, waits, out)
        alone, waits = part_tied(3, columns, begin, waiting, before, waits, chains.place)
        if with_confidence:
            lay_out(3, columns, begin, alone, chains)
            w = window - 2.0
            lost += chains_of_3(chains.bounds, w, alone, chains.place, chains.values, confidence)
    return waits, lost


@kernel
def _weigh_4(columns, window, size, begins, ends, values):
    for n in range(size):
        c0, l0, w0 = columns[0, n], columns[1, n], columns[2, n]
        c1, l1, w1 = columns[3, n], columns[4, n], columns[5, n]
        c2, l2, w2 = columns[6, n], columns[7, n], columns[8, n]
        c3, l3, w3 = columns[9, n], columns[10, n], columns[11, n]
        o1 = 1.0 if c1 != c0 else 0.0
        wide = w1 if o1 != 0.0 else 0.0
        is_more, other = False, c1
        o2 = 1.0 if c2 != c0 else 0.0
        is_more |= (o2 != 0.0) & (other != c0) & (c2 != other)
        wide = w2 if o2 != 0.0 else wide
        other = c2 if o2 != 0.0 else other
        o3 = 1.0 if c3 != c0 else 0.0
        is_more |= (o3 != 0.0) & (other != c0) & (c3 != other)
        wide = w3 if o3 != 0.0 else wide
        lowest, highest = -w0, wide
        ahead = l0 - l1 + 1.0
        late = ahead if o1 == 0.0 else 0.0
        lowest = max(lowest, ahead if o1 != 0.0 else lowest)
        ahead, change = l1 - l2 + 1.0, o2 - o1
        late = max(late, ahead if change == 0.0 else 0.0)
        lowest = max(lowest, ahead if change > 0.0 else lowest)
        highest = min(highest, -ahead if change < 0.0 else highest)
        ahead, change = l2 - l3 + 1.0, o3 - o2
        late = max(late, ahead if change == 0.0 else 0.0)
        lowest = max(lowest, ahead if change > 0.0 else lowest)
        highest = min(highest, -ahead if change < 0.0 else highest)
        ahead = l3 - l0 - window
        late = max(late, ahead if o3 == 0.0 else 0.0)
        highest = min(highest, -ahead if o3 != 0.0 else highest)
        near, far = min(0.0, wide - w0), max(0.0, wide - w0)
        count = line(lowest, min(highest, near), w0, wide)
        count += line(max(lowest, near + 1.0), min(highest, far), w0, wide)
        count += line(max(lowest, far + 1.0), highest, w0, wide)
        can_be = (late <= 0.0) & (lowest <= highest)
        value = count / ((w0 + 1.0) * (wide + 1.0)) if can_be else 0.0
        values[n] = np.nan if is_more else value
        begins[n] = max(l0, l0 - highest)
        bound = min(w0, wide - lowest) if o3 == 0.0 else min(wide, w0 + highest)
        ends[n] = l3 + bound if can_be else float(-8 * EXACT)


@kernel
def two_clocks_of_4(matches, stride, events, window, with_confidence, part, room, waiting, out):
    """Weigh matches of 4 events; see :mod:`confidence.shared.two_clocks`."""
    columns, weighed, chains = room.events, room.weighed, room.chains
    confidence = out[2]
    waits = lost = 0
    for begin in range(part[0], part[1], ROOM):
        end = min(begin + ROOM, part[1])
        gather(4, matches, stride, events, begin, end - begin, columns)
        _weigh_4(columns, window, end - begin, weighed[0], weighed[1], weighed[2])
        before = waits
        waits = write(begin, end, weighed, events.origin, waiting, waits, out)
        alone, waits = part_tied(4, columns, begin, waiting, before, waits, chains.place)
        if with_confidence:
            lay_out(4, columns, begin, alone, chains)
            w = window - 3.0
            lost += chains_of_4(chains.bounds, w, alone, chains.place, chains.values, confidence)
    return waits, lost


@kernel
def _weigh_5(columns, window, size, begins, ends, values):
    for n in range(size):
        c0, l0, w0 = columns[0, n], columns[1, n], columns[2, n]
        c1, l1, w1 = columns[3, n], columns[4, n], columns[5, n]
        c2, l2, w2 = columns[6, n], columns[7, n], columns[8, n]
        c3, l3, w3 = columns[9, n], columns[10, n], columns[11, n]
        c4, l4, w4 = columns[12, n], columns[13, n], columns[14, n]
        o1 = 1.0 if c1 != c0 else 0.0
        wide = w1 if o1 != 0.0 else 0.0
        is_more, other = False, c1
        o2 = 1.0 if c2 != c0 else 0.0
        is_more |= (o2 != 0.0) & (other != c0) & (c2 != other)
        wide = w2 if o2 != 0.0 else wide
        other = c2 if o2 != 0.0 else other
        o3 = 1.0 if c3 != c0 else 0.0
        is_more |= (o3 != 0.0) & (other != c0) & (c3 != other)
        wide = w3 if o3 != 0.0 else wide
        other = c3 if o3 != 0.0 else other
        o4 = 1.0 if c4 != c0 else 0.0
        is_more |= (o4 != 0.0) & (other != c0) & (c4 != other)
        wide = w4 if o4 != 0.0 else wide
        lowest, highest = -w0, wide
        ahead = l0 - l1 + 1.0
        late = ahead if o1 == 0.0 else 0.0
        lowest = max(lowest, ahead if o1 != 0.0 else lowest)
        ahead, change = l1 - l2 + 1.0, o2 - o1
        late = max(late, ahead if change == 0.0 else 0.0)
        lowest = max(lowest, ahead if change > 0.0 else lowest)
        highest = min(highest, -ahead if change < 0.0 else highest)
        ahead, change = l2 - l3 + 1.0, o3 - o2
        late = max(late, ahead if change == 0.0 else 0.0)
        lowest = max(lowest, ahead if change > 0.0 else lowest)
        highest = min(highest, -ahead if change < 0.0 else highest)
        ahead, change = l3 - l4 + 1.0, o4 - o3
        late = max(late, ahead if change == 0.0 else 0.0)
        lowest = max(lowest, ahead if change > 0.0 else lowest)
        highest = min(highest, -ahead if change < 0.0 else highest)
        ahead = l4 - l0 - window
        late = max(late, ahead if o4 == 0.0 else 0.0)
        highest = min(highest, -ahead if o4 != 0.0 else highest)
        near, far = min(0.0, wide - w0), max(0.0, wide - w0)
        count = line(lowest, min(highest, near), w0, wide)
        count += line(max(lowest, near + 1.0), min(highest, far), w0, wide)
        count += line(max(lowest, far + 1.0), highest, w0, wide)
        can_be = (late <= 0.0) & (lowest <= highest)
        value = count / ((w0 + 1.0) * (wide + 1.0)) if can_be else 0.0
        values[n] = np.nan if is_more else value
        begins[n] = max(l0, l0 - highest)
        bound = min(w0, wide - lowest) if o4 == 0.0 else min(wide, w0 + highest)
        ends[n] = l4 + bound if can_be else float(-8 * EXACT)


@kernel
def two_clocks_of_5(matches, stride, events, window, with_confidence, part, room, waiting, out):
    """Weigh matches of 5 events; see :mod:`confidence.shared.two_clocks`."""
    columns, weighed, chains = room.events, room.weighed, room.chains
    confidence = out[2]
    waits = lost = 0
    for begin in range(part[0], part[1], ROOM):
        end = min(begin + ROOM, part[1])
        gather(5, matches, stride, events, begin, end - begin, columns)
        _weigh_5(columns, window, end - begin, weighed[0], weighed[1], weighed[2])
        before = waits
        waits = write(begin, end, weighed, events.origin, waiting, waits, out)
        alone, waits = part_tied(5, columns, begin, waiting, before, waits, chains.place)
        if with_confidence:
            lay_out(5, columns, begin, alone, chains)
            w = window - 4.0
            lost += chains_of_5(chains.bounds, w, alone, chains.place, chains.values, confidence)
    return waits, lost


@kernel
def _weigh_6(columns, window, size, begins, ends, values):
    for n in range(size):
        c0, l0, w0 = columns[0, n], columns[1, n], columns[2, n]
        c1, l1, w1 = columns[3, n], columns[4, n], columns[5, n]
        c2, l2, w2 = columns[6, n], columns[7, n], columns[8, n]
        c3, l3, w3 = columns[9, n], columns[10, n], columns[11, n]
        c4, l4, w4 = columns[12, n], columns[13, n], columns[14, n]
        c5, l5, w5 = columns[15, n], columns[16, n], columns[17, n]
        o1 = 1.0 if c1 != c0 else 0.0
        wide = w1 if o1 != 0.0 else 0.0
        is_more, other = False, c1
        o2 = 1.0 if c2 != c0 else 0.0
        is_more |= (o2 != 0.0) & (other != c0) & (c2 != other)
        wide = w2 if o2 != 0.0 else wide
        other = c2 if o2 != 0.0 else other
        o3 = 1.0 if c3 != c0 else 0.0
        is_more |= (o3 != 0.0) & (other != c0) & (c3 != other)
        wide = w3 if o3 != 0.0 else wide
        other = c3 if o3 != 0.0 else other
        o4 = 1.0 if c4 != c0 else 0.0
        is_more |= (o4 != 0.0) & (other != c0) & (c4 != other)
        wide = w4 if o4 != 0.0 else wide
        other = c4 if o4 != 0.0 else other
        o5 = 1.0 if c5 != c0 else 0.0
        is_more |= (o5 != 0.0) & (other != c0) & (c5 != other)
        wide = w5 if o5 != 0.0 else wide
        lowest, highest = -w0, wide
        ahead = l0 - l1 + 1.0
        late = ahead if o1 == 0.0 else 0.0
        lowest = max(lowest, ahead if o1 != 0.0 else lowest)
        ahead, change = l1 - l2 + 1.0, o2 - o1
        late = max(late, ahead if change == 0.0 else 0.0)
        lowest = max(lowest, ahead if change > 0.0 else lowest)
        highest = min(highest, -ahead if change < 0.0 else highest)
        ahead, change = l2 - l3 + 1.0, o3 - o2
        late = max(late, ahead if change == 0.0 else 0.0)
        lowest = max(lowest, ahead if change > 0.0 else lowest)
        highest = min(highest, -ahead if change < 0.0 else highest)
        ahead, change = l3 - l4 + 1.0, o4 - o3
        late = max(late, ahead if change == 0.0 else 0.0)
        lowest = max(lowest, ahead if change > 0.0 else lowest)
        highest = min(highest, -ahead if change < 0.0 else highest)
        ahead, change = l4 - l5 + 1.0, o5 - o4
        late = max(late, ahead if change == 0.0 else 0.0)
        lowest = max(lowest, ahead if change > 0.0 else lowest)
        highest = min(highest, -ahead if change < 0.0 else highest)
        ahead = l5 - l0 - window
        late = max(late, ahead if o5 == 0.0 else 0.0)
        highest = min(highest, -ahead if o5 != 0.0 else highest)
        near, far = min(0.0, wide - w0), max(0.0, wide - w0)
        count = line(lowest, min(highest, near), w0, wide)
        count += line(max(lowest, near + 1.0), min(highest, far), w0, wide)
        count += line(max(lowest, far + 1.0), highest, w0, wide)
        can_be = (late <= 0.0) & (lowest <= highest)
        value = count / ((w0 + 1.0) * (wide + 1.0)) if can_be else 0.0
        values[n] = np.nan if is_more else value
        begins[n] = max(l0, l0 - highest)
        bound = min(w0, wide - lowest) if o5 == 0.0 else min(wide, w0 + highest)
        ends[n] = l5 + bound if can_be else float(-8 * EXACT)


@kernel
def two_clocks_of_6(matches, stride, events, window, with_confidence, part, room, waiting, out):
    """Weigh matches of 6 events; see :mod:`confidence.shared.two_clocks`."""
    columns, weighed, chains = room.events, room.weighed, room.chains
    confidence = out[2]
    waits = lost = 0
    for begin in range(part[0], part[1], ROOM):
        end = min(begin + ROOM, part[1])
        gather(6, matches, stride, events, begin, end - begin, columns)
        _weigh_6(columns, window, end - begin, weighed[0], weighed[1], weighed[2])
        before = waits
        waits = write(begin, end, weighed, events.origin, waiting, waits, out)
        alone, waits = part_tied(6, columns, begin, waiting, before, waits, chains.place)
        if with_confidence:
            lay_out(6, columns, begin, alone, chains)
            w = window - 5.0
            lost += chains_of_6(chains.bounds, w, alone, chains.place, chains.values, confidence)
    return waits, lost


@kernel
def _weigh_7(columns, window, size, begins, ends, values):
    for n in range(size):
        c0, l0, w0 = columns[0, n], columns[1, n], columns[2, n]
        c1, l1, w1 = columns[3, n], columns[4, n], columns[5, n]
        c2, l2, w2 = columns[6, n], columns[7, n], columns[8, n]
        c3, l3, w3 = columns[9, n], columns[10, n], columns[11, n]
        c4, l4, w4 = columns[12, n], columns[13, n], columns[14, n]
        c5, l5, w5 = columns[15, n], columns[16, n], columns[17, n]
        c6, l6, w6 = columns[18, n], columns[19, n], columns[20, n]
        o1 = 1.0 if c1 != c0 else 0.0
        wide = w1 if o1 != 0.0 else 0.0
        is_more, other = False, c1
        o2 = 1.0 if c2 != c0 else 0.0
        is_more |= (o2 != 0.0) & (other != c0) & (c2 != other)
        wide = w2 if o2 != 0.0 else wide
        other = c2 if o2 != 0.0 else other
        o3 = 1.0 if c3 != c0 else 0.0
        is_more |= (o3 != 0.0) & (other != c0) & (c3 != other)
        wide = w3 if o3 != 0.0 else wide
        other = c3 if o3 != 0.0 else other
        o4 = 1.0 if c4 != c0 else 0.0
        is_more |= (o4 != 0.0) & (other != c0) & (c4 != other)
        wide = w4 if o4 != 0.0 else wide
        other = c4 if o4 != 0.0 else other
        o5 = 1.0 if c5 != c0 else 0.0
        is_more |= (o5 != 0.0) & (other != c0) & (c5 != other)
        wide = w5 if o5 != 0.0 else wide
        other = c5 if o5 != 0.0 else other
        o6 = 1.0 if c6 != c0 else 0.0
        is_more |= (o6 != 0.0) & (other != c0) & (c6 != other)
        wide = w6 if o6 != 0.0 else wide
        lowest, highest = -w0, wide
        ahead = l0 - l1 + 1.0
        late = ahead if o1 == 0.0 else 0.0
        lowest = max(lowest, ahead if o1 != 0.0 else lowest)
        ahead, change = l1 - l2 + 1.0, o2 - o1
        late = max(late, ahead if change == 0.0 else 0.0)
        lowest = max(lowest, ahead if change > 0.0 else lowest)
        highest = min(highest, -ahead if change < 0.0 else highest)
        ahead, change = l2 - l3 + 1.0, o3 - o2
        late = max(late, ahead if change == 0.0 else 0.0)
        lowest = max(lowest, ahead if change > 0.0 else lowest)
        highest = min(highest, -ahead if change < 0.0 else highest)
        ahead, change = l3 - l4 + 1.0, o4 - o3
        late = max(late, ahead if change == 0.0 else 0.0)
        lowest = max(lowest, ahead if change > 0.0 else lowest)
        highest = min(highest, -ahead if change < 0.0 else highest)
        ahead, change = l4 - l5 + 1.0, o5 - o4
        late = max(late, ahead if change == 0.0 else 0.0)
        lowest = max(lowest, ahead if change > 0.0 else lowest)
        highest = min(highest, -ahead if change < 0.0 else highest)
        ahead, change = l5 - l6 + 1.0, o6 - o5
        late = max(late, ahead if change == 0.0 else 0.0)
        lowest = max(lowest, ahead if change > 0.0 else lowest)
        highest = min(highest, -ahead if change < 0.0 else highest)
        ahead = l6 - l0 - window
        late = max(late, ahead if o6 == 0.0 else 0.0)
        highest = min(highest, -ahead if o6 != 0.0 else highest)
        near, far = min(0.0, wide - w0), max(0.0, wide - w0)
        count = line(lowest, min(highest, near), w0, wide)
        count += line(max(lowest, near + 1.0), min(highest, far), w0, wide)
        count += line(max(lowest, far + 1.0), highest, w0, wide)
        can_be = (late <= 0.0) & (lowest <= highest)
        value = count / ((w0 + 1.0) * (wide + 1.0)) if can_be else 0.0
        values[n] = np.nan if is_more else value
        begins[n] = max(l0, l0 - highest)
        bound = min(w0, wide - lowest) if o6 == 0.0 else min(wide, w0 + highest)
        ends[n] = l6 + bound if can_be else float(-8 * EXACT)


@kernel
def two_clocks_of_7(matches, stride, events, window, with_confidence, part, room, waiting, out):
    """Weigh matches of 7 events; see :mod:`confidence.shared.two_clocks`."""
    columns, weighed, chains = room.events, room.weighed, room.chains
    confidence = out[2]
    waits = lost = 0
    for begin in range(part[0], part[1], ROOM):
        end = min(begin + ROOM, part[1])
        gather(7, matches, stride, events, begin, end - begin, columns)
        _weigh_7(columns, window, end - begin, weighed[0], weighed[1], weighed[2])
        before = waits
        waits = write(begin, end, weighed, events.origin, waiting, waits, out)
        alone, waits = part_tied(7, columns, begin, waiting, before, waits, chains.place)
        if with_confidence:
            lay_out(7, columns, begin, alone, chains)
            w = window - 6.0
            lost += chains_of_7(chains.bounds, w, alone, chains.place, chains.values, confidence)
    return waits, lost


@kernel
def _weigh_8(columns, window, size, begins, ends, values):
    for n in range(size):
        c0, l0, w0 = columns[0, n], columns[1, n], columns[2, n]
        c1, l1, w1 = columns[3, n], columns[4, n], columns[5, n]
        c2, l2, w2 = columns[6, n], columns[7, n], columns[8, n]
        c3, l3, w3 = columns[9, n], columns[10, n], columns[11, n]
        c4, l4, w4 = columns[12, n], columns[13, n], columns[14, n]
        c5, l5, w5 = columns[15, n], columns[16, n], columns[17, n]
        c6, l6, w6 = columns[18, n], columns[19, n], columns[20, n]
        c7, l7, w7 = columns[21, n], columns[22, n], columns[23, n]
        o1 = 1.0 if c1 != c0 else 0.0
        wide = w1 if o1 != 0.0 else 0.0
        is_more, other = False, c1
        o2 = 1.0 if c2 != c0 else 0.0
        is_more |= (o2 != 0.0) & (other != c0) & (c2 != other)
        wide = w2 if o2 != 0.0 else wide
        other = c2 if o2 != 0.0 else other
        o3 = 1.0 if c3 != c0 else 0.0
        is_more |= (o3 != 0.0) & (other != c0) & (c3 != other)
        wide = w3 if o3 != 0.0 else wide
        other = c3 if o3 != 0.0 else other
        o4 = 1.0 if c4 != c0 else 0.0
        is_more |= (o4 != 0.0) & (other != c0) & (c4 != other)
        wide = w4 if o4 != 0.0 else wide
        other = c4 if o4 != 0.0 else other
        o5 = 1.0 if c5 != c0 else 0.0
        is_more |= (o5 != 0.0) & (other != c0) & (c5 != other)
        wide = w5 if o5 != 0.0 else wide
        other = c5 if o5 != 0.0 else other
        o6 = 1.0 if c6 != c0 else 0.0
        is_more |= (o6 != 0.0) & (other != c0) & (c6 != other)
        wide = w6 if o6 != 0.0 else wide
        other = c6 if o6 != 0.0 else other
        o7 = 1.0 if c7 != c0 else 0.0
        is_more |= (o7 != 0.0) & (other != c0) & (c7 != other)
        wide = w7 if o7 != 0.0 else wide
        lowest, highest = -w0, wide
        ahead = l0 - l1 + 1.0
        late = ahead if o1 == 0.0 else 0.0
        lowest = max(lowest, ahead if o1 != 0.0 else lowest)
        ahead, change = l1 - l2 + 1.0, o2 - o1
        late = max(late, ahead if change == 0.0 else 0.0)
        lowest = max(lowest, ahead if change > 0.0 else lowest)
        highest = min(highest, -ahead if change < 0.0 else highest)
        ahead, change = l2 - l3 + 1.0, o3 - o2
        late = max(late, ahead if change == 0.0 else 0.0)
        lowest = max(lowest, ahead if change > 0.0 else lowest)
        highest = min(highest, -ahead if change < 0.0 else highest)
        ahead, change = l3 - l4 + 1.0, o4 - o3
        late = max(late, ahead if change == 0.0 else 0.0)
        lowest = max(lowest, ahead if change > 0.0 else lowest)
        highest = min(highest, -ahead if change < 0.0 else highest)
        ahead, change = l4 - l5 + 1.0, o5 - o4
        late = max(late, ahead if change == 0.0 else 0.0)
        lowest = max(lowest, ahead if change > 0.0 else lowest)
        highest = min(highest, -ahead if change < 0.0 else highest)
        ahead, change = l5 - l6 + 1.0, o6 - o5
        late = max(late, ahead if change == 0.0 else 0.0)
        lowest = max(lowest, ahead if change > 0.0 else lowest)
        highest = min(highest, -ahead if change < 0.0 else highest)
        ahead, change = l6 - l7 + 1.0, o7 - o6
        late = max(late, ahead if change == 0.0 else 0.0)
        lowest = max(lowest, ahead if change > 0.0 else lowest)
        highest = min(highest, -ahead if change < 0.0 else highest)
        ahead = l7 - l0 - window
        late = max(late, ahead if o7 == 0.0 else 0.0)
        highest = min(highest, -ahead if o7 != 0.0 else highest)
        near, far = min(0.0, wide - w0), max(0.0, wide - w0)
        count = line(lowest, min(highest, near), w0, wide)
        count += line(max(lowest, near + 1.0), min(highest, far), w0, wide)
        count += line(max(lowest, far + 1.0), highest, w0, wide)
        can_be = (late <= 0.0) & (lowest <= highest)
        value = count / ((w0 + 1.0) * (wide + 1.0)) if can_be else 0.0
        values[n] = np.nan if is_more else value
        begins[n] = max(l0, l0 - highest)
        bound = min(w0, wide - lowest) if o7 == 0.0 else min(wide, w0 + highest)
        ends[n] = l7 + bound if can_be else float(-8 * EXACT)


@kernel
def two_clocks_of_8(matches, stride, events, window, with_confidence, part, room, waiting, out):
    """Weigh matches of 8 events; see :mod:`confidence.shared.two_clocks`."""
    columns, weighed, chains = room.events, room.weighed, room.chains
    confidence = out[2]
    waits = lost = 0
    for begin in range(part[0], part[1], ROOM):
        end = min(begin + ROOM, part[1])
        gather(8, matches, stride, events, begin, end - begin, columns)
        _weigh_8(columns, window, end - begin, weighed[0], weighed[1], weighed[2])
        before = waits
        waits = write(begin, end, weighed, events.origin, waiting, waits, out)
        alone, waits = part_tied(8, columns, begin, waiting, before, waits, chains.place)
        if with_confidence:
            lay_out(8, columns, begin, alone, chains)
            w = window - 7.0
            lost += chains_of_8(chains.bounds, w, alone, chains.place, chains.values, confidence)
    return waits, lost
