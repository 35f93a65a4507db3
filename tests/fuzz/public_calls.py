"""Programs of calls: any functions, each with arguments by the names of its parameters, mostly sound."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tests.fuzz.fuzzing import Fuzzer, allowed

__all__ = ["Calls", "Made", "Result", "calls_of"]


@dataclass(frozen=True)
class Made:
    """An argument that is made when it is needed, of the name that a failure is told with."""

    name: str
    make: Callable[[], Any]

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Result:
    """The result of an earlier call of a program; None if there is none."""

    number: int


Calls = tuple[tuple[str, tuple[tuple[str, Any], ...]], ...]
"""Functions, and the arguments of each by name."""


def calls_of(
    functions: Mapping[str, Callable[..., Any]],
    values: Mapping[str, tuple[Any, ...]],
    strange: tuple[Any, ...],
    used: Callable[[Any], None],
) -> Fuzzer[Calls]:
    """Return a fuzzer of some functions.

    Parameters
    ----------
    functions : mapping
    values : mapping
        What each parameter of theirs may be given, by its name.
    strange : tuple
        What any parameter may be given.
    used : callable
        Called with each result, as far as it can be used.
    """
    parameters = {
        name: [
            (parameter.name, parameter.default is parameter.empty)
            for parameter in inspect.signature(function).parameters.values()
            if parameter.kind is not parameter.VAR_KEYWORD
        ]
        for name, function in functions.items()
    }
    names = tuple(functions)

    def argument(draw: random.Random, name: str, before: int) -> Any:
        chance = draw.random()
        if chance < 0.06:
            return draw.choice(strange)
        if chance < 0.3 and before:
            return Result(draw.randrange(before))
        return draw.choice(values.get(name, strange))

    def program(draw: random.Random) -> Calls:
        calls = []
        for number in range(draw.choice((1, 2, 3, 5))):
            name = draw.choice(names)
            share = draw.choice((0.0, 0.1, 0.3))
            given = [
                (parameter, argument(draw, parameter, number))
                for parameter, needed in parameters[name]
                if needed or draw.random() < share
            ]
            calls.append((name, tuple(given)))
        return tuple(calls)

    def performed(calls: Calls) -> None:
        results: list[Any] = []

        def value(given: Any) -> Any:
            if isinstance(given, Result):
                return results[given.number] if given.number < len(results) else None
            return given.make() if isinstance(given, Made) else given

        def perform(name: str, given: tuple[tuple[str, Any], ...]) -> None:
            found = functions[name](**{parameter: value(argument) for parameter, argument in given})
            results.append(found)
            used(found)

        for number, (name, given) in enumerate(calls):
            allowed(lambda: perform(name, given))  # noqa: B023
            results += [None] * (number + 1 - len(results))

    def smaller(calls: Calls) -> Iterator[Calls]:
        for number in range(len(calls) - 1, -1, -1):
            if not any(argument == Result(number) for _, given in calls for _, argument in given):
                yield tuple(
                    (name, tuple((parameter, _moved(argument, number)) for parameter, argument in given))
                    for place, (name, given) in enumerate(calls)
                    if place != number
                )
        for number, (name, given) in enumerate(calls):
            needed = {parameter for parameter, must in parameters[name] if must}
            for place, (parameter, _) in enumerate(given):
                if parameter not in needed:
                    less = (name, given[:place] + given[place + 1 :])
                    yield (*calls[:number], less, *calls[number + 1 :])

    return Fuzzer(program, performed, smaller)


def _moved(argument: Any, left_out: int) -> Any:
    """Return an argument for a program without one of its calls."""
    if isinstance(argument, Result) and argument.number > left_out:
        return replace(argument, number=argument.number - 1)
    return argument
