"""Classifies kernels by their names: libraries and compilers follow known patterns."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

CLASSES: tuple[str, ...] = (
    "gemm",
    "attention",
    "convolution",
    "normalization",
    "softmax",
    "reduction",
    "elementwise",
    "embedding",
    "sort/scan",
    "optimizer",
    "memory",
    "communication",
    "random",
    "linear algebra",
    "autotuning",
    "other",
)

# The first pattern that matches decides, so the most specific ones stand first. Names are matched in lower case. A template's arguments say
# what it computes, so the whole name counts; only of the general kernels of PyTorch and Inductor does the head say more than the rest.
# Where the words come from stands above each row; tests/golden/kernel_names.tsv has the names of real recordings.
_RULES: tuple[tuple[str, str], ...] = (
    # XLA: stream_executor's kernels that time candidates and compare their results
    ("autotuning", r"stream_executor::.*(redzone|delaykernel|repeatbuffer|xla_(fp|int)_comparison)"),
    # NCCL, RCCL, NVSHMEM, MSCCL++, oneCCL; DeepEP (`deep_ep::`, in forks `dpsk::ep::`); vLLM, TensorRT-LLM, PyTorch's symmetric memory
    (
        "communication",
        r"nccl|rccl|nvshmem|mscclpp|oneccl|deep_?ep::|dpsk::ep::|cross_device_reduce|(all|quick)_?reduce|all_?gather|reduce_?scatter|all_?to_?all|"
        r"sendrecv|multimem|(one|two)_?shot_|userbuffers|symm_mem|lamport",
    ),
    # PyTorch's general kernels: the functor is an argument
    ("random", r"distribution_elementwise"),
    ("memory", r"elementwise_kernel.*(copy_kernel_cuda|fillfunctor|(?<!masked_)fill_kernel)"),
    ("optimizer", r"multi_tensor_apply|multi_tensor_(adam|sgd|lamb|l2norm|scale|axpby)"),
    ("embedding", r"(?<!rotary_)embedding|index_?select|vectorized_gather|bounds_check_indices"),
    ("elementwise", r"(^|[ :>])(\w*vectorized_|\w*unrolled_|\w*legacy_|index_)?elementwise_kernel"),
    # PyTorch, ONNX Runtime, Triton
    ("softmax", r"soft_?max|cross_entropy"),
    # PyTorch, CUB
    ("reduction", r"at::native::reduce_kernel|devicereduce"),
    # vLLM, bitsandbytes
    ("elementwise", r"quantize|rotary_embedding"),
    ("memory", r"reshape_and_cache"),
    # Inductor: what is pointwise, a reduction, a template
    ("elementwise", r"^triton_poi_"),
    ("normalization", r"^triton_(red|per|mix)_.*(norm|welford)"),
    ("reduction", r"^triton_(red|per|mix)_"),
    (
        "optimizer",
        r"^triton_for_|adamw?(?!\w*mul)|[_:]sgd|[_:]lamb(?!da)|adagrad|rmsprop|[_:]lion_|optim(izer)?|unscale|clip_grad",
    ),
    ("sort/scan", r"^triton_(spl|sort)_"),
    # FlashAttention, xFormers, cuDNN (fmha), FlashInfer, vLLM
    (
        "attention",
        r"flash|fmha|attention|attn|[_:]mha|[_:]mla[_:<]|sdpa|batch(prefill|decode)|single(prefill|decode)",
    ),
    # PyTorch, Apex, vLLM, cuDNN (bn_fw, bn_bw)
    (
        "normalization",
        r"(layer|rms|batch|group|instance|weight|fused_?add_?rms)_?norm|ln_(fwd|bwd)|bn_(fw|bw|inf|train)|gammabeta|rowwisemoments|welford",
    ),
    # cuDNN, CUTLASS (fprop, dgrad, wgrad), MIOpen, PyTorch
    (
        "convolution",
        r"conv(?!er)|winograd|implicit_(gemm|convolve)|im2col|col2im|miopen|igemm_(fwd|bwd|wrw)|depthwise|xmma_(fprop|dgrad|wgrad)|"
        r"[dw]grad(2d|_engine|_alg)|nchwtonhwc|nhwctonchw|scudnn",
    ),
    # cuSOLVER and MAGMA, after LAPACK's names: factorizations, eigenvalues, singular values, triangular solvers
    (
        "linear algebra",
        r"(^|[ :_])(s|d|c|z)?(gesvd|syev|heev|geqr|orgqr|ormqr|getr[fsi]|potr[fsi]|larf|latrd|sytrd|gebrd|trsm|trsv)|cusolver|magma_|"
        r"(svd_)?(column|row)_rotate_batch|ipiv_|^void off[a-z]_stage\d|colperm_kernel",
    ),
    # cuBLAS (gemm, nvjet, splitK), rocBLAS/Tensile (Cijk), CUTLASS, Marlin, Machete, vLLM, Inductor's and XLA's templates
    (
        "gemm",
        r"(?<!fb)gem[mv]|matmul|nvjet|cijk_|_s?16816|splitk|split_k|cublas|cutlass|wmma|xmma|[_:](b|add)?mm[_<\d]|[_:]mm$|marlin|machete|"
        r"fused_moe|grouped_mm|triton_tem_|(gptq|awq)_|_dot(_|$)",
    ),
    # cuRAND, rocRAND, PyTorch
    (
        "random",
        r"random|unpack_cudnn|dropout|curand|rocrand|uniform|bernoulli|multinomial|randperm|sampl(e|ing)",
    ),
    # CUB, Thrust, PyTorch
    (
        "sort/scan",
        r"sort|scan|write_indices|radix|routing|top_?k|cumsum|cumprod|deviceselect|nonzero|unique|histogram|searchsorted",
    ),
    # PyTorch, Triton, what moves data by its name
    (
        "memory",
        r"catarray|copy|memset|transpose|permute|scatter|gather|[_:]fill|[_:]pad|contiguous|index_put|index(ing)?_?(backward|kernel)",
    ),
    ("reduction", r"reduc|arg(max|min)|[_:]sum|[_:]mean|_norm|lpnorm|nrm2|dot_kernel|loss|segment|_pool"),
    (
        "elementwise",
        r"elementwise|pointwise|fusion|wrapped_|relu|[gs]elu|silu|sigmoid|tanh|swiglu|geglu|activation|act_and_mul|rope|rotary|residual|"
        r"bias|[_:](add|mul|sub|div|exp|log|pow|sqrt|neg|abs|cast|scale|clamp|where|mask|select|compare)|convert|quant|for_each|transform|"
        r"arange|tri[lu]_|tensorop",
    ),
)


@cache
def _compiled() -> tuple[tuple[str, re.Pattern[str]], ...]:
    return tuple((name, re.compile(pattern)) for name, pattern in _RULES)


@lru_cache(maxsize=1 << 16)
def class_of(name: str) -> str:
    """Return the class (of `CLASSES`) of a kernel, by its name.

    Best the full one, which has the arguments of templates.
    """
    text = name.lower()
    return next((label for label, pattern in _compiled() if pattern.search(text)), "other")


def classes(names: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Return the class of each kernel as a dictionary array of strings; null for null.

    Every name is looked at once.
    """
    import pyarrow as pa

    flat = names.combine_chunks() if isinstance(names, pa.ChunkedArray) else names
    coded = flat if pa.types.is_dictionary(flat.type) else flat.dictionary_encode()
    numbers = [
        None if name is None else CLASSES.index(class_of(name)) for name in coded.dictionary.to_pylist()
    ]
    return pa.DictionaryArray.from_arrays(
        pa.array(numbers, pa.int32()).take(coded.indices), pa.array(CLASSES)
    )
