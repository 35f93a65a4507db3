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
            arguments = [
                (parameter, argument(draw, parameter, number))
                for parameter, needed in parameters[name]
                if needed or draw.random() < share
            ]
            calls.append((name, tuple(arguments)))
        return tuple(calls)

    def performed(calls: Calls) -> None:
        results: list[Any] = []

        def value(argument_: Any) -> Any:
            if isinstance(argument_, Result):
                return results[argument_.number] if argument_.number < len(results) else None
            return argument_.make() if isinstance(argument_, Made) else argument_

        def perform(name: str, arguments: tuple[tuple[str, Any], ...]) -> None:
            result = functions[name](**{parameter: value(argument) for parameter, argument in arguments})
            results.append(result)
            used(result)

        for number, (name, arguments) in enumerate(calls):
            allowed(lambda: perform(name, arguments))  # noqa: B023
            results += [None] * (number + 1 - len(results))

    def smaller(calls: Calls) -> Iterator[Calls]:
        for number in range(len(calls) - 1, -1, -1):
            if not any(argument == Result(number) for _, arguments in calls for _, argument in arguments):
                yield tuple(
                    (name, tuple((parameter, _moved(argument, number)) for parameter, argument in arguments))
                    for place, (name, arguments) in enumerate(calls)
                    if place != number
                )
        for number, (name, arguments) in enumerate(calls):
            needed = {parameter for parameter, must in parameters[name] if must}
            for place, (parameter, _) in enumerate(arguments):
                if parameter not in needed:
                    less = (name, arguments[:place] + arguments[place + 1 :])
                    yield (*calls[:number], less, *calls[number + 1 :])

    return Fuzzer(program, performed, smaller)


def _moved(argument: Any, left_out: int) -> Any:
    """Return an argument for a program without one of its calls."""
    if isinstance(argument, Result) and argument.number > left_out:
        return replace(argument, number=argument.number - 1)
    return argument
