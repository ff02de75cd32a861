"""What kind of work kernels do, by names as libraries and compilers give them."""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest

from tests.support.optional_dependencies import ROOT
from warplens.analysis.gpu.kernel_classes import CLASSES, class_of, classes

DATA = ROOT.parent / "shared" / "data"  # beside the checkout

NAMES = {
    "gemm": [
        "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x256x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas",
        "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN",
        "volta_sgemm_128x32_nt",
        "void cutlass::Kernel2<cutlass_80_tensorop_s16816gemm_bf16_128x64_32x6_nn_align8>(…::Params)",
        "Cijk_Ailk_Bljk_HHS_BH_MT128x128x16_SE_1LDSB0_APM1",
        "void splitKreduce_kernel<float, float, float, float, true, false, false>(cublasSplitKParams<float>)",
        "void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 4, 4, false>(float)",
        "triton_tem_fused_addmm_3",
        "gemm_fusion_dot_12",
        "fused_moe_kernel",
    ],
    "attention": [
        "void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<(int)128, (int)128, (int)64, (int)4, cutlass::bfloat16_t>>(Flash_fwd_params)",
        "fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128PersistentContext",
        "_attn_fwd",
        "void vllm::paged_attention_v1_kernel<unsigned short, 128, 16>(unsigned short*)",
        "fmha_cutlassF_f16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel)",
    ],
    "convolution": [
        "void cudnn::ops::nchwToNhwcKernel<__half, __half, float, false, true>(cudnn::ops::nchw2nhwc_params_t<float>)",
        "sm80_xmma_fprop_implicit_gemm_f16f16_f16f32_f32_nhwckrsc_nhwc_tilesize128x128x32",
        "igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt128x128x32_wt32x32x8_ws1x1",
        "void at::native::im2col_kernel<float>(long, float const*)",
        "cudnn::cnn::wgrad2d_grouped_direct_kernel<float>",
    ],
    "normalization": [
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, float, float const*)",
        "void vllm::rms_norm_kernel<c10::BFloat16, 8, 2>(c10::BFloat16*)",
        "triton_red_fused_native_layer_norm_0",
        "void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernel<float, float>(long)",
    ],
    "softmax": [
        "void <unnamed>::softmax_warp_forward<float, float, float, (int)6>(T2 *)",
        "triton_per_fused__softmax_2",
        "cross_entropy_fwd",
    ],
    "reduction": [
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::MeanOps<float, float>, unsigned int> >(…)",
        "triton_red_fused_sum_7",
        "void cub::DeviceReduceSingleTileKernel<cub::DeviceReducePolicy<float>>(float*)",
        "input_reduce_fusion_2",
    ],
    "elementwise": [
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)",
        "triton_poi_fused_convolution_relu_3",
        "void vllm::act_and_mul_kernel<c10::BFloat16, &silu_kernel>(c10::BFloat16*)",
        "loop_add_fusion_5",
        "void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)",
        "void at::native::elementwise_kernel<128, 2, void at::native::gpu_kernel_impl_nocast<masked_fill_kernel(at::Tensor&)>>(int)",
    ],
    "embedding": [
        "void split_embedding_codegen_forward_unweighted_kernel<float, float, float, long, 5ul>(at::PhiloxCudaState)",
        "void at::native::(anonymous namespace)::indexSelectLargeIndex<float, int, unsigned int, 1, 1, -2, true>(TensorInfo)",
    ],
    "sort/scan": [
        "void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, int, int>::Policy800>(int*)",
        "void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>(float)",
    ],
    "optimizer": [
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<TensorListMetadata<4>, FusedAdamMathFunctor<float, 4>>(…)",
        "triton_for_fused_0",
    ],
    "memory": [
        "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>(float*)",
        "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(at::TensorIteratorBase &)::[lambda()]>(int)",
        "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int)",
        "batched_transpose_32x32_half",
    ],
    "communication": [
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
        "rccl_main_kernel",
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)",
        "void dpsk::ep::internode::combine<10, 7168>(void*, int)",
        "void deep_ep::internode_ll::dispatch<true, false, 3, 10, 7168>(void*)",
        "void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)",
        "nvshmemi_transfer_rma_put",
    ],
    "random": [
        "void at::native::(anonymous namespace)::distribution_elementwise_grid_stride_kernel<float, 4, normal_kernel>(long)",
        "void at::native::(anonymous namespace)::fused_dropout_kernel_vec<float, float, unsigned int, 1, 4, bool>(…)",
    ],
    "linear algebra": [
        "void gesvdbj_batch_32x16<float, float>(long, int const*)",
        "void getrf_pivot<getrf_params_<float, 512, 1, 512, 512, 1> >(int, int)",
        "void trsm_ln_up_kernel<float, 32u, 32u, 4u, false>(int, int)",
    ],
    "autotuning": [
        "stream_executor::gpu::RedzoneAllocatorKernelImpl(unsigned char*, unsigned char, unsigned long, unsigned int*)",
        "stream_executor::gpu::(anonymous namespace)::DelayKernel(stream_executor::GpuSemaphoreState volatile*)",
    ],
    "other": ["my_kernel(float*, int)", "", "k"],
}


