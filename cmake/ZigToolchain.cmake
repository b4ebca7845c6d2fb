# Toolchain of the wheel (`make wheel`): zig's clang with the headers and symbols of glibc 2.28 and a C++ library of its own, so that what is
# built on any machine runs on every distribution that is not older than that. Libraries come from this machine, statically.
set(CMAKE_C_COMPILER ${CMAKE_CURRENT_LIST_DIR}/zig/cc)
set(CMAKE_CXX_COMPILER ${CMAKE_CURRENT_LIST_DIR}/zig/c++)
set(CMAKE_LIBRARY_ARCHITECTURE x86_64-linux-gnu)  # Debian's compilers say it, zig does not
set(CMAKE_SKIP_RPATH ON)                          # what is linked is in the same file, or the system's
foreach(language C CXX)
  set(CMAKE_${language}_FLAGS_INIT -ffile-prefix-map=${CMAKE_SOURCE_DIR}=.)  # wherever it is built, the same comes out
endforeach()
string(APPEND CMAKE_EXE_LINKER_FLAGS_INIT " -pie")

set(MPISEC_ZIG ON)
