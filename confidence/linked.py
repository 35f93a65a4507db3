"""How a kernel is compiled that other kernels call and Python does not.

Numba makes each kernel into native code, even one whose body only ever runs within its callers. Here such a
kernel becomes optimised LLVM bitcode to link into its callers: its own native code, and the door to Python
with its checks of arguments, are never made. To leave the optimising to the outermost callers as well would
take a seventh less, but what comes out is up to 8% slower.

All of that overrides private parts of Numba: :func:`confidence.compiled.private_parts` imports this module.
Without it a first answer takes 30 to 50% more time to compile.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from numba.core import codegen, compiler, types
from numba.core.codegen import JITCodeLibrary
from numba.core.registry import CPUDispatcher

from confidence.stored import KernelCache, MemoryCache, check_pair
from confidence.uninterrupted import may_end_here, uninterrupted

__all__ = ["LinkingKernel", "check"]


class _Library(JITCodeLibrary):
    """A module to link into others, which the execution engine never sees."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def serialize_using_object_code(self) -> tuple[str, str, bytes]:
        self._ensure_finalized()
        return self.name, "linked", self._final_module.as_bitcode()


class _PackedLibrary(_Library):
    """One in which LLVM makes vectors of operations that stand side by side."""

    def _optimize_final_module(self) -> None:
        super()._optimize_final_module()
        passes, builder = self._codegen._module_pass_manager(slp_vectorize=True)
        passes.run(self._final_module, builder)


class _Pipeline(compiler.Compiler):
    library = _Library

    def define_pipelines(self) -> Any:
        state = self.state
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        return super().define_pipelines()


class _PackedPipeline(_Pipeline):
    library = _PackedLibrary


class _Inherited(compiler.Flags):
    """Settings that Numba's functions inherit from the kernel that they are compiled for.

    Numba keeps each such function under these settings, and compares them thousands of times for a kernel.
    """

    def __init__(self, flags: Any) -> None:
        super().__init__(flags)
        for name in ("no_cpython_wrapper", "no_cfunc_wrapper", "no_compile", "forceinline"):
            self.discard(name)
        self._known = super().values()

    def values(self) -> Any:
        return self._known

    def copy(self) -> Any:
        return compiler.Flags(self)


_inherited: Final[list[_Inherited]] = []


class _KernelFlags(compiler.Flags):
    """The settings of one kernel, of which what it calls sees those that all kernels have in common."""

    def copy(self) -> Any:
        found = _Inherited(self)
        for known in _inherited:
            if known == found:
                return known
        _inherited.append(found)
        return found


def _kernel_flags(flags: Any) -> Any:
    return _KernelFlags(flags)


def _linked_flags(flags: Any) -> Any:
    flags.no_cpython_wrapper = True
    flags.no_compile = True
    return _KernelFlags(flags)


class _LinkedDispatcher(CPUDispatcher):
    """Compiles a function for calls by others. Python cannot call it."""

    _cache: Any
    _compiler: Any

    def __init__(self, py_func: Any, targetoptions: Any, packed: bool) -> None:
        super().__init__(py_func, {}, targetoptions)
        self._compiler.pipeline_class = _PackedPipeline if packed else _Pipeline
        self._compiler._customize_flags = _linked_flags

    def add_overload(self, cres: Any) -> None:
        """Let callers find the code, by a key that stands for the function that Python could call."""
        key = object()
        self.targetctx.insert_user_function(key, cres.fndesc, [cres.library])
        self.overloads[tuple(cres.signature.args)] = cres._replace(entry_point=key)


class LinkingKernel(CPUDispatcher):
    """A function to compile: for calls by Python, and otherwise for calls by other kernels.

    A call with a constant makes no variant of a kernel for that constant.
    """

    _compiler: Any

    def __init__(self, py_func: Any, targetoptions: Any, packed: bool) -> None:
        super().__init__(py_func, {}, targetoptions)
        self._compiler._customize_flags = _kernel_flags
        self._linked = _LinkedDispatcher(py_func, targetoptions, packed)
        self.keep_in(KernelCache(py_func, "linking"), _LinkedCache(py_func, "linked"))

    def keep_in(self, cache: Any, cache_of_linked: Any) -> None:
        """Keep what Python calls in one cache, and what kernels call in another."""
        self._cache, self._linked._cache = cache, cache_of_linked

    @property
    def dispatcher(self) -> LinkingKernel:
        """The dispatcher that other kernels see."""
        return self

    def add_overload(self, cres: Any) -> None:
        """Let Python find the code."""
        super().add_overload(cres)
        _set_environments(cres)

    def _compile_for_args(self, *args: Any, **kws: Any) -> Any:
        # Called when Python calls the kernel with arguments of new types.
        home: Any = super()
        return uninterrupted(partial(home._compile_for_args, *args, **kws))

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Compile the kernel for a call by another one, whose arguments have these types."""
        may_end_here()
        _, folded = self._compiler.fold_argument_types(args, kws)
        given = tuple(types.unliteral(argument) for argument in folded)
        home: Any = super() if given in self.overloads else self._linked
        return home.get_call_template(given, {})

    def get_overload(self, sig: Any) -> Any:
        """Return the key of the code for a call by another kernel."""
        given = tuple(sig)
        home: Any = self._linked if given in self._linked.overloads else super()
        return home.get_overload(sig)


def _rebuilt(target_context: Any, stored: Any) -> Any:
    """Return the compile result of which a :class:`_LinkedDispatcher` stored ``_reduce()``."""
    (name, _, bitcode), fndesc, environment, signature, *_ = stored
    library = _Library(target_context.codegen(), name)
    numbas: Any = codegen
    library._final_module = numbas.ll.parse_bitcode(bitcode)
    library._finalized = True
    return compiler.compile_result(
        target_context=target_context, typing_context=target_context.typing_context, library=library,
        environment=environment, entry_point=object(), fndesc=fndesc, signature=signature, objectmode=False,
        lifted=(), reload_init=[],
    )  # fmt: skip


class _LinkedCache(KernelCache):
    def _rebuilt(self, target_context: Any, compiled: Any) -> Any:
        return _rebuilt(target_context, compiled)


class _LinkedMemory(MemoryCache):
    def _rebuilt(self, target_context: Any, compiled: Any) -> Any:
        return _rebuilt(target_context, compiled)


def _set_environments(result: Any) -> None:
    """Tell native code where the environments of the kernels linked into it are, which errors need."""
    for environment in result._find_referenced_environments():
        result.library.codegen.set_env(environment.env_name, environment)


def check(options: dict[str, Any]) -> None:
    """Raise an error unless Numba takes these options, and lets this module override its parts."""

    def linking(function: Any, kept: dict[str, bytes], new: dict[str, bytes]) -> LinkingKernel:
        made = LinkingKernel(function, {"nopython": True, "boundscheck": None, **options}, False)
        made.keep_in(
            MemoryCache(function, "linking", kept, new), _LinkedMemory(function, "linked", kept, new)
        )
        return made

    check_pair(linking)
