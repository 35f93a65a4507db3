"""Point-based evaluation: stream expansion, an NFA^b over point events, and collapsing of its matches.

The buffer of the automaton is a tree of prefixes: a node has one parent, so no pointer needs a version.
"""

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
