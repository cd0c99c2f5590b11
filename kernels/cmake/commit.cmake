# Writes OUTPUT, a header with the commit of SOURCE, when that has changed. Run at every build.
cmake_minimum_required(VERSION 3.20)
set(commit unknown)
# Archives and wheels have no history: git, or hatch_build.py, writes the commit into this file.
file(STRINGS ${SOURCE}/../commit.txt written)
if(written MATCHES "^([0-9a-f]+)(-dirty)?$")
  string(SUBSTRING ${CMAKE_MATCH_1} 0 12 commit)
  string(APPEND commit "${CMAKE_MATCH_2}")
endif()
find_program(GIT git)
if(GIT)
  # Git looks into another user's checkout, as one that a site shares, only if it is named.
  get_filename_component(checkout ${SOURCE}/../.. ABSOLUTE)
  set(GIT ${GIT} --git-dir=${checkout}/.git --work-tree=${checkout})
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
