"""Point-based evaluation: stream expansion, an NFA^b over point events, and collapsing of its matches."""

from pointbased.automaton import Action, Automaton, Edge, Formulas, compile_sequence
from pointbased.collapse import CostlySignatureError, PointMatches
from pointbased.evaluation import PointEvaluation

__all__ = [
    "Action",
    "Automaton",
    "CostlySignatureError",
    "Edge",
    "Formulas",
    "PointEvaluation",
    "PointMatches",
    "compile_sequence",
]
