"""Rows as aligned text."""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa

from uncertain_cep.cli.batch_writers import shown_rows


def test_numbers_to_the_right_text_to_the_left_times_without_trailing_zeros() -> None:
    table = pa.table(
        {
            "name": ["a", "long name", None],
            "n": [1, 100, None],
            "x": [0.5, 1 / 3, 1e-9],
            "at": pa.array(
                [
                    datetime(2026, 1, 5, 8),
                    datetime(2026, 1, 5, 8, 0, 30),
                    datetime(2026, 1, 5, 8, 0, 0, 120_000),
                ],
                pa.timestamp("us", "UTC"),
            ),
        }
    )
    assert shown_rows(table).splitlines() == [
        "  name         n         x  at",
        "  a            1       0.5  2026-01-05T08:00:00Z",
        "  long name  100  0.333333  2026-01-05T08:00:30Z",
        "                     1e-09  2026-01-05T08:00:00.12Z",
    ]


def test_no_value_steers_the_terminal() -> None:
    assert "\x1b" not in shown_rows(pa.table({"x": ["\x1b[31mred\x1b[0m"]}))
