# The generator in the build: an interpreter that has the standard's API list, and the rule that makes a family's wrappers.
find_package(Python3 3.11 REQUIRED COMPONENTS Interpreter)

set(MPISEC_GEN_PYTHON "" CACHE FILEPATH "Python with pympistandard (gen/requirements.txt); empty: a venv under .deps/ is made")
if(NOT MPISEC_GEN_PYTHON AND EXISTS ${MPISEC_SOURCES}/python/pympistandard)
  set(gen_python ${CMAKE_COMMAND} -E env PYTHONPATH=${MPISEC_SOURCES}/python ${Python3_EXECUTABLE})
elseif(NOT MPISEC_GEN_PYTHON)
  set(gen_venv ${PROJECT_SOURCE_DIR}/.deps/gen-venv)
  set(gen_requirements ${PROJECT_SOURCE_DIR}/gen/requirements.txt)
  set(gen_python ${gen_venv}/bin/python)
  file(MAKE_DIRECTORY ${PROJECT_SOURCE_DIR}/.deps)
  file(LOCK ${PROJECT_SOURCE_DIR}/.deps/gen-venv.lock GUARD FILE)  # several builds of one tree share the venv
  if(NOT EXISTS ${gen_venv}/complete OR ${gen_requirements} IS_NEWER_THAN ${gen_venv}/complete)
    message(STATUS "Making ${gen_venv} with gen/requirements.txt")
    execute_process(COMMAND ${Python3_EXECUTABLE} -m venv ${gen_venv} COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND ${gen_python} -m pip install --quiet --disable-pip-version-check -r ${gen_requirements}
                    COMMAND_ERROR_IS_FATAL ANY)
    file(TOUCH ${gen_venv}/complete)
  endif()
  file(LOCK ${PROJECT_SOURCE_DIR}/.deps/gen-venv.lock RELEASE)
else()
  set(gen_python ${MPISEC_GEN_PYTHON})
endif()

set(MPISEC_GEN_INTERPRETER ${gen_python} CACHE INTERNAL "The generator's Python, for its tests")

# mpisec_generate(shim|profile <output> OUTPUTS <files>… HEADER <mpi.h> INCLUDE <dirs>… DEFINE <macros>…): what generate.py makes
function(mpisec_generate command output)
  cmake_parse_arguments(arg "" "HEADER" "OUTPUTS;INCLUDE;DEFINE" ${ARGN})
  file(GLOB gen_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/gen/*.py ${PROJECT_SOURCE_DIR}/gen/classes.toml)
  list(TRANSFORM arg_INCLUDE PREPEND -I)
  list(TRANSFORM arg_DEFINE PREPEND -D)
  add_custom_command(
    OUTPUT ${arg_OUTPUTS}
    COMMAND ${MPISEC_GEN_INTERPRETER} -B ${PROJECT_SOURCE_DIR}/gen/generate.py ${command} --output ${output} --compiler ${CMAKE_C_COMPILER} -- ${arg_INCLUDE} ${arg_DEFINE}
    DEPENDS ${gen_sources} ${arg_HEADER}
    COMMENT "Generating wrappers from ${arg_HEADER}"
    VERBATIM)
endfunction()

# `docs`: renders the table of classes into the tree, where a test compares it.
add_custom_target(docs COMMAND ${gen_python} -B ${PROJECT_SOURCE_DIR}/gen/generate.py docs --output ${PROJECT_SOURCE_DIR}/docs/procedures.md
                  COMMENT "Rendering docs/procedures.md" VERBATIM)
