"""The small checkpoint that later versions go on from; ``python -m tests.spark.old_checkpoint`` made it.

It is made anew only with a new format of the state, beside the old one.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Final

import pyarrow as pa

import uncertain_cep as uc
from tests.spark.streams import pieces_of, put, reading, run
from uncertain_cep.spark import get_session, match

CHECKPOINT: Final = Path(__file__).parent / "checkpoint_1"
QUERY: Final = "PATTERN SEQ(A a, !N n, B+ b[]) WHERE [key] WITHIN 20"
LARGEST: Final = 3
CUT: Final = 24
PLACE: Final = "/FOLDER"
"""What stands in the checkpoint for the folder of the stream."""


def events() -> pa.Table:
    """Return the events of the stream, of which the first ``CUT`` are in the checkpoint."""
    count = 48
    return pa.table(
        {
            "type": [("A", "B", "C", "B", "A", "N")[number * 5 % 6] for number in range(count)],
            "id": list(range(count)),
            "lower": [3 * number for number in range(count)],
            "upper": [3 * number + number % 4 for number in range(count)],
            "key": [number // 2 % 2 for number in range(count)],
        }
    )


def main() -> None:
    """Make the checkpoint."""
    table = events()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        put(folder / "events", *pieces_of(table.slice(0, CUT), [10], close=False))
        spark = get_session("local[1]", conf={"spark.sql.shuffle.partitions": "1"})
        frame = reading(spark, folder / "events", table.schema)
        matches = match(frame, QUERY, largest_interval=LARGEST, buckets=1)
        output, _ = run(matches, folder)
        print(f"{output.num_rows} of {uc.match(table, QUERY).num_rows} matches came out before")
        spark.stop()
        shutil.rmtree(CHECKPOINT, ignore_errors=True)
        shutil.copytree(folder / "checkpoint", CHECKPOINT, ignore=shutil.ignore_patterns("*.crc"))
        _replace(CHECKPOINT, name, PLACE)


def _replace(checkpoint: Path, old: str, new: str) -> None:
    """Replace a folder in what Spark notes by absolute paths: the files that it has read, and its own."""
    for pattern in ("sources/0/*", "state/0/_metadata/v2/*"):
        for file in checkpoint.glob(pattern):
            file.write_text(file.read_text().replace(old, new))


def copied(folder: Path) -> None:
    """Copy the checkpoint, and the files that it has read, to a folder."""
    shutil.copytree(CHECKPOINT, folder / "checkpoint")
    _replace(folder / "checkpoint", PLACE, str(folder))
    put(folder / "events", *pieces_of(events().slice(0, CUT), [10], close=False))


if __name__ == "__main__":
    main()
