"""The stack programs of :mod:`confidence.programs`, which the join interprets."""

from confidence.programs import STACK_DEPTH, Opcode, holds

__all__ = ["STACK_DEPTH", "Opcode", "holds"]
