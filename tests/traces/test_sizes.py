"""The choice of an engine depends on the bytes of traces once they are unpacked."""

from __future__ import annotations

import bz2
import gzip
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from uncertain_cep.cli.match import choose_engine
from uncertain_cep.traces.sizes import unpacked_bytes


@cache
def rows() -> bytes:
    draw = random.Random(1)
    return "".join(f"A,{number},{number},{draw.random()}\n" for number in range(200_000)).encode()


def _arrow(name: str) -> Callable[[bytes], bytes]:
    def pack(data: bytes) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, name) as stream:
            stream.write(data)
        return bytes(sink.getvalue())

    return pack


PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress, ".bz2": bz2.compress, ".zst": _arrow("zstd"), ".lz4": _arrow("lz4"),
}  # fmt: skip
SUFFIXES = pytest.mark.parametrize("suffix", sorted(PACK))


def test_plain_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "a.csv").write_bytes(b"x" * 1000)
    (tmp_path / "deep" / "b.jsonl").write_bytes(b"x" * 500)
    assert unpacked_bytes([str(tmp_path)]) == 1500
    assert unpacked_bytes([str(tmp_path / "a.csv"), str(tmp_path / "nowhere.csv")]) == 1000


@SUFFIXES
def test_small_files_are_exact(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"small.csv{suffix}"
    file.write_bytes(PACK[suffix](rows()[:5000]))
    assert unpacked_bytes([str(file)]) == 5000


@SUFFIXES
def test_large_files_are_judged_by_their_beginning(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"large.csv{suffix}"
    file.write_bytes(PACK[suffix](rows()))
    assert 0.5 < unpacked_bytes([str(file)]) / len(rows()) < 1.5


@SUFFIXES
def test_many_files_are_judged_by_the_first(tmp_path: Path, suffix: str) -> None:
    for number in range(40):
        (tmp_path / f"{number}.csv{suffix}").write_bytes(PACK[suffix](rows()[:20_000]))
    assert unpacked_bytes([str(tmp_path)]) == pytest.approx(40 * 20_000, rel=0.01)


@SUFFIXES
def test_what_unpacks_to_a_thousand_times_as_much(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"line.csv{suffix}"
    file.write_bytes(PACK[suffix](b"x" * 60_000_000))
    assert unpacked_bytes([str(file)]) > 40_000_000


@SUFFIXES
def test_damaged_files_count_what_could_be_read(tmp_path: Path, suffix: str) -> None:
    file = tmp_path / f"damaged.csv{suffix}"
    file.write_bytes(b"no archive at all")
    assert unpacked_bytes([str(file)]) == 0


def test_parquet_by_its_footer(tmp_path: Path) -> None:
    file = tmp_path / "zeros.parquet"
    pq.write_table(pa.table({"x": list(range(100_000))}), file, use_dictionary=False, compression="zstd")
    assert unpacked_bytes([str(file)]) >= 800_000
    file.write_bytes(b"PAR1")
    assert unpacked_bytes([str(file)]) == 0


def test_the_engine_is_chosen_by_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "trace.csv.gz"
    file.write_bytes(gzip.compress(b"x" * 3_000_000))
    assert choose_engine("auto", (str(file),), None)[0] == "local"
    monkeypatch.setitem(choose_engine.__globals__, "IN_PROCESS_BYTES", 2**21)
    chosen, why = choose_engine("auto", (str(file),), None)
    assert (chosen, why) == ("spark", "about 2.9 MiB of traces, unpacked, more than 2 MiB")
