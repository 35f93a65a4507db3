"""One plan and one table of events in, batches of matches out: what every way of running shares."""

from uncertain_cep.candidates.event_times import ticks_of
from uncertain_cep.candidates.selection import Slicing
from uncertain_cep.executor.entry import candidates, execute, execute_within
from uncertain_cep.executor.kept import confident
from uncertain_cep.executor.sound_tables import check_table, constants_hold

__all__ = [
    "Slicing",
    "candidates",
    "check_table",
    "confident",
    "constants_hold",
    "execute",
    "execute_within",
    "ticks_of",
]
