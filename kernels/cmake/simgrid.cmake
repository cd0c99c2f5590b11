# A toolchain for simulated machines: cmake -DCMAKE_TOOLCHAIN_FILE=kernels/cmake/simgrid.cmake. SimGrid's compiler
# makes programs that smpirun loads; the programs that CMake tries while it configures must run on their own.
set(CMAKE_C_COMPILER smpicc)
set(ENV{SMPI_PRETEND_CC} 1)
# Ranks share one process and its memory, none of which SimGrid may fold.
set(CMAKE_C_FLAGS_INIT -DSMPI_NO_OVERRIDE_MALLOC)
