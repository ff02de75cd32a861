#!/bin/sh
# What `make demo` shows: it records a training program and asks where the time went. Each command is printed before it runs.
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
run warpline profile -f -o build/demo python examples/train.py
run warpline stats --timeunit ms build/demo.warpline
run warpline timeline build/demo.warpline
run warpline analyze build/demo.warpline
cat <<END
All of it in the browser:
  warpline view build/demo.warpline
examples/train.py says why it waits so long for its data. Cured:
  warpline profile -f -o build/demo python examples/train.py --fix
END
