"""Every unit of every family keeps its family's contract; a new file is held to it without being named anywhere."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import click
import pytest

from warplens import catalog
from warplens.catalog import Unit

TESTS = Path(__file__).resolve().parents[1]
BUILT = ("stats.tables", "rules.checks", "exporters.formats", "importers.formats", "cli.commands")
UNITS = [unit for name in catalog.FAMILIES for unit in catalog.units(name)]
every_unit = pytest.mark.parametrize("unit", UNITS, ids=[f"{unit.family.name}.{unit.id}" for unit in UNITS])
COMMANDS = catalog.units("cli.commands")
every_command = pytest.mark.parametrize("unit", COMMANDS, ids=[unit.id for unit in COMMANDS])


@cache
def _tests() -> dict[str, str]:
    own = Path(__file__).resolve()
    paths = [path for kind in ("*.py", "*.md") for path in TESTS.rglob(kind) if path.resolve() != own]
    return {path.relative_to(TESTS).as_posix(): path.read_text(encoding="utf-8") for path in paths}


@pytest.mark.parametrize("name", BUILT)
def test_the_families_are_found(name: str) -> None:
    assert catalog.units(name), f"{name} has no unit"


def test_family_folders_hold_nothing_but_units() -> None:
    for family in catalog.FAMILIES.values():
        if family.folder.is_dir():
            strangers = [
                path.name
                for path in family.folder.iterdir()
                if path.suffix != ".py" and path.name != "__pycache__"
            ]
            helpers = [path.name for path in family.folder.glob("_*.py") if path.name != "__init__.py"]
            assert not strangers + helpers, (
                f"{family.name} is for units; put these one folder up: {', '.join(strangers + helpers)}"
            )


@every_unit
def test_its_docstring_has_a_summary_and_the_sections_of_its_family(unit: Unit) -> None:
    assert re.fullmatch(r"\S.{3,}\.", unit.summary), (
        f"the first line of {unit.path.name} is one sentence with a full stop"
    )
    for title in unit.family.sections:
        assert unit.sections.get(title), f"{unit.path.name} lacks the docstring section `## {title}`"
    if unit.family.name == "rules.checks":
        begin = unit.sections["When it does not apply"]
        assert begin.startswith("If "), (
            f"{unit.path.name}: findings print `Does not apply if …`, so write: If …"
        )


@every_unit
def test_its_entry_point_is_typed(unit: Unit) -> None:
    if unit.family.name == "cli.commands":
        assert isinstance(unit.load().command, click.Command)
        return
    entry = unit.entry
    assert entry is not None, f"{unit.path.name} lacks `def {unit.family.entry}(…)`"
    arguments = [*entry.args.posonlyargs, *entry.args.args, *entry.args.kwonlyargs]
    untyped = [argument.arg for argument in arguments if argument.annotation is None]
    assert not untyped, (
        f"{entry.name}() of {unit.path.name} has parameters without a type: {', '.join(untyped)}"
    )
    assert entry.returns is not None, f"{entry.name}() of {unit.path.name} has no return type"
    assert entry.args.vararg is None, "options are keyword-only parameters, each by its name"
    assert entry.args.kwarg is None, "options are keyword-only parameters, each by its name"


@every_unit
def test_its_options_have_defaults_and_are_explained(unit: Unit) -> None:
    for option in unit.options:
        assert not option.required, (
            f"option {option.name} of {unit.id} needs a default: a unit runs without options"
        )
        assert option.text, (
            f"option {option.name} of {unit.id} is not explained under `Args:` of {unit.family.entry}()"
        )


@every_unit
def test_its_constants_are_there(unit: Unit) -> None:
    for name in unit.family.constants:
        assert unit.constant(name) is not None, (
            f"{unit.path.name} lacks the module constant {name} (a literal)"
        )


@pytest.mark.parametrize("unit", catalog.units("intrakernel.dsl"), ids=lambda unit: unit.id)
def test_an_in_kernel_language_has_the_example(unit: Unit) -> None:
    functions = {node.name: node for node in unit.tree.body if isinstance(node, ast.FunctionDef)}
    assert {"ways", "example"} <= functions.keys(), (
        f"{unit.path.name} lacks what warplens/intrakernel/dsl/__init__.py asks for"
    )
    assert [argument.arg for argument in functions["example"].args.args] == ["way"]


@every_unit
def test_a_test_names_it(unit: Unit) -> None:
    name = unit.id.replace("_", "[-_]")
    word = re.compile(rf"(\b|_){name}(\b|_)")
    quoted = re.compile(rf"""["'`]{name}["'` ]""")
    assert any(word.search(Path(path).stem) for path in _tests()) or any(
        map(quoted.search, _tests().values())
    ), f"no test names {unit.id}: add one under tests/"


@every_command
def test_its_help_has_an_example(unit: Unit) -> None:
    command: click.Command = unit.load().command
    context = click.Context(command, info_name=f"warplens {unit.id.replace('_', '-')}")
    text = command.get_help(context)
    assert re.search(rf"^ +(\S+=\S+ )*warplens {unit.id.replace('_', '.')}\b", text, flags=re.MULTILINE), (
        "an example line starts with `warplens`"
    )
    hidden = [
        parameter.name
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.hidden and not parameter.help
    ]
    assert not hidden, f"options without help: {', '.join(map(str, hidden))}"
