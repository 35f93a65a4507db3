"""Kernels as Numba makes them, by what is public of Numba, and by private parts where they are as expected.

Numba has no public way to keep compiled code under names of one's own (:mod:`confidence.stored`), nor to
compile for callers alone (:mod:`confidence.linked`). Those modules import private parts of Numba, which any
release may change. :func:`private_parts` alone imports them. Where it fails, kernels are what ``numba.njit``
makes of them: the answers are the same, and take longer to compile.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import Any, Final, NamedTuple

import numba
import numpy as np
from numba.extending import typeof_impl

from confidence import kernel_cache
from confidence.uninterrupted import uninterrupted

__all__ = ["PRIVATE", "NjitKernel", "PrivateParts", "compiled_kernel", "know", "private_parts"]

PRIVATE: Final = {"linking": "confidence.linked", "storing": "confidence.stored"}
"""What takes private parts of Numba -> the module that imports them. The first needs the second."""

_NJIT: Final[Any] = numba.njit


class PrivateParts(NamedTuple):
    """The private parts of Numba that this process uses."""

    part: str
    """Of :data:`PRIVATE` the first that holds; empty for none."""
    module: Any
    """Its module."""
    missing: dict[str, str]
    """Those before it, and why they do not hold."""


@cache
def private_parts() -> PrivateParts:
    """Import what needs private parts of Numba, if these are there and do what they should.

    Two small kernels show that, once for each version of Numba and of the sources, in half a second.
    """
    refused = os.environ.get(kernel_cache.WITHOUT, "").split()
    missing: dict[str, str] = {}
    for part, name in PRIVATE.items():
        try:
            if part in refused or "storing" in refused:
                raise ImportError(f"{kernel_cache.WITHOUT} names it")
            module: Any = import_module(name)
            if not kernel_cache.is_marked(part):
                module.check(_private_options(inline=False, allocates=False))
                kernel_cache.mark(part)
        except Exception as error:
            # Numba raises errors of many kinds where its parts do not fit together.
            missing[part] = f"{type(error).__name__}: {error}".splitlines()[0]
        else:
            return PrivateParts(part, module, missing)
    kernel_cache.keep_nothing()
    return PrivateParts("", None, missing)


def _public_options(inline: bool) -> dict[str, Any]:
    # What is not given is taken over from the caller that happens to compile the function first.
    return {"nogil": True, "error_model": "numpy", "fastmath": False, "forceinline": inline}


def _private_options(inline: bool, allocates: bool) -> dict[str, Any]:
    return {**_public_options(inline), "no_cfunc_wrapper": True, "_nrt": allocates}


def compiled_kernel(function: Any, inline: bool, allocates: bool, packed: bool) -> Any:
    """Return a dispatcher that compiles a function, see :func:`confidence.kernel.kernel`, and calls it.

    Its ``overloads`` are empty until something is compiled; its ``dispatcher`` is what others call.
    """
    part, module, _ = private_parts()
    options = _private_options(inline, allocates)
    if part == "linking":
        return module.LinkingKernel(function, {"nopython": True, "boundscheck": None, **options}, packed)
    if part == "storing":
        dispatcher = _NJIT(**options)(function)
        return NjitKernel(module.attach(dispatcher, module.KernelCache(function, "njit")))
    name = f"{function.__module__}.{function.__qualname__}"
    return NjitKernel(
        _NJIT(**_public_options(inline))(function), partial(kernel_cache.say_needed, name, False)
    )


class NjitKernel:
    """A kernel as ``numba.njit`` makes it, kept from interrupts.

    Parameters
    ----------
    dispatcher : callable
        That of Numba.
    announce : callable
        Called before something is compiled.

    Attributes
    ----------
    overloads : set
        Kinds of arguments that it was compiled for.
    """

    def __init__(self, dispatcher: Any, announce: Callable[[], None] = lambda: None) -> None:
        self.dispatcher = dispatcher
        self._announce = announce
        self.overloads: set[tuple[Any, ...]] = set()

    def __call__(self, *arguments: Any) -> Any:
        """Run the kernel; compile it first where it is not compiled for such arguments."""
        kinds = tuple(map(_kind, arguments))
        if kinds not in self.overloads:
            self._announce()
            signature = tuple(map(numba.typeof, arguments))
            uninterrupted(partial(self.dispatcher.compile, signature))
            self.overloads.add(kinds)
        return self.dispatcher(*arguments)


def _kind(argument: Any) -> Any:
    """Return a key of how an argument is typed, at a twentieth of the time of typing it."""
    if isinstance(argument, np.ndarray):
        return argument.dtype, argument.ndim, argument.flags.num
    return (type(argument), *map(_kind, argument)) if isinstance(argument, tuple) else type(argument)


@cache
def know(kernels: type) -> None:
    """Have Numba type objects of a class, which kernels call, by the dispatcher of their ``compiled``."""

    @typeof_impl.register(kernels)
    def _(kernel: Any, _: Any) -> Any:
        return numba.typeof(kernel.compiled.dispatcher)
