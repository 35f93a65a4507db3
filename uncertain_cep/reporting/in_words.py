"""A query in words, for readers who do not know the language."""

from __future__ import annotations

from typing import Final

from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.plurals import counted
from uncertain_cep.query import Query
from uncertain_cep.query.expression_text import format_expression
from uncertain_cep.query.syntax import (
    Component,
    Conjunction,
    Disjunction,
    Duration,
    Option,
    Pattern,
    Repeated,
    times_in_words,
)
from uncertain_cep.query.time_conditions import texts_of
from uncertain_cep.timeline.durations import format_duration

__all__ = ["length_of", "nothing_in_words", "title_of", "words_of", "words_of_groups"]

_STRATEGIES: Final = {
    "skip_till_any_match": "Other events in between do not matter.",
    "skip_till_next_match": "Each step takes the next event that fits: none that fits may come before it.",
    "partition_contiguity": "No other event of the same partition may come in between.",
    "strict_contiguity": "No other event at all may come in between.",
}


def title_of(query: Query) -> str:
    """Return the comment that a query begins with, else its pattern in words."""
    first = query.text.lstrip().partition("\n")[0]
    if first.startswith("--") and first.removeprefix("--").strip():
        return first.removeprefix("--").strip()
    words = _pattern(query.pattern)
    return words[:1].upper() + words[1:]


def words_of(plan: EvaluationPlan) -> list[str]:
    """Return the meaning of a query, sentence by sentence."""
    query, bound = plan.query, plan.bound
    assert query.window is not None
    pattern = _pattern(query.pattern)
    sentences = [f"{pattern[:1].upper()}{pattern[1:]}, all within {length_of(query.window)}."]
    if bound.equivalences:
        sentences.append(f"All events agree on {', '.join(bound.equivalences)}.")
    if bound.predicates:
        conditions = " and ".join(map(format_expression, bound.predicates))
        sentences.append(f"It holds that {conditions}.")
    if bound.times:
        conditions = " and ".join(texts_of(bound.times, plan.domain))
        sentences.append(f"Of the times it holds that {conditions}.")
    sentences.append(_STRATEGIES[query.strategy])
    for strategy in query.gap_strategies:
        between = ", ".join(variable.name for variable in strategy.variables)
        sentences.append(f"Between {between}: {_STRATEGIES[strategy.strategy]}")
    if query.having is not None:
        sentences.append(f"Only matches with {query.having.text}.")
    elif query.min_confidence is not None:
        sentences.append(f"Only matches of a probability of at least {query.min_confidence:.4g}.")
    if query.non_overlapping:
        sentences.append("Only the best of matches that overlap in time.")
    if query.limit is not None:
        which = "best " if query.order_by_confidence else "first " if query.order_by else ""
        sentences.append(f"At most {counted(query.limit, f'{which}match', f'{which}matches')}.")
    return sentences


def words_of_groups(query: Query) -> list[str]:
    """Return sentences for RETURN PROBABILITY and the clauses that choose groups."""
    clause = query.probability
    if clause is None:
        return []
    count = "is a match" if clause.at_least == 1 else f"are at least {clause.at_least:,} matches"
    by = f", by {' and '.join(name.text for name in clause.by)}" if clause.by else ""
    every = "" if clause.every is None else f", in each {length_of(clause.every)}"
    sentences = [f"The answer is how likely there {count}{by}{every}."]
    if query.having is not None:
        sentences.append(f"Only where {query.having.text}.")
    if query.limit is not None:
        sentences.append(f"At most {counted(query.limit, 'group')}.")
    return sentences


def nothing_in_words(candidates: str, without: str) -> str:
    """Return why nothing matches: how many candidates there were, and which conditions leave no match."""
    return " ".join(f"{part[:1].upper()}{part[1:]}." for part in (candidates, without) if part)


def length_of(window: Duration) -> str:
    """Return a length of time in words."""
    if window.nanoseconds is None:
        return counted(float(window.amount), "tick")
    return format_duration(window.nanoseconds)


def _conjunction(pattern: Conjunction) -> str:
    """Return a set in words: its events, then those that must not be there."""
    forbidden = [one for one in pattern.items if isinstance(one, Component) and one.negated]
    parts = [_pattern(one) for one in pattern.items if one not in forbidden]
    events = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]} in any order"
    return ", but no ".join([events, *([" or ".join(map(_event, forbidden))] if forbidden else [])])


def _event(component: Component) -> str:
    return f"{' or '.join(component.types) or 'any event'} ({component.variable})"


def _pattern(pattern: Pattern) -> str:
    if isinstance(pattern, Component):
        name = _event(pattern)
        return f"no {name} there" if pattern.negated else f"{pattern.times} {name}".strip()
    parts = [_pattern(item) for item in pattern.items]
    if isinstance(pattern, Option):
        return f"perhaps ({parts[0]})"
    if isinstance(pattern, Repeated):
        return f"{times_in_words(pattern.fewest, pattern.largest)} times ({parts[0]})"
    if len(parts) == 1:
        return parts[0]
    if isinstance(pattern, Conjunction):
        return _conjunction(pattern)
    if isinstance(pattern, Disjunction):
        return f"either {' or '.join(parts)}"
    return ", then ".join(parts)
