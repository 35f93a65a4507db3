"""Formats that other programs write, read as events: no schema has to say what their columns are."""

from __future__ import annotations

from uncertain_cep.traces.readers.registry import (
    READERS,
    Reader,
    event_blocks,
    finest_tick,
    read_events,
    recognised,
)

__all__ = ["READERS", "Reader", "event_blocks", "finest_tick", "read_events", "recognised"]
