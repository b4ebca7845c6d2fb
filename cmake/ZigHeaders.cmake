# Headers of this machine's libraries without those of its C library, for compilers that bring another one: a directory of links, in place of
# /usr/include. To be included after project().
set(headers ${CMAKE_BINARY_DIR}/headers)
file(GLOB found /usr/include/CLI /usr/include/fmt /usr/include/nlohmann /usr/include/sodium /usr/include/sodium.h /usr/include/tl
     /usr/include/toml++ /usr/include/intel-ipsec-mb.h /usr/include/openssl/*.h /usr/include/${CMAKE_LIBRARY_ARCHITECTURE}/openssl/*.h)
foreach(header ${found})
  string(REGEX REPLACE "^/usr/include/(${CMAKE_LIBRARY_ARCHITECTURE}/)?" "" name ${header})
  get_filename_component(directory ${headers}/${name} DIRECTORY)
  file(MAKE_DIRECTORY ${directory})
  file(CREATE_LINK ${header} ${headers}/${name} SYMBOLIC)
endforeach()
# Last in the order of search: BoringSSL has an openssl/ of its own.
foreach(language C CXX)
  list(APPEND CMAKE_${language}_IMPLICIT_INCLUDE_DIRECTORIES /usr/include /usr/include/${CMAKE_LIBRARY_ARCHITECTURE})
  list(APPEND CMAKE_${language}_STANDARD_INCLUDE_DIRECTORIES ${headers})
endforeach()
