#!/bin/sh
# Runs tests/gpu, and the benchmarks that need a GPU, with the machine's own Python packages and tools and without a network.
# CuTe DSL is seldom there: `python tools/cubins.py` compiles its kernels elsewhere, into build/gpu/cubins.
# usage: gpu.sh PYTHON WHEELS [pytest arguments]   WHEELS: folder of wheels to install what is missing from, or ""
set -eu
python=$1 wheels=$2
shift 2

reason=$("$python" tests/pieces.py gpu) || { echo "gpu: nothing was run, $reason"; exit 0; }

site=build/gpu/site
mkdir -p "$site"
export PYTHONPATH="$PWD/src:$PWD/$site${PYTHONPATH:+:$PYTHONPATH}"
if [ -n "$wheels" ]; then
  "$python" -m pip install --quiet --no-index --no-deps --upgrade --find-links "$wheels" --target "$site" "$wheels"/*.whl
fi
for module in numpy pyarrow click rich duckdb pytest; do
  "$python" -c "import $module" 2>/dev/null || lacking="${lacking:-} $module"
done
[ -z "${lacking:-}" ] || echo "gpu: $python lacks$lacking; tests that need them will say so (make gpu WHEELS=folder brings them)"

if command -v cmake >/dev/null; then cmake=cmake; else cmake="$python -m cmake"; fi
if command -v ninja >/dev/null; then generator=Ninja; else generator="Unix Makefiles"; fi
$cmake -S . -B build/gpu/native -G "$generator" -DPython_EXECUTABLE="$(command -v "$python")" --log-level=WARNING
$cmake --build build/gpu/native --parallel
$cmake --install build/gpu/native --prefix src >build/gpu/install.log

status=0
"$python" -m pytest -rs tests/gpu "$@" || status=$?
[ $# -ne 0 ] || "$python" benchmarks/run.py gpu_launch intrakernel_cuda intrakernel_triton intrakernel_numba intrakernel_cute || status=$?
exit $status
