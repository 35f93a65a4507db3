"""The kernels as plain Python that refuses what compiled code would do in silence: a plugin of pytest.

``NUMBA_DISABLE_JIT=1 python -m pytest -p tests.confidence.checked`` loads the kernel packages so that

- an index that lies outside its array is an error, as Python has it, and so is a negative one, unless it is
  written as a number;
- a shift that leaves int64 is an error; on uint64 it drops bits on purpose;
- what ``np.empty`` returns is filled with numbers that spoil every result they get into.

NumPy itself warns of integers that overflow and of divisions by zero, and pytest turns warnings into errors.
Lines keep their numbers, so that coverage is that of the source files.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any, Final

import numba
import numpy as np

__all__ = ["checked_code", "checks", "install"]

PACKAGES: Final = ("confidence", "eventbased", "pointbased")
SPOILT_INTEGER: Final = -(2**62) + 7


def _index(value: Any) -> Any:
    """Return an index unless it, or one of an array of them, is negative."""
    negative = bool((value < 0).any()) if isinstance(value, np.ndarray) else value is not None and value < 0
    if negative:
        raise IndexError(f"an index is negative: {value}")
    return value


def _shift(value: Any, places: Any) -> Any:
    """Return a number shifted to the left unless bits of an int64 are lost."""
    if isinstance(value, np.uint64):
        return value << places
    if not 0 <= places < 64 or not -(2**63) <= int(value) << int(places) < 2**63:
        raise OverflowError(f"{value} << {places} leaves int64")
    return value << places


def _empty(*arguments: Any, **named: Any) -> Any:
    """Return an array like ``np.empty``, filled with values that no result holds."""
    array = np.empty(*arguments, **named)
    if array.dtype.kind == "f":
        array.fill(np.nan)
    elif array.dtype.kind == "i":
        array.fill(max(SPOILT_INTEGER, np.iinfo(array.dtype).min))
    elif array.dtype.kind == "b":
        array.fill(True)
    return array


checks: Final = {"_checked_index": _index, "_checked_shift": _shift, "_spoilt_empty": _empty}
"""The names that :func:`checked_code` runs with."""


class _Checks(ast.NodeTransformer):
    """Puts the checks into a module; those of indexes and shifts into its kernels only."""

    def __init__(self) -> None:
        self._in_kernel = False

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        outside = self._in_kernel
        self._in_kernel = outside or any(_names_kernel(each) for each in node.decorator_list)
        self.generic_visit(node)
        self._in_kernel = outside
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if self._in_kernel:
            node.slice = _checked(node.slice)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if self._in_kernel and isinstance(node.op, ast.LShift):
            return _call("_checked_shift", node.left, node.right)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        assert not (self._in_kernel and isinstance(node.op, ast.LShift)), (
            "<<= is not checked: write x = x << n"
        )
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if ast.unparse(node.func) == "np.empty":
            node.func = ast.copy_location(ast.Name("_spoilt_empty", ast.Load()), node.func)
        return node


def _names_kernel(decorator: ast.expr) -> bool:
    return ast.unparse(decorator.func if isinstance(decorator, ast.Call) else decorator) == "kernel"


def _call(name: str, *arguments: ast.expr) -> ast.expr:
    function = ast.Name(name, ast.Load())
    return ast.copy_location(ast.Call(function, list(arguments), []), arguments[0])


def _checked(index: ast.expr) -> ast.expr:
    if isinstance(index, ast.Tuple):
        index.elts = [_checked(part) for part in index.elts]
        return index
    if isinstance(index, ast.Slice):
        index.lower = index.lower and _checked(index.lower)
        index.upper = index.upper and _checked(index.upper)
        return index
    number = index.operand if isinstance(index, ast.UnaryOp) else index
    return index if isinstance(number, ast.Constant) else _call("_checked_index", index)


def checked_code(source: bytes | str, path: str) -> CodeType:
    """Return the code of a module with the checks in it."""
    tree = ast.fix_missing_locations(_Checks().visit(ast.parse(source, path)))
    code: CodeType = compile(tree, path, "exec", dont_inherit=True)
    return code


class _Loader(SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return checked_code(self.get_data(path), path)

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update(checks)
        super().exec_module(module)


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] not in PACKAGES:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = _Loader(spec.loader.name, spec.loader.path)
        return spec


def install() -> None:
    """Load the kernel packages with the checks from now on."""
    settings: Any = numba.config
    assert settings.DISABLE_JIT, "the checks are for plain Python: set NUMBA_DISABLE_JIT=1"
    loaded = sorted(name for name in sys.modules if name.partition(".")[0] in PACKAGES)
    assert not loaded, f"these are loaded already, without checks: {loaded}"
    sys.meta_path.insert(0, _Finder())


def pytest_configure() -> None:
    install()
