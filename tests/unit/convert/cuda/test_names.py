"""Names of kernels: demangled, and the function alone."""

from __future__ import annotations

import pytest

from warplens import native
from warplens.convert.cuda.names import call, function
from warplens.native.names import LONGEST_NAME

LAMBDA = "at::native::sqrt_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda(float)#1}"


@pytest.mark.parametrize(
    ("whole", "short"),
    [
        ("foo", "foo"),
        ("foo(int)", "foo"),
        ("ns::foo(float*, int)", "foo"),
        (f"void at::native::vectorized<4, {LAMBDA}, std::array<char*, 2ul> >(int, {LAMBDA})", "vectorized"),
        ("(anonymous namespace)::bar<int>(float*)", "bar"),
        ("void (anonymous namespace)::bar<f(long)::{lambda(long)#1}>(int)", "bar"),
        (
            "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_128x256_16x3_tn_align4>(cutlass_80::Params)",
            "Kernel",
        ),
        ("a::b(int)::c::operator()(float) const", "operator()"),
        ("f()::{lambda(int)#1}(int)", "{lambda(int)#1}"),
        ("void k<(Kind)3, (4)<(8)>(int)", "k"),
        (
            "std::enable_if<((sizeof(float))<(16)), void>::type ns::kern<float>(float*) [clone .part.0]",
            "kern",
        ),
        ("decltype ((a)+(b)) q<int>(int)", "q"),
        ("void x::operator< <int>(int)", "operator<"),
        ("void agent<thrust::x<&A::operator->>, void (*)(int)>(void (*)(int))", "agent"),
        ("void open<bar(int)>(", "open"),
        ("((((", "(((("),
        ("", ""),
    ],
)
def test_the_function_alone(whole: str, short: str) -> None:
    assert function(whole) == short


def test_demangled_as_binutils_does() -> None:
    assert native.demangle("_ZN2ns4gemmIfLi4EEEvPT_i") == "void ns::gemm<float, 4>(float*, int)"
    for name in ("foo", "", "_Z", "_ZN", "_Zé", "_Z3foo\0v", "_Z" + "1a" * 5_000):
        assert native.demangle(name) is None


def test_a_short_name_that_stands_for_gigabytes_is_cut() -> None:
    letters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    # Each argument is a pair of the one before it with itself: twice as long.
    pairs = "".join(f"S_IS{letter}_S{letter}_E" for letter in letters[:30])
    found = native.demangle(f"_Z1fSt4pairIiiE{pairs}")
    assert found is not None
    assert len(found) == LONGEST_NAME
    assert found.startswith("f(std::pair<int, int>, std::pair<std::pair<int, int>, ")


@pytest.mark.parametrize(
    ("recorded", "name"),
    [
        ("cudaLaunchKernel_v7000", "cudaLaunchKernel"),
        ("__cudaLaunchKernel_v13000", "cudaLaunchKernel"),
        ("__cudaLaunchKernel_ptsz_v13000", "cudaLaunchKernel_ptsz"),
        ("cuMemAlloc_v2", "cuMemAlloc_v2"),
        (None, "(unknown)"),
    ],
)
def test_a_call_has_the_name_that_programs_use(recorded: str | None, name: str) -> None:
    assert call(recorded) == name
