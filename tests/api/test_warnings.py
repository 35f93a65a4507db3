"""A warning names the code of the user, and the command line prints it once."""

from __future__ import annotations

import warnings

import click
import pytest
from click.testing import CliRunner

import uncertain_cep as uc
from uncertain_cep.cli import main
from uncertain_cep.errors import warn


def test_a_warning_names_the_first_line_outside_of_the_package() -> None:
    scope = {"__name__": "uncertain_cep.elsewhere", "warn": warn}
    exec("def inner():\n    warn('seen')\ndef outer():\n    inner()", scope)
    outer = scope["outer"]
    assert callable(outer)
    with pytest.warns(uc.UncertainCepWarning, match="^seen$") as caught:
        outer()
    assert [warning.filename for warning in caught] == [__file__]


def test_a_warning_of_the_callers_own_line() -> None:
    with pytest.warns(uc.UncertainCepWarning) as caught:
        warn("seen")
    assert [warning.filename for warning in caught] == [__file__]


def test_the_command_line_prints_each_of_our_warnings_once(monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def twice() -> None:
        warn("the stamps have no zone; UTC is assumed")
        warn("the stamps have no zone; UTC is assumed")
        warn("another")

    monkeypatch.setitem(main.commands, "twice", twice)
    shown = warnings.showwarning
    done = CliRunner().invoke(main, ["twice"])
    assert done.stderr == "warning: the stamps have no zone; UTC is assumed\nwarning: another\n"
    assert warnings.showwarning is shown
