"""Programs that are built or started oddly, with all of the CPU side on: they do as they do alone, and are seen where they can be."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.programs.launching import environment
from tests.support.programs.python_running import CPU_STUB, PythonPrograms
from tests.support.programs.under_everything import both, same
from warplens.recording.options.cpu_settings import FILE_ACCESS, NATIVE_SAMPLES, OS_CALLS, STATES
from warplens.report import open as open_report

pytestmark = [pytest.mark.require("native", "gcc"), pytest.mark.timeout(600)]

# Waits, allocates on several threads, and tells what it found.
WORK = """
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef PLUGIN
extern int plugin(void);
#endif
static void *allocate(void *seed) {
  unsigned sum = 0;
  for (unsigned i = 0; i < 20000; ++i) {
    size_t size = (i * 7919u + (unsigned)(size_t)seed) % 3000 + 1;
    char *room = malloc(size);
    memset(room, (int)i, size);
    sum += (unsigned char)room[size / 2];
    free(room);
  }
  usleep(2000);
  return (void *)(size_t)sum;
}
int main(int count, char **words) {
  pthread_t threads[4];
  unsigned long sum = 0;
  for (size_t i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, allocate, (void *)i);
  for (size_t i = 0; i < 4; ++i) {
    void *its;
    pthread_join(threads[i], &its);
    sum += (size_t)its;
  }
  usleep(20000);
  if (count > 1) {
    void *library = dlopen(words[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    int (*plugin)(void) = library == NULL ? NULL : (int (*)(void))dlsym(library, "plugin");
    if (plugin == NULL) return 9;
    printf("plugin %d\\n", plugin());
  }
  printf("sum %lu\\n", sum);
  return 4;
}
"""
PLUGIN = """
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int plugin(void) {
  int ends[2];
  char *line = NULL;
  size_t room = 0;
  FILE *file = popen("echo from a child", "r");
  if (file == NULL || getline(&line, &room, file) != 13 || pclose(file) != 0) return -1;
  free(line);
  usleep(20000);
  return pipe(ends) == 0 && write(ends[1], "x", 1) == 1 ? 17 : -1;
}
"""
Build = Callable[..., Path]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Compile a text and return the file."""

    def compiled(name: str, text: str, *words: str) -> Path:
        (tmp_path / f"{name}.c").write_text(text, encoding="utf-8")
        subprocess.run(
            ["gcc", "-O1", f"{name}.c", "-o", name, *words, "-pthread", "-ldl"], cwd=tmp_path, check=True
        )
        return tmp_path / name

    return compiled


def names(report: Path) -> set[str]:
    with open_report(report) as opened:
        return set(opened.table("osrt", ["name"]).column("name").to_pylist())


def allocator(*candidates: str) -> str | None:
    """The library, where the machine has it."""
    listed = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    return next(
        (
            word
            for line in listed.splitlines()
            for word in line.split()
            if word.rpartition("/")[2] in candidates
        ),
        None,
    )


@pytest.mark.parametrize("library", ["libjemalloc.so.2", "libtcmalloc_minimal.so.4", "libtcmalloc.so.4"])
def test_another_allocator_that_is_preloaded(library: str, build: Build, tmp_path: Path) -> None:
    path = allocator(library)
    if path is None:
        pytest.skip(f"there is no {library}")
    bare, with_us, report = both(tmp_path, build("work", WORK), env=environment(LD_PRELOAD=path))
    same(bare, with_us)
    assert bare.returncode == 4
    assert "usleep" in names(report)


def test_a_library_that_binds_to_itself_first(build: Build, tmp_path: Path) -> None:
    """Its calls are not seen, those of the program are."""
    plugin = build("plugin.so", PLUGIN, "-shared", "-fPIC")
    bare, with_us, report = both(tmp_path, build("work", WORK), plugin)
    same(bare, with_us)
    assert "plugin 17\n" in bare.stdout
    assert "usleep" in names(report)


def test_a_static_program_is_left_alone(build: Build, tmp_path: Path) -> None:
    try:
        program = build(
            "work", WORK.replace("dlopen(words[1], RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND)", "NULL"), "-static"
        )
    except subprocess.CalledProcessError:
        pytest.skip("no static C library")
    bare, with_us, report = both(tmp_path, "sh", "-c", f"{program}; exit $?")
    same(bare, with_us)
    assert bare.returncode == 4
    with open_report(report) as opened:
        processes = {row["name"]: row["recorded"] for row in opened.table("processes").to_pylist()}
    assert processes["work"] is False


@pytest.mark.require("sanitizers")
def test_a_program_with_the_address_sanitizer_is_left_alone_and_named(build: Build, tmp_path: Path) -> None:
    bare, with_us, report = both(
        tmp_path, build("work", WORK, "-fsanitize=address"), env=environment(ASAN_OPTIONS="detect_leaks=0")
    )
    assert (with_us.returncode, with_us.stdout) == (bare.returncode, bare.stdout)
    assert bare.returncode == 4
    with open_report(report) as opened:
        told = [
            row["message"] for row in opened.table("diagnostics").to_pylist() if row["code"] == "not-followed"
        ]
    assert any("sanitizer" in message for message in told), told


@pytest.mark.require("sanitizers")
@pytest.mark.parametrize("wrong", [False, True])
def test_the_address_sanitizer_before_us(wrong: bool, build: Build, tmp_path: Path) -> None:
    """Preloaded by hand, in the order that it wants: it works with us, and still finds what it is there for."""
    found = subprocess.run(
        ["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    text = WORK.replace("free(room);", "free(room); room[0] = 1;") if wrong else WORK
    program = build("work", text, "-fsanitize=address", "-g", "-w")
    programs = PythonPrograms(tmp_path)
    preload = f"{Path(found).resolve()}:{CPU_STUB}"
    flags = OS_CALLS | FILE_ACCESS | NATIVE_SAMPLES | STATES
    run = programs.run([program], flags, LD_PRELOAD=preload, ASAN_OPTIONS="detect_leaks=0")
    if wrong:
        assert "heap-use-after-free" in run.stderr
        assert run.status != 0
    else:
        assert (run.status, run.stderr) == (4, "")
        assert "usleep" in {record.name for record in run.of("os_call")}
