# mpisec_embed(<generated .cpp> FUNCTION <namespace::name> FILES <files>…): a function that gives these text files,
# compiled in (base/embedded.hpp). CMake runs again when one of them changes.
function(mpisec_embed generated)
  cmake_parse_arguments(arg "" "FUNCTION" "FILES" ${ARGN})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${arg_FILES})
  string(REGEX MATCH "^(.*)::([^:]*)$" whole ${arg_FUNCTION})
  set(namespace ${CMAKE_MATCH_1})
  set(function ${CMAKE_MATCH_2})
  set(entries "")
  foreach(file ${arg_FILES})
    get_filename_component(name ${file} NAME_WE)
    file(READ ${file} text)
    string(APPEND entries "        {\"${name}\", R\"embedded(${text})embedded\"},\n")
  endforeach()
  file(CONFIGURE OUTPUT ${generated} @ONLY CONTENT [=[
#include "base/embedded.hpp"

namespace @namespace@ {

std::span<const mpisec::Embedded> @function@() {
    static constexpr mpisec::Embedded all[] = {
@entries@    };
    return all;
}

}  // namespace @namespace@
]=])
endfunction()
