"""URLs of the web, which Spark neither reads nor writes: they are refused before it is asked."""

from __future__ import annotations

from typing import Any, Final

import pytest

from uncertain_cep import spark
from uncertain_cep.errors import OptionError, TraceError

WEB: Final = "https://example.org/x.parquet"
NO_SESSION: Final[Any] = None


def test_urls_of_the_web_are_refused_at_once() -> None:
    with pytest.raises(TraceError, match=r"https://example\.org/x\.parquet: it is a URL"):
        spark.read_traces(NO_SESSION, WEB)
    with pytest.raises(TraceError, match="it is a URL"):
        spark.read_traces(NO_SESSION, ["t.csv", WEB], format="csv")
    with pytest.raises(TraceError, match="it is a URL"):
        spark.read_stream(NO_SESSION, WEB)
    with pytest.raises(OptionError, match="is a URL, and results are written"):
        spark.write_matches(NO_SESSION, WEB)
    with pytest.raises(OptionError, match="is a URL, and results are written"):
        spark.match_to_parquet(NO_SESSION, "PATTERN SEQ(A a) WITHIN 5", WEB)
