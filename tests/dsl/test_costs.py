"""What a region costs in machine code, in every language: few instructions and registers, no atomics, no local memory, nothing when off."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from tests.dsl import costs
from tests.dsl.compiled import ARCHITECTURES, NEWEST, RELEASES, Code
from tests.dsl.costs import BARE, BOTH, GENERATION, LITERAL, OFF, PAYLOAD, REFERENCE, REGION, RING
from tests.dsl.languages import PATIENT, releases
from tests.dsl.machine_code import count

pytestmark = [pytest.mark.require("nvdisasm"), PATIENT]
RECORDS = (REGION, LITERAL, PAYLOAD, GENERATION, BOTH)


class Found(NamedTuple):
    language: str
    arch: str
    codes: dict[str, Code]


def _where() -> list[Any]:
    """Languages and architectures; what is beside the newest release on Hopper is one of many that are alike."""
    found = []
    for language, piece in costs.LANGUAGES.items():
        for arch in ARCHITECTURES:
            for release in RELEASES if language == "cute" else ("",):
                marks = [pytest.mark.require(piece)]
                if arch != "sm_90a" or release not in (NEWEST, ""):
                    marks.append(pytest.mark.exhaustive)
                found.append(
                    pytest.param(
                        (language, arch, release),
                        marks=marks,
                        id="-".join(filter(None, (language, release, arch))),
                    )
                )
    return found


@pytest.fixture(scope="module", params=_where())
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Found:
    language, arch, release = request.param
    if release and release not in releases("cutlass-dsl"):
        pytest.skip(f"no environment has nvidia-cutlass-dsl {release} (tools/dsl.py all)")
    return Found(
        language,
        arch,
        costs.codes(language, tmp_path_factory.mktemp(language), arch, release=release or NEWEST),
    )


def test_a_region_is_two_timers_and_one_predicated_store(found: Found) -> None:
    for name in RECORDS:
        code = found.codes[name]
        loop = code.loop
        assert count(loop, "CLOCK|TIMER") == 2, "\n".join(loop)
        assert count(loop, r"\bLDG") == 1, "the kernel's own load"
        assert count(loop, r"\b(STG|STS|STL|LDL|ATOM|ATOMG|RED|BSSY|CALL|S2U?R)\b") == 1, "one store"
        assert count(loop, r"^@!?P\d STG\.E\.\w+\.128") == 1
        assert count(loop, r"\bBRA\b") == 1, "the loop's own branch"
        assert not code.machine.count(r"\b(LDL|STL|CALL)\b")


def test_a_region_costs_few_instructions_and_registers(found: Found) -> None:
    for name in RECORDS:
        cost = costs.cost(found.codes, name)
        assert cost.instructions <= costs.INSTRUCTIONS[found.language][name], (name, found.codes[name].loop)
        assert cost.registers <= costs.most_registers(found.language, name), name


def test_a_ring_takes_a_store_to_shared_memory_only(found: Found) -> None:
    code = found.codes[RING]
    registers = code.machine.registers - found.codes[BARE].machine.registers
    assert registers <= costs.most_registers(found.language, RING)
    assert not code.machine.count(r"\b(LDL|STL|CALL)\b")
    if found.arch == "sm_80" and found.language in ("cute", "cuda"):
        return  # its loop is not told from that which copies the ring
    assert count(code.loop, r"\b(STG|ATOM|ATOMG|RED)") == 0
    assert count(code.loop, r"^@!?P\d STS\.64") == 1
    assert costs.cost(found.codes, RING).instructions <= costs.INSTRUCTIONS[found.language][RING], code.loop


def test_off_is_the_code_of_a_kernel_without_regions(found: Found) -> None:
    bare, off = found.codes[BARE], found.codes[OFF]
    assert bare.ptx == off.ptx
    assert bare.cubin.read_bytes() == off.cubin.read_bytes()
    assert bare.cubin.read_bytes() != found.codes[REGION].cubin.read_bytes()


def test_a_region_costs_a_fraction_of_the_reference_design(found: Found) -> None:
    """Which comes back to global memory for each event; under its names here it claims once and stores once."""
    if REFERENCE not in found.codes:
        pytest.skip(f"there is none in {found.language}")
    reference = costs.cost(found.codes, REFERENCE).instructions
    assert reference > 2 * costs.cost(found.codes, REGION).instructions
