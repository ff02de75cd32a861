#!/bin/sh
# Names each thing that the set-up needs and this machine lacks, with the Debian package that brings it.
# usage: preflight.sh PYTHON
python=${1:-python3}
lacking=
lack() { lacking="$lacking $2"; echo "missing: $1 (Debian and Ubuntu: apt-get install $2)" >&2; }

works() { printf '%s\n' "$3" | "$1" -x "$2" -c - -o /dev/null 2>/dev/null; }
works "${CC:-gcc}" c '#include <stdint.h>
int main(void) { return 0; }' || lack "a C compiler that works (${CC:-gcc})" "gcc libc6-dev"
works "${CXX:-g++}" c++ '#include <vector>
int main() { return 0; }' || lack "a C++ compiler that works (${CXX:-g++})" g++
printf '#include <span>\nint main() { return std::span<int>().size(); }\n' | "${CXX:-g++}" -std=c++20 -x c++ -c - -o /dev/null 2>/dev/null ||
  { command -v "${CXX:-g++}" >/dev/null && lack "C++20 (${CXX:-g++} is too old)" "g++-12"; }
command -v make >/dev/null || lack make make

if ! "$python" -c '' 2>/dev/null; then
  lack "Python ($python)" "python3 python3-venv python3-dev"
elif ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))'; then
  echo "missing: Python 3.10 or later; $python is $("$python" -V). Choose another with: make PYTHON=python3.12" >&2
  old=1
else
  version=$("$python" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
  "$python" -c 'import venv, ensurepip' 2>/dev/null || lack "Python's venv module" "$version-venv"
  "$python" -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(os.path.join(sysconfig.get_path("include"), "Python.h")))' ||
    lack "the headers of $version (Python.h)" "$version-dev"
fi
[ -z "$lacking" ] || { echo "All at once: apt-get install$lacking" >&2; exit 1; }
[ -z "${old:-}" ]
