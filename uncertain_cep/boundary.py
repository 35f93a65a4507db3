"""The border of the library: whatever goes wrong within, only its own errors get out.

Beside them pass what Python itself ends a program with (KeyboardInterrupt, SystemExit), a warning that a
filter made an error, and the TypeError of a call that does not fit the signature.
"""

from __future__ import annotations

import errno
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import wraps
from numbers import Integral, Real
from types import NoneType, SimpleNamespace, TracebackType, UnionType
from typing import (
    Any,
    Final,
    Literal,
    ParamSpec,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from uncertain_cep.errors import (
    InternalError,
    MemoryLimitError,
    OptionError,
    RuntimeEnvironmentError,
    TraceError,
    TraceFault,
    UncertainCepError,
)

__all__ = ["guarded", "our_error", "public"]

Parameters = ParamSpec("Parameters")
ResultT = TypeVar("ResultT")
ItemT = TypeVar("ItemT")

Meaning: TypeAlias = tuple[
    tuple[type[Exception], ...], frozenset[str], Callable[[BaseException], UncertainCepError]
]
"""Kinds of errors, or libraries that raise them, and what makes an error of ours of one."""

_PASS: Final = (UncertainCepError, Warning)

_FRAME_OF_JAVA: Final = re.compile(r"at [\w.$/]+\(.*\)$|\.\.\. \d+ more$|Driver stacktrace:$")

_PANIC: Final = "PanicException"
"""What Polars ends with where it meets what it holds impossible; it is no Exception."""


class _Border:
    """A block that only our errors leave. It keeps no frame of another module between caller and library."""

    def __enter__(self) -> None:
        """Do nothing yet."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Raise the error of ours that says what another one means."""
        if error is None or isinstance(error, _PASS):
            return
        if isinstance(error, TypeError) and trace is not None and trace.tb_next is None:
            # The call itself does not fit the signature.
            return
        if isinstance(error, Exception) or type(error).__name__ == _PANIC:
            raise our_error(error) from error


_BORDER: Final = _Border()


def public(function: Callable[Parameters, ResultT]) -> Callable[Parameters, ResultT]:
    """Let only our errors out of a function; see the module.

    Where it did not expect an error, and an argument is of no type that the function is annotated with, that
    is the error.
    """

    @wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> ResultT:
        try:
            with _BORDER:
                return function(*args, **kwargs)
        except InternalError as error:
            if (unfit := _unfit(function, args, kwargs)) is not None:
                raise OptionError(unfit) from error.__cause__
            raise

    return call


def _unfit(function: Callable[..., object], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str | None:
    """Return a message about an argument whose type is none of the annotated ones, or None."""
    for name, value in inspect.signature(function).bind(*args, **kwargs).arguments.items():
        kinds = _kinds(_hint(function, name))
        if None not in kinds and not isinstance(value, tuple(kind for kind in kinds if kind is not None)):
            allowed = " or ".join(_NUMBERS.get(kind, kind.__name__) for kind in kinds if kind is not None)
            return f"{name}= takes {allowed}, not {type(value).__name__}"
    return None


def _hint(function: Callable[..., object], name: str) -> Any:
    """Return the annotation of one parameter; Any if it has none, or names what only a type checker imports.

    The other annotations may name such things.
    """
    annotations = {key: text for key, text in function.__annotations__.items() if key == name}
    try:
        return get_type_hints(SimpleNamespace(__annotations__=annotations), function.__globals__).get(
            name, Any
        )
    except NameError:
        return Any


def _kinds(hint: Any) -> list[type | None]:
    """Return the types of the values that an annotation allows; None among them if it does not tell."""
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return [kind for part in get_args(hint) for kind in _kinds(part)]
    if origin is Literal:
        return [type(value) for value in get_args(hint)]
    kind = {int: Integral, float: Real, Any: None}.get(hint, origin or hint)
    return [kind if isinstance(kind, type) and not getattr(kind, "_is_protocol", False) else None]


_NUMBERS: Final[Mapping[type, str]] = {Integral: "int", Real: "float", NoneType: "None"}


def guarded(items: Iterable[ItemT]) -> Iterator[ItemT]:
    """Yield items that are computed as they are asked for, and let only our errors out."""
    with _BORDER:
        yield from items


def our_error(error: BaseException) -> UncertainCepError:
    """Return the error of ours that says what an error of another library means.

    Notes
    -----
    What is foreseen is refused by name before it gets here, and says more. An error that is in no row of the
    table below is a mistake of this library, and says so.
    """
    roots = {cls.__module__.partition(".")[0] for cls in type(error).__mro__}
    for kinds, libraries, made in _MEANINGS:
        if isinstance(error, kinds) or roots & libraries:
            return made(error)
    return InternalError(
        f"uncertain-cep did not expect this ({type(error).__name__}: {_said(error)}). It is a mistake of the "
        "library: please report it with the query, the schema of the events, and this text"
    )


def _said(error: BaseException) -> str:
    return "; ".join(str(error).split("\n")) or type(error).__name__


def _said_by_spark(error: BaseException) -> str:
    """Return the message of a Spark error, each line once, without the frames of Java."""
    lines = (line.strip() for line in str(error).split("\n"))
    distinct_lines = dict.fromkeys(line for line in lines if line and not _FRAME_OF_JAVA.match(line))
    return "; ".join(distinct_lines) or type(error).__name__


def _out_of_memory(error: BaseException) -> UncertainCepError:
    """Return the error for memory that the system did not give to NumPy, Arrow, Numba or Python."""
    held = 0
    # There may be too little for this, too.
    with suppress(MemoryError, ImportError, OptionError):
        from uncertain_cep.running.resource_limits import held_memory

        held = held_memory()
    return MemoryLimitError(None, held, reason=_said(error))


def _unreadable(error: BaseException) -> UncertainCepError:
    if getattr(error, "errno", None) == errno.ENOMEM:
        return _out_of_memory(error)
    file = getattr(error, "filename", None)
    reason = getattr(error, "strerror", None) or _said(error)
    return TraceError(TraceFault(reason, file=None if file is None else str(file)))


_NONE: Final = frozenset[str]()
_MEANINGS: Final[tuple[Meaning, ...]] = (
    (
        (),
        frozenset({"pyspark", "py4j", "grpc"}),
        lambda error: RuntimeEnvironmentError(f"Spark: {_said_by_spark(error)}"),
    ),
    (
        (RecursionError,),
        _NONE,
        lambda _: OptionError("the query, or a value of the events, is nested too deeply: write it flatter"),
    ),
    (
        (ImportError,),
        _NONE,
        lambda error: RuntimeEnvironmentError(f"a package is missing: {_said(error)}; install it"),
    ),
    ((MemoryError,), _NONE, _out_of_memory),
    ((OSError,), _NONE, _unreadable),
    (
        (UnicodeError,),
        _NONE,
        lambda error: OptionError(f"a text holds characters that are no valid Unicode: {_said(error)}"),
    ),
    (
        (OverflowError,),
        _NONE,
        lambda error: TraceError(f"a number is beyond what 64 bits hold: {_said(error)}"),
    ),
    (
        (),
        frozenset({"pyarrow", "pandas", "polars", "pyo3_runtime", "duckdb"}),
        lambda error: TraceError(f"the events cannot be computed with: {_said(error)}"),
    ),
)