def test_every_class_has_names_here() -> None:
    assert tuple(sorted(NAMES)) == tuple(sorted(CLASSES))


@pytest.mark.parametrize(
    ("wanted", "name"), [(wanted, name) for wanted, names in NAMES.items() for name in names]
)
def test_names_of_libraries(wanted: str, name: str) -> None:
    assert class_of(name) == wanted


def test_arrays() -> None:
    names = ["volta_sgemm_128x32_nt", None, "ncclDevKernel_Generic(x)", "volta_sgemm_128x32_nt"]
    wanted = ["gemm", None, "communication", "gemm"]
    for array in (
        pa.array(names),
        pa.array(names).dictionary_encode(),
        pa.chunked_array([names[:2], names[2:]], pa.string()),
    ):
        assert classes(array).to_pylist() == wanted
    assert classes(pa.array([], pa.string())).to_pylist() == []


def other_share(spent: Iterable[tuple[str, int]]) -> float:
    """The share of kernel time (name, ns) that no class is known of."""
    sums: Counter[bool] = Counter()
    for name, ns in spent:
        sums[class_of(name) == "other"] += ns
    return sums[True] / max(sums.total(), 1)


def recorded() -> dict[str, list[tuple[str, int]]]:
    """The kernels of programs that an H200 ran, with their times; each as long as a five hundredth of its program."""
    programs: dict[str, list[tuple[str, int]]] = {}
    for line in (ROOT / "tests" / "golden" / "kernel_names.tsv").read_text(encoding="utf-8").splitlines():
        program, ns, name = line.split("\t")
        programs.setdefault(program, []).append((name, int(ns)))
    return programs


# All that these run is kernels of their own: nothing in `work(float*, int)` says what it does.
OWN = ("async_pageable", "managed", "plain", "serial_kernel")


@pytest.mark.parametrize("program", sorted(set(recorded()) - set(OWN)))
def test_little_is_other_on_a_real_gpu(program: str) -> None:
    assert other_share(recorded()[program]) < 0.1


def real_kernels(path: Path) -> Iterator[tuple[str, int]]:
    """The kernels of a file of another tool, read without us."""
    if path.suffix == ".sqlite":
        with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as source:
            yield from source.execute(
                "SELECT s.value, k.end - k.start FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName"
            )
        return
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for event in json.load(file)["traceEvents"]:
            if event.get("cat") in ("kernel", "Kernel"):
                yield event["name"], round(1000 * event["dur"])


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason=f"the recordings of real GPUs are not here ({DATA})")
def test_little_is_other_in_recordings_of_others() -> None:
    paths = [
        *DATA.glob("nsys/*.sqlite"),
        *DATA.glob("kineto/*.json.gz"),
        *DATA.glob("kineto/*/rank*.json.gz"),
    ]
    shares = {path.name: other_share(real_kernels(path)) for path in paths}
    assert len(shares) > 10
    assert {name: share for name, share in shares.items() if share >= 0.1} == {}
