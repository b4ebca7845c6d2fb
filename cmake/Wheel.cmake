# What only the wheel has: a bill of materials, and the licences of the libraries inside. SKBUILD_… come from scikit-build-core.
set(materials ${CMAKE_BINARY_DIR}/materials)
file(GLOB material_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/aead/libraries/*.cmake)
add_custom_command(OUTPUT ${materials}/sboms/mpisec.cdx.json
  COMMAND ${Python3_EXECUTABLE} -B ${PROJECT_SOURCE_DIR}/tools/materials.py --version ${PROJECT_VERSION} --deps ${MPISEC_DEPS_DIR} -o ${materials}
  DEPENDS ${PROJECT_SOURCE_DIR}/tools/materials.py ${material_sources}
  COMMENT "Collecting licences and the bill of materials" VERBATIM)
add_custom_target(materials DEPENDS ${materials}/sboms/mpisec.cdx.json)
add_dependencies(programs materials)
install(DIRECTORY ${materials}/ DESTINATION ${SKBUILD_METADATA_DIR})
