"""`warplens source`: shares beside the lines of files, which files are shown, and what a report cannot make us read."""

from __future__ import annotations

import marshal
import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.reports import cpu_story
from warplens.analysis.cpu.frames import is_library
from warplens.analysis.cpu.source_lines import read_source
from warplens.cli.group import commands
from warplens.importers.importing import import_file


def ask(path: Path, *options: str) -> Result:
    return CliRunner().invoke(commands, ["source", str(path), *options])


def draw(path: Path, *options: str) -> list[str]:
    result = ask(path, *options)
    assert result.exit_code == 0, result.output or result.exception
    return result.stdout.splitlines()


@pytest.fixture
def story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A report whose files lie in `tmp_path`: 84 samples, of which 25 passed `load` in train.py and 40 ended in model.py:9."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("COLORTERM", raising=False)
    return cpu_story.write_program(tmp_path)


@pytest.mark.slow
def test_each_line_has_its_shares(story: Path, tmp_path: Path) -> None:
    lines = draw(story, "train.py", "--context", "1")
    assert lines[2:4] == [f"{tmp_path}/train.py", "95.2 % of the samples came by, 41.7 % ended here"]
    assert " 95.2 %  11.9 %   80  line 80" in lines  # main: 10 of 84 samples end there
    assert " 23.8 %  23.8 %   20  line 20" in lines or " 29.8 %  23.8 %   20  line 20" in lines
    assert " " * 15 + "   79  line 79" in lines
    assert not any(line.endswith("line 60") for line in lines), (
        "lines that are not near a hot one are left out"
    )
    assert any(line.endswith("line 60") for line in draw(story, "train.py", "--all"))


@pytest.mark.slow
def test_the_program_comes_before_its_libraries(story: Path) -> None:
    shown = draw(story)
    assert [Path(shown[at - 1]).name for at, line in enumerate(shown) if "ended here" in line] == [
        "train.py",
        "model.py",
        "loader.py",
    ]
    assert len([line for line in draw(story, "--files", "1") if "ended here" in line]) == 1


@pytest.mark.slow
def test_a_file_that_is_not_here_or_changed_is_told(story: Path, tmp_path: Path) -> None:
    assert "the file changed after the recording: lines may have moved" not in draw(story, "model.py")
    later = story.stat().st_mtime + 60
    os.utime(tmp_path / "model.py", (later, later))
    assert "the file changed after the recording: lines may have moved" in draw(story, "model.py")
    (tmp_path / "model.py").unlink()
    lines = draw(story, "model.py")
    assert "the file is not on this machine: lines are shown by their functions" in lines
    assert " 47.6 %  47.6 %  9  in Model.forward" in lines
    assert "no sample was in a file none.py; the hottest files are train.py" in str(
        ask(story, "none.py").exception
    )


def page(path: Path, *options: str) -> str:
    result = ask(path, "-f", "html", *options)
    assert result.exit_code == 0, result.output or result.exception
    return result.stdout


def row(text: str, line: str) -> str:
    """What the page says of a line, without markup."""
    (found,) = re.findall(rf'<tr id="{line}".*?</tr>', text)
    return re.sub(r"(<[^>]*>)+", "|", found)


@pytest.mark.slow
def test_the_page_has_every_line_of_the_program(story: Path, tmp_path: Path) -> None:
    text = page(story)
    assert row(text, "L80") == "|80|95.2 %|11.9 %|line 80|"
    assert row(text, "L79") == "|79|line 79|"
    assert row(text, "f2L9") == "|9|47.6 %|47.6 %|model 9|"
    assert f'<a href="#f2">{tmp_path}/model.py</a>' in text
    assert '<a href="#f2L9">model.py:9</a>' in text, "it is the line in which most samples ended"
    assert [at for at in range(1, 101) if f'id="L{at}"' in text] == list(range(1, 101))
    assert "the file is not on this machine" in text, "loader.py is not"
    assert 'id="L60"' not in page(story, "train.py", "--context", "2")


@pytest.mark.slow
def test_the_hotter_a_line_the_greater_its_step(story: Path) -> None:
    """There are ten steps for each of the two shares, and a style for those that the reader chose."""
    text = page(story)
    steps = {line: re.findall(rf'<tr id="{line}" class="(.*?)"', text) for line in ("L80", "L20", "L70")}
    assert steps == {"L80": ["t10 o5"], "L20": ["t6 o8"], "L70": []}
    assert "#by-total:checked~.src .t10{" in text
    assert "#by-own:checked~.src .o5{" in text


@pytest.mark.slow
def test_lines_of_libraries_are_shown_around_the_hot_ones(
    story: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warplens.cli.flame.source_page.is_library", lambda path: path.endswith("train.py"))
    shown = page(story)
    near = [at for at in range(1, 101) if f'id="L{at}"' in shown]
    assert near == [*range(15, 28), *range(45, 56), *range(75, 96)]
    assert 'id="L60"' in page(story, "--all")


@pytest.mark.slow
def test_text_of_files_cannot_become_part_of_the_page(story: Path, tmp_path: Path) -> None:
    changed = story.stat().st_mtime - 60
    (tmp_path / "train.py").write_text("\n".join(["</td><script>alert(1)</script>\t\x1b[31m"] * 90))
    os.utime(tmp_path / "train.py", (changed, changed))
    text = page(story)
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "\x1b" not in text
    assert "default-src 'none'" in text


@pytest.mark.slow
def test_the_page_goes_to_a_file_that_is_not_there_yet(story: Path, tmp_path: Path) -> None:
    out = tmp_path / "lines.html"
    assert page(story, "-o", str(out)) == ""
    assert out.read_text(encoding="utf-8") == page(story)
    assert "--force-overwrite replaces it" in str(ask(story, "-o", str(out)).exception)
    assert ask(story, "-o", str(out), "--force-overwrite", "--color", "always").exit_code == 0
    assert "line 80" in out.read_text(encoding="utf-8")
    assert "\x1b" not in out.read_text(encoding="utf-8")


@pytest.mark.slow
def test_samples_without_lines_are_told(tmp_path: Path) -> None:
    (tmp_path / "run.prof").write_bytes(marshal.dumps({("/a.py", 3, "f"): (1, 1, 1.0, 1.0, {})}))
    import_file(tmp_path / "run.prof", tmp_path / "run.warplens")
    assert "the samples have no lines" in str(ask(tmp_path / "run.warplens").exception)


def test_libraries_are_distinguished_from_the_program() -> None:
    libraries = (
        "<frozen os>",
        "/usr/lib/python3.11/json/encoder.py",
        "/usr/lib/python3/dist-packages/yaml/reader.py",
        "json.py",
    )
    assert all(
        is_library(file) for file in (*libraries, "/venv/lib/python3.12/site-packages/torch/nn/modules.py")
    )
    assert not any(is_library(file) for file in ("/app/train.py", "train.py", "/home/me/json.py"))


def test_a_report_cannot_make_us_read_what_is_no_source(tmp_path: Path) -> None:
    secret = tmp_path / "id_rsa"
    secret.write_text("secret")
    assert read_source(str(secret)) is None
    os.mkfifo(tmp_path / "pipe.py")
    assert read_source(str(tmp_path / "pipe.py")) is None  # and does not wait for a writer
    assert read_source("/dev/zero") is None
    (tmp_path / "large.py").write_bytes(b"#" * (5 << 20))
    assert read_source(str(tmp_path / "large.py")) is None
    (tmp_path / "fine.py").write_text("a = 1\nb = 2\n")
    assert read_source(str(tmp_path / "fine.py")) == ["a = 1", "b = 2"]
