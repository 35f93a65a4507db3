"""Point-based evaluation: stream expansion, an NFA^b over point events, and collapsing of its matches."""

from pointbased.automaton import Action, Automaton, Edge, Formulas, compile_sequence
from pointbased.collapse import CostlySignatureError, PointMatches
from pointbased.evaluation import PointEvaluation, sase_matches
from pointbased.expansion import EmitRule
from pointbased.waiting import AttributeValues

__all__ = [
    "Action",
    "AttributeValues",
    "Automaton",
    "CostlySignatureError",
    "Edge",
    "EmitRule",
    "Formulas",
    "PointEvaluation",
    "PointMatches",
    "compile_sequence",
    "sase_matches",
]
