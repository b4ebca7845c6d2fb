# What only the wheel has: a bill of materials, and the licences of the libraries inside. SKBUILD_… come from scikit-build-core.
set(materials ${CMAKE_BINARY_DIR}/materials)
file(GLOB material_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/aead/libraries/*.cmake)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/source_date CONTENT "$ENV{SOURCE_DATE_EPOCH}\n")  # written only when it differs
add_custom_command(OUTPUT ${materials}/sboms/mpisec.cdx.json
  COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/materials.py --version ${PROJECT_VERSION} --deps ${MPISEC_DEPS_DIR} -o ${materials}
  DEPENDS ${PROJECT_SOURCE_DIR}/tools/materials.py ${material_sources} ${CMAKE_BINARY_DIR}/source_date
  COMMENT "Collecting licences and the bill of materials" VERBATIM)
add_custom_target(materials DEPENDS ${materials}/sboms/mpisec.cdx.json)
add_dependencies(programs materials)
install(DIRECTORY ${materials}/ DESTINATION ${SKBUILD_METADATA_DIR})

# Build ids, by which debuggers find what was stripped. The linker's own would be made of debug information too, in which stand the paths that
# zig has compiled its C++ library in; these are made of the sources, so that two builds are identical. pip configures before each build.
file(GLOB_RECURSE sources LIST_DIRECTORIES false ${PROJECT_SOURCE_DIR}/src/* ${PROJECT_SOURCE_DIR}/include/* ${PROJECT_SOURCE_DIR}/gen/*.py
     ${PROJECT_SOURCE_DIR}/gen/*.toml ${PROJECT_SOURCE_DIR}/cmake/*)
list(APPEND sources ${PROJECT_SOURCE_DIR}/CMakeLists.txt ${PROJECT_SOURCE_DIR}/tools/wheel-requirements.txt)  # not found recursively: .deps, build
set(digests "${PROJECT_VERSION}")
foreach(source ${sources})
  file(SHA1 ${source} digest)
  string(APPEND digests " ${digest}")
endforeach()
function(mpisec_identify directory)
  get_property(targets DIRECTORY ${directory} PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target ${targets})
    get_target_property(type ${target} TYPE)
    if(type MATCHES "^(EXECUTABLE|MODULE_LIBRARY|SHARED_LIBRARY)$")
      string(SHA1 identity "${target} ${digests}")
      target_link_options(${target} PRIVATE -Wl,--build-id=0x${identity})
    endif()
  endforeach()
  get_property(below DIRECTORY ${directory} PROPERTY SUBDIRECTORIES)
  foreach(subdirectory ${below})
    mpisec_identify(${subdirectory})
  endforeach()
endfunction()
mpisec_identify(${PROJECT_SOURCE_DIR})
