"""The columns of the arrays that the run loop works on, by name."""

from __future__ import annotations

from typing import Final

# Of a candidate. A witness has the number of its pool behind those of the components, and its group for a
# partition.
COMPONENT: Final = 0
PARTITION: Final = 1
LOWER: Final = 2
UPPER: Final = 3
EVENT: Final = 4
PMF: Final = 5  # where its probabilities start, or NONE
SHARED: Final = 6  # whether the event is a candidate of other components too
ROOT: Final = 7  # its node as the first event of a match, NONE or REFUSED
UNSEEN: Final = 8  # the first tick not expanded yet
LIMIT: Final = 9  # under contiguity the last tick of an event that can follow directly
CANDIDATE_COLUMNS: Final = 10

# Of a node.
PARENT: Final = 0
TAKEN: Final = 1  # the candidate
STATE: Final = 2
EXPIRES: Final = 3  # the last tick at which an event can be taken after it
LATER: Final = 4  # the next node of the same state and partition
CHILD: Final = 5  # the first one
SIBLING: Final = 6  # the next child of the same parent
RUNS_START: Final = 7
RUNS_COUNT: Final = 8
RUNS_ROOM: Final = 9  # 0: points are not tried on it
FIRST_LOW: Final = 10  # the first tick of the first event's time
FIRST_COUNT: Final = 11  # the number of these ticks
RANGE_LOW: Final = 12  # of a complete match
RANGE_HIGH: Final = 13
MIXED: Final = 14  # whether a child's event is a candidate of several components
DEPTH: Final = 15  # events before its own
LAST_TAKE: Final = 16  # the last tick of a further event of its component
LAST_BEGIN: Final = 17  # the last tick of an event of the next component
PROCEEDS: Final = 18  # whether the component may be left: 0 if it was not asked, else 1 or 2 for no
NEXT_COMPLETE: Final = 19
NODE_COLUMNS: Final = 20

# Of the numbers in use.
NODES: Final = 0
RUNS: Final = 1
ENTRIES: Final = 2
COMPLETE: Final = 3  # the first complete match that is not released yet
COMPLETES: Final = 4  # how many these are
COUNTS: Final = 5

# Of a move: an edge that consumes, with the PROCEED edges that go before or behind it.
SOURCE: Final = 0
TARGET: Final = 1
TAKING: Final = 2  # whether it is a TAKE
FORMULA: Final = 3
FORMULA_END: Final = 4
LEAVE: Final = 5  # the formula of the PROCEED before it
LEAVE_END: Final = 6
ACCEPTS: Final = 7  # whether it can end a match
FINISH: Final = 8  # the formula of the PROCEED behind it
FINISH_END: Final = 9
TAKES_ON: Final = 10  # whether the target takes further events
BEGINS_ON: Final = 11  # whether the target begins a further component

# Of the cursor, which says where the run loop goes on.
GROUP: Final = 0  # the first point of a group
MOVE: Final = 1  # within the moves of its component
NODE: Final = 2  # NONE: from the head of the list
PREVIOUS: Final = 3  # the node before it in the list
POINT: Final = 4  # within the group

NONE: Final = -1
REFUSED: Final = -2
