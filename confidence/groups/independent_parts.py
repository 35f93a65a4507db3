"""Matches and literals that share no variable are independent: what is left of a group, in such parts.

Parts of a list of matches are *alternatives*: numbers of matches add up. Parts of one match are *factors*: it
is a match if all of them hold. Factors whose literals each bound one variable are closed at once.
"""

from __future__ import annotations

from confidence.groups.literal_stack import append, is_open, variable_of
from confidence.groups.problems import (
    CLOCK,
    EARLIER,
    HIGH,
    LATER,
    LAW,
    LEAST,
    LISTED,
    LITERALS,
    LOW,
    MATCHES,
    NUMBER,
    PARTS,
    SIZE,
    STAMP,
    STEPS,
    TERMS,
)
from confidence.groups.simplifying import NO_ROOM
from confidence.kernel import kernel

__all__ = ["fold", "fold_chance", "split"]


@kernel
def root(v, label):
    """Return the variable that stands for all that a variable is tied to."""
    while label[v] != v:
        label[v] = label[label[v]]
        v = label[v]
    return v


@kernel
def tie(v, w, label):
    """Note that two variables depend on each other."""
    label[root(v, label)] = root(w, label)


@kernel
def _loosen(match, variables, arena, scratch):
    """Have each variable of a match stand for itself alone."""
    for k in range(arena.literal[arena.term[match]], arena.literal[arena.term[match + 1]]):
        for side in range(2):
            v = arena.literals[side, k]
            scratch.label[v], scratch.by_variable[NUMBER, v] = v, -1
            scratch.label[variables[CLOCK, v]], scratch.by_variable[NUMBER, variables[CLOCK, v]] = (
                variables[CLOCK, v],
                -1,
            )


@kernel
def _tie_literals(begin, end, variables, arena, label):
    """Tie the variables of some literals, of which there are some, and those to their clocks; return one."""
    tied = 0
    for k in range(begin, end):
        for side in range(2):
            v = arena.literals[side, k]
            if v == 0:
                continue
            if tied:
                tie(v, tied, label)
            tied = v
            clock = variables[CLOCK, v]
            if is_open(clock, variables):
                tie(v, clock, label)
    return tied


@kernel
def split(begin, variables, arena, scratch, total):
    """Add parts for the matches of the list on top, from ``begin`` on; close what needs nothing held.

    Parameters
    ----------
    begin : int64
    variables : Variables
    arena : Arena
    scratch : Scratch
    total : (k + 1,) float64
        P(n matches), and of k or more; what is closed is folded into it.

    Returns
    -------
    parts : int64
        How many there are. ``NO_ROOM`` if they do not fit.
    """
    top, listed = arena.top, arena.listed
    end = top[LISTED]
    if 2 * end - begin > listed.shape[0]:
        return NO_ROOM
    top[STAMP] += 1
    for place in range(begin, end):
        _loosen(listed[place], variables, arena, scratch)
    for place in range(begin, end):
        match = listed[place]
        first, last = arena.literal[arena.term[match]], arena.literal[arena.term[match + 1]]
        top[STEPS] += last - first
        v = _tie_literals(first, last, variables, arena, scratch.label)
        if total.shape[0] > 2:
            # Those of one signature count once.
            signature = arena.signature[match]
            if scratch.stamp[signature] == top[STAMP]:
                tie(v, scratch.of_signature[signature], scratch.label)
            scratch.stamp[signature] = top[STAMP]
            scratch.of_signature[signature] = v
    parts = top[PARTS]
    places = _sorted_by_part(begin, end, arena, scratch)
    place = end
    for number in range(places):
        behind = scratch.by_variable[SIZE, number]
        if top[PARTS] >= arena.part.shape[0]:
            return NO_ROOM
        if behind - place > 1:
            arena.part[top[PARTS], 0], arena.part[top[PARTS], 1] = place, behind
            top[PARTS] += 1
        else:
            before = top[LISTED]
            if not _factors(listed[place], variables, arena, scratch):
                return NO_ROOM
            if top[LISTED] > before:
                arena.part[top[PARTS], 0], arena.part[top[PARTS], 1] = -before - 1, top[LISTED]
                top[PARTS] += 1
            else:
                fold_chance(total, arena.chance[top[PARTS], 0], arena.chance[top[PARTS], 1])
        place = behind
    return top[PARTS] - parts


