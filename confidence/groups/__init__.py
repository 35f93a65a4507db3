"""The probability of at least one of several matches, or of several, whatever events and clocks they share.

A match is a conjunction: literals ``t_later - t_earlier >= least`` hold, and no *box* does, a box being a
conjunction, too (an event happened where it is forbidden). P(at least k matches) is found by holding
variables:

- What the ticks of held variables, and bounds of the others, decide is dropped; so are matches that imply
  others.
- Matches that share no variable are independent: their numbers add up.
- Else the variable that ties most is held. Given its tick t, P(n matches) is a polynomial of t on pieces: it
  is a signed sum of numbers of whole points of polytopes of difference constraints, whose matrix is totally
  unimodular (Dahmen and Micchelli). So few ticks of each piece tell the sum: no cost depends on lengths.

All terms are positive, so that small probabilities are as exact as large ones. The worst case is exponential,
and has to be: with probabilities of single ticks, permanents of 0-1 matrices are among the answers (#P-hard).
So there is a budget for each group.
"""

from confidence.groups.bounding import certain_bounds
from confidence.groups.estimates import Estimate, estimated
from confidence.groups.partial_groups import parts_of_groups
from confidence.groups.problems import Groups
from confidence.groups.resolving_groups import ResolvedVariables, resolve_variables
from confidence.groups.weighing_groups import WeighedGroups, weigh_groups

__all__ = [
    "Estimate",
    "Groups",
    "ResolvedVariables",
    "WeighedGroups",
    "certain_bounds",
    "estimated",
    "parts_of_groups",
    "resolve_variables",
    "weigh_groups",
]
