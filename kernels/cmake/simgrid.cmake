# A toolchain for simulated machines: cmake -DCMAKE_TOOLCHAIN_FILE=kernels/cmake/simgrid.cmake. SimGrid's compiler
# makes programs that smpirun loads; what CMake tries out while it configures must run on its own.
set(CMAKE_C_COMPILER smpicc)
set(ENV{SMPI_PRETEND_CC} 1)
# Ranks share one process and its memory, of which SimGrid is to fold nothing.
set(CMAKE_C_FLAGS_INIT -DSMPI_NO_OVERRIDE_MALLOC)