@kernel
def _sorted_by_part(begin, end, arena, scratch):
    """List the matches from ``begin`` to ``end`` once more, by part; return how many parts there are.

    ``scratch.size`` says where each ends.
    """
    listed = arena.listed
    parts = 0
    for place in range(begin, end):
        part = root(_any_variable(listed[place], arena), scratch.label)
        if scratch.by_variable[NUMBER, part] < 0:
            scratch.by_variable[NUMBER, part] = parts
            scratch.by_variable[SIZE, parts] = 0
            parts += 1
        scratch.by_variable[SIZE, scratch.by_variable[NUMBER, part]] += 1
    running = end
    for part in range(parts):
        running, scratch.by_variable[SIZE, part] = running + scratch.by_variable[SIZE, part], running
    for place in range(begin, end):
        part = scratch.by_variable[NUMBER, root(_any_variable(listed[place], arena), scratch.label)]
        listed[scratch.by_variable[SIZE, part]] = listed[place]
        scratch.by_variable[SIZE, part] += 1
    arena.top[LISTED] = running
    return parts


@kernel
def _any_variable(match, arena):
    return variable_of(arena.literal[arena.term[match]], arena)


@kernel
def fold_chance(total, not_one, one):
    """Add a match that is independent of those counted: ``one`` is its probability."""
    last = total.shape[0] - 1
    total[last] += total[last - 1] * one
    for n in range(last - 1, 0, -1):
        total[n] = total[n] * not_one + total[n - 1] * one
    total[0] *= not_one


@kernel
def fold(total, more, row):
    """Add numbers of matches that are independent of those counted; ``row`` is a work array."""
    last = total.shape[0] - 1
    for n in range(last + 1):
        row[n] = 0.0
    for n in range(last + 1):
        for m in range(last + 1):
            row[min(n + m, last)] += total[n] * more[m]
    for n in range(last + 1):
        total[n] = row[n]


@kernel
def _factors(match, variables, arena, scratch):
    """List the independent factors of a match that are not closed; note the probability of the others.

    Return whether there is room.
    """
    top = arena.top
    first, last = arena.term[match], arena.term[match + 1]
    chance = arena.chance[top[PARTS]]
    chance[0], chance[1] = 0.0, 1.0
    _loosen(match, variables, arena, scratch)
    begin, end = arena.literal[first], arena.literal[first + 1]
    for k in range(begin, end):
        _tie_literals(k, k + 1, variables, arena, scratch.label)
    for term in range(first + 1, last):
        _tie_literals(arena.literal[term], arena.literal[term + 1], variables, arena, scratch.label)
    for k in range(begin, end):
        tied = root(variable_of(k, arena), scratch.label)
        if scratch.by_variable[NUMBER, tied] < 0:
            scratch.by_variable[NUMBER, tied] = 1
            if not _factor(match, tied, variables, arena, scratch, chance):
                return False
    for term in range(first + 1, last):
        k = arena.literal[term]
        tied = root(variable_of(k, arena), scratch.label)
        if scratch.by_variable[NUMBER, tied] < 0:
            scratch.by_variable[NUMBER, tied] = 1
            if not _factor(match, tied, variables, arena, scratch, chance):
                return False
    return True


