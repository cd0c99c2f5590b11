# Sets SWITCHPOINT_HAS_FORTRAN: whether a Fortran compiler reads the module mpi_f08 of the MPI of MPI_C_COMPILER.
# Included, not a function: languages are enabled for the whole project.
set(SWITCHPOINT_HAS_FORTRAN OFF)

# FindMPI would take the first mpifort on the path, of whatever MPI: the one beside mpicc is right.
if(MPI_C_COMPILER AND NOT MPI_Fortran_COMPILER)
  cmake_path(GET MPI_C_COMPILER PARENT_PATH directory)
  cmake_path(GET MPI_C_COMPILER FILENAME name)
  string(REPLACE "mpicc" "mpifort" fortran "${name}") # also mpicc.mpich
  string(REPLACE "mpiicx" "mpiifx" fortran "${fortran}")
  if(NOT fortran STREQUAL name AND EXISTS "${directory}/${fortran}")
    set(MPI_Fortran_COMPILER "${directory}/${fortran}" CACHE FILEPATH "MPI's wrapper of the Fortran compiler")
  endif()
endif()

set(missing "no mpifort beside ${MPI_C_COMPILER}; name it with MPI_Fortran_COMPILER")
if(MPI_Fortran_COMPILER)
  include(CheckLanguage)
  if(NOT CMAKE_Fortran_COMPILER)
    unset(CMAKE_Fortran_COMPILER CACHE) # CMake remembers that there was none
  endif()
  check_language(Fortran)
  set(missing "no Fortran compiler")
endif()
if(CMAKE_Fortran_COMPILER)
  enable_language(Fortran)
  find_package(MPI QUIET COMPONENTS Fortran)
  set(missing "${CMAKE_Fortran_COMPILER} cannot use mpi_f08 of ${MPI_Fortran_COMPILER}")
endif()
if(MPI_Fortran_HAVE_F08_MODULE)
  set(SWITCHPOINT_HAS_FORTRAN ${SWP_FORTRAN_INT})
  set(missing "MPI's Fortran integers are not C's")
endif()
if(SWITCHPOINT_HAS_FORTRAN)
  # Compilers of other families and versions find gfortran's header only here, behind their own.
  set(SWITCHPOINT_FORTRAN_HEADERS)
  if(CMAKE_Fortran_COMPILER_ID STREQUAL "GNU")
    execute_process(COMMAND ${CMAKE_Fortran_COMPILER} -print-file-name=include
      OUTPUT_VARIABLE directory OUTPUT_STRIP_TRAILING_WHITESPACE)
    set(SWITCHPOINT_FORTRAN_HEADERS "-idirafter \"${directory}\"")
  endif()
  include(CheckIncludeFile)
  check_include_file(ISO_Fortran_binding.h SWP_FORTRAN_BINDING "${SWITCHPOINT_FORTRAN_HEADERS}")
  set(SWITCHPOINT_HAS_FORTRAN ${SWP_FORTRAN_BINDING})
  set(missing "no ISO_Fortran_binding.h of ${CMAKE_Fortran_COMPILER}")
endif()
if(NOT SWITCHPOINT_HAS_FORTRAN)
  message(STATUS "No Fortran module: ${missing}")
endif()
