# FindMPI would take the first mpiexec on the path, of whatever MPI: the one beside MPI_C_COMPILER is right.
if(MPI_C_COMPILER AND NOT MPIEXEC_EXECUTABLE)
  find_program(compiler ${MPI_C_COMPILER})
  cmake_path(GET compiler PARENT_PATH directory)
  cmake_path(GET compiler FILENAME name)
  string(REGEX REPLACE "^mpii?c[cx](_abi)?" "mpiexec" launcher "${name}") # also mpicc.mpich
  if(NOT launcher STREQUAL name AND EXISTS "${directory}/${launcher}")
    set(MPIEXEC_EXECUTABLE "${directory}/${launcher}" CACHE FILEPATH "MPI's launcher, for tests")
  endif()
  unset(compiler CACHE)
endif()