@kernel
def _factor(match, tied, variables, arena, scratch, chance):
    """Close one factor of a match, or append it as a match; return whether there is room.

    ``own`` stands for its variables.
    """
    top = arena.top
    first, last = arena.term[match], arena.term[match + 1]
    boxes, box = 0, 0
    for term in range(first + 1, last):
        k = arena.literal[term]
        if root(variable_of(k, arena), scratch.label) == tied:
            boxes += 1
            box = term
    begin, end = arena.literal[first], arena.literal[first + 1]
    held = 0
    unary = True
    for k in range(begin, end):
        if root(variable_of(k, arena), scratch.label) == tied:
            held += 1
            unary = unary and _bounds_one(k, variables, arena)
    if boxes == 0 and unary:
        low, high = variables[LOW, tied], variables[HIGH, tied]
        for k in range(begin, end):
            if arena.literals[LATER, k] == tied:
                low = max(low, arena.literals[LEAST, k])
            elif arena.literals[EARLIER, k] == tied:
                high = min(high, -arena.literals[LEAST, k])
        inside, outside = _shares(tied, low, high, variables, scratch)
        chance[0], chance[1] = chance[0] + chance[1] * outside, chance[1] * inside
        return True
    if boxes == 1 and held == 0 and _close_box(box, variables, arena, scratch, chance):
        return True
    return _append_factor(match, tied, arena, scratch.label, top)


@kernel
def _bounds_one(k, variables, arena):
    """Return whether a literal bounds one variable, whose clock is held if it has one."""
    x, y = arena.literals[EARLIER, k], arena.literals[LATER, k]
    clock = variables[CLOCK, max(x, y)]
    return (x == 0 or y == 0) and not is_open(clock, variables)


@kernel
def _shares(v, low, high, variables, scratch):
    """Return the probabilities that a variable is, and is not, within some of its ticks."""
    first, last, law = variables[LOW, v], variables[HIGH, v], variables[LAW, v]
    if law < 0:
        size = float(last - first + 1)
        within = high - low + 1
        return float(within) / size, float(last - first + 1 - within) / size
    inside, outside = 0.0, 0.0
    for tick in range(first, last + 1):
        chance = scratch.values[law + tick - first]
        if low <= tick <= high:
            inside += chance
        else:
            outside += chance
    return inside, outside


@kernel
def _close_box(box, variables, arena, scratch, chance):
    """Note the probability that a box does not hold, if each of its literals bounds one variable."""
    begin, end = arena.literal[box], arena.literal[box + 1]
    for k in range(begin, end):
        if not _bounds_one(k, variables, arena):
            return False
    holds, fails = 1.0, 0.0
    k = begin
    while k < end:
        v = variable_of(k, arena)
        low, high = variables[LOW, v], variables[HIGH, v]
        # The bounds of a variable stand side by side.
        while k < end and variable_of(k, arena) == v:
            if arena.literals[LATER, k] == v:
                low = max(low, arena.literals[LEAST, k])
            else:
                high = min(high, -arena.literals[LEAST, k])
            k += 1
        inside, outside = _shares(v, low, high, variables, scratch)
        holds, fails = holds * inside, fails + holds * outside
    chance[0], chance[1] = chance[0] + chance[1] * holds, chance[1] * fails
    return True


@kernel
def _append_factor(match, tied, arena, label, top):
    """Append a factor of a match, whose variables ``own`` stands for, as a match; return whether it fits."""
    first, last = arena.term[match], arena.term[match + 1]
    literals = arena.literal[last] - arena.literal[first]
    if (
        top[MATCHES] + 2 > arena.term.shape[0]
        or top[TERMS] + last - first + 1 > arena.literal.shape[0]
        or top[LITERALS] + literals > arena.literals.shape[1]
        or top[LISTED] >= arena.listed.shape[0]
    ):
        return False
    number = top[MATCHES]
    for term in range(first, last):
        before = top[LITERALS]
        for k in range(arena.literal[term], arena.literal[term + 1]):
            x, y = arena.literals[EARLIER, k], arena.literals[LATER, k]
            if root(max(x, y), label) == tied:
                append(x, y, arena.literals[LEAST, k], arena)
        if term == first or top[LITERALS] > before:
            top[TERMS] += 1
            arena.literal[top[TERMS]] = top[LITERALS]
    arena.term[number + 1] = top[TERMS]
    arena.signature[number] = arena.signature[match]
    top[MATCHES] = number + 1
    arena.listed[top[LISTED]] = number
    top[LISTED] += 1
    return True
