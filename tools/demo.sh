#!/bin/sh
# What `make demo` shows: it records a training program as nobody annotated it, then with its annotations, and asks where the time went.
# Each command is printed before it runs.
set -eu

bold='' plain=''
if [ -t 1 ]; then
  bold=$(printf '\033[1m') plain=$(printf '\033[0m')
fi

run() {
  printf '%s$ %s%s\n' "$bold" "$*" "$plain"
  "$@"
  echo
}

mkdir -p build
echo "A plain program (NVTX_DISABLE switches the annotations of examples/train.py off):"
export NVTX_DISABLE=1
run warplens profile -f -o build/plain python examples/train.py
unset NVTX_DISABLE
echo "The same with its annotations: epochs, steps and their phases by name."
run warplens profile -f -o build/demo python examples/train.py
run warplens stats --timeunit ms build/demo.warplens
run warplens timeline build/demo.warplens
run warplens analyze build/demo.warplens
cat <<END
All of it in the browser:
  warplens view build/demo.warplens
examples/train.py says why it waits so long for its data. Cured:
  warplens profile -f -o build/demo python examples/train.py --fix
END
