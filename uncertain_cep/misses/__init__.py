"""Why there is no match: conditions that fail in every world, by how much, and the nearest misses."""

from uncertain_cep.misses.asking import answered, why_not
from uncertain_cep.misses.reasons import Miss, Move, Reason, WhyNot

__all__ = ["Miss", "Move", "Reason", "WhyNot", "answered", "why_not"]
