#!/bin/sh
# Makes .venv ready for one of: run, test, check. Needs Python >= 3.11 with venv, a C compiler and make; an MPI on
# the path is used, otherwise PyPI's mpich is installed, and PyPI's cmake where there is none that is new enough.
set -eu
cd "$(dirname "$0")"
goal=${1:-run}
[ ! -e .venv/bin/python ] || .venv/bin/python -c '' || rm -rf .venv  # it would hide a Python that starts
export PATH="$PWD/.venv/bin:$PATH"
python=${PYTHON:-python3}  # where .venv is made, its own
unset PYTHONPATH     # pip would take what modules put there for installed
export PIP_USER=0 PIP_UPGRADE=0  # despite pip.conf: .venv takes no user packages, an index may have another Switchpoint
fail() { echo "bootstrap: $*" >&2; exit 1; }

case $goal in
  run) extras='' ready='run' ;;
  test) extras='[test]' ready='run test' ;;
  check) extras='[test,check,fuzzing,partition,site]' ready='run test check' ;;
  *) fail "unknown goal '$goal': run, test or check" ;;
esac
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  fail "$python is older than Python 3.11; name a newer one with PYTHON=..."
compiler=
for each in ${CC:-cc gcc icx clang}; do  # of which CMake takes the first
  command -v "$each" >/dev/null && compiler=$each && break
done
[ "$compiler" ] || fail "no C compiler on the path: ${CC:-cc, gcc, icx or clang}; CC=... names another"

# There may be none, its directory or Python may have moved, or it may be a copy, which says where it was.
installed=$(.venv/bin/pip --version 2>/dev/null | sed -n 's/.* from \(.*\)\/lib[^/]*\/python.*/\1/p')
program='import os, sys; print(os.path.realpath(sys.executable))'
if ! [ "$installed" -ef .venv ] || [ "$("$python" -c "$program")" != "$(.venv/bin/python -c "$program")" ]; then
  echo "bootstrap: making .venv"
  "$python" -m venv --clear .venv || fail "Python's venv module does not work (Debian: apt install python3-venv)"
fi
echo "bootstrap: installing switchpoint$extras into .venv (a minute or two)"
# Without isolation, what builds it is not fetched again, as a machine may have lost its network. A package that it
# needs may have to be built with isolation.
pip install --quiet --disable-pip-version-check 'hatchling>=1.27' editables
pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
pip install --quiet --disable-pip-version-check "switchpoint$extras"

find_mpis='from tuner.machine.mpi import find_mpis; print(*find_mpis(), sep="\n")'
if [ -z "$(.venv/bin/python -c "$find_mpis")" ]; then
  echo "bootstrap: no mpicc with mpiexec on the path: installing PyPI's mpich"
  pip install --quiet --disable-pip-version-check mpich
fi
grep '^cmake_minimum_required' kernels/CMakeLists.txt >.venv/required.cmake
if ! cmake -P .venv/required.cmake >/dev/null 2>&1; then
  echo "bootstrap: no cmake on the path that is new enough: installing PyPI's"
  pip install --quiet --disable-pip-version-check cmake
fi
mpis=$(.venv/bin/python -c "$find_mpis")
[ "$mpis" ] || fail "no MPI works, not even PyPI's mpich: try .venv/bin/mpiexec --version and .venv/bin/mpicc -v"
echo "$mpis" | sed 's/^/bootstrap: MPI: /'
for each in $ready; do touch ".venv/ready-$each"; done
