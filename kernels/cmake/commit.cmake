# Writes OUTPUT, a header with the commit of SOURCE, when that has changed. Run at every build.
cmake_minimum_required(VERSION 3.20)
set(commit unknown)
if(EXISTS ${SOURCE}/../commit.txt) # in a wheel, which lies in no checkout
  file(STRINGS ${SOURCE}/../commit.txt commit)
endif()
find_program(GIT git)
if(GIT)
  # A copy of the sources inside another checkout does not belong to that checkout's commit.
  execute_process(COMMAND ${GIT} ls-files --error-unmatch commit.cmake
    WORKING_DIRECTORY ${SOURCE} RESULT_VARIABLE untracked OUTPUT_QUIET ERROR_QUIET)
  if(untracked EQUAL 0)
    execute_process(COMMAND ${GIT} describe --always --abbrev=12 --dirty --exclude *
      WORKING_DIRECTORY ${SOURCE} OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(described)
      set(commit ${described})
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define BUILD_COMMIT \"@commit@\"\n" @ONLY)
