"""The examples that are installed: each is there, and its queries find something."""

from __future__ import annotations

import pytest

import uncertain_cep as uc


@pytest.mark.parametrize("name", ["chemotherapy", "cluster"])
def test_every_query_of_an_example_with_events_finds_something(name: str) -> None:
    events = uc.examples.events(name)
    queries = uc.examples.queries(name)
    assert queries
    for text in queries.values():
        assert uc.match(events, text).num_rows


def test_every_example_has_a_schema_and_a_query() -> None:
    assert uc.examples.names() == ["chemotherapy", "cluster", "nezha", "spark_eventlogs", "yahoo_hadoop"]
    for name in uc.examples.names():
        uc.load_schema(uc.examples.folder(name) / "schema.toml")
        assert all(map(uc.parse, uc.examples.queries(name).values()))


def test_what_is_not_there_is_said() -> None:
    with pytest.raises(uc.OptionError, match="no example 'clusters': they are chemotherapy, cluster"):
        uc.examples.folder("clusters")
    with pytest.raises(uc.OptionError, match="README"):
        uc.examples.events("nezha")
