# mpisec_fetch_crate(NAME snow VERSION 0.9.6 SHA256 … RESULT variable)
#
# The source of a crate of the Rust registry, for the test vectors or C sources it carries: fetched once by cargo into
# .deps/crates/NAME-VERSION. `variable` is that directory, or empty with a line that says why when cargo is missing or cannot fetch it.
# SHA256 is the crate's checksum in the registry's index; another one is an error.
function(mpisec_fetch_crate)
  cmake_parse_arguments(ARG "" "NAME;VERSION;SHA256;RESULT" "" ${ARGN})
  set(${ARG_RESULT} "" PARENT_SCOPE)
  set(crate ${PROJECT_SOURCE_DIR}/.deps/crates/${ARG_NAME}-${ARG_VERSION})
  if(NOT EXISTS ${crate}/.cargo-checksum.json)
    find_program(MPISEC_CARGO cargo HINTS $ENV{HOME}/.cargo/bin)
    if(NOT MPISEC_CARGO)
      message(STATUS "No cargo: the crate ${ARG_NAME} is not fetched, and what needs it is left out")
      return()
    endif()
    set(work ${CMAKE_BINARY_DIR}/crates/${ARG_NAME}-${ARG_VERSION})
    file(REMOVE_RECURSE ${work})
    file(WRITE ${work}/lib.rs "")
    file(WRITE ${work}/Cargo.toml
      "[package]\nname = \"fetch\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[lib]\npath = \"lib.rs\"\n[dependencies]\n"
      "${ARG_NAME} = { version = \"=${ARG_VERSION}\", default-features = false }\n")
    execute_process(COMMAND ${MPISEC_CARGO} vendor --quiet vendor WORKING_DIRECTORY ${work}
      OUTPUT_QUIET ERROR_VARIABLE error RESULT_VARIABLE failed)
    if(failed OR NOT EXISTS ${work}/vendor/${ARG_NAME})
      message(STATUS "The crate ${ARG_NAME} ${ARG_VERSION} could not be fetched, and what needs it is left out: ${error}")
      return()
    endif()
    file(MAKE_DIRECTORY ${PROJECT_SOURCE_DIR}/.deps/crates)
    file(RENAME ${work}/vendor/${ARG_NAME} ${crate})
    file(REMOVE_RECURSE ${work})
  endif()
  file(READ ${crate}/.cargo-checksum.json checksums)
  string(JSON package GET "${checksums}" package)
  if(ARG_SHA256 AND NOT package STREQUAL ARG_SHA256)
    message(FATAL_ERROR "The crate in ${crate} has the checksum ${package}, expected ${ARG_SHA256}: remove it and configure again.")
  endif()
  set(${ARG_RESULT} ${crate} PARENT_SCOPE)
endfunction()
