"""The kernels of spans are those that their generator writes."""

from __future__ import annotations

from eventbased.write_spans import PLACE, written_out


def test_written_kernels_are_those_of_the_generator() -> None:
    assert PLACE.read_text() == written_out(), "run python -m eventbased.write_spans"
