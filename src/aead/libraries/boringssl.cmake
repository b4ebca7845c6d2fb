# BoringSSL from the source that crate `boring-sys` carries, built once for all build trees; else Debian's (older) package.
mpisec_fetch_crate(boring-sys 5.4.0 crate)
if(crate)
  set(source ${crate}/deps/boringssl)
  set(build ${MPISEC_DEPS_DIR}/boringssl-build)
  set(visibility -fvisibility=hidden)
  if(MPISEC_ZIG)
    string(APPEND build -zig)
    string(APPEND visibility " -ffile-prefix-map=${source}=boringssl")
  endif()
  set(archive ${build}/libcrypto.a)
  if(EXISTS ${build}/CMakeCache.txt)  # CMake refuses the cache of a checkout that has been moved since
    file(STRINGS ${build}/CMakeCache.txt made_in REGEX "^CMAKE_CACHEFILE_DIR:")
    if(NOT made_in STREQUAL "CMAKE_CACHEFILE_DIR:INTERNAL=${build}")
      file(REMOVE_RECURSE ${build})
    endif()
  endif()
  set(flags -DCMAKE_PROJECT_BoringSSL_INCLUDE=${CMAKE_CURRENT_SOURCE_DIR}/libraries/boringssl_parts.cmake -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF -DCMAKE_POSITION_INDEPENDENT_CODE=ON
            "-DCMAKE_C_FLAGS=${visibility}" "-DCMAKE_CXX_FLAGS=${visibility}")
  if(CCACHE)
    list(APPEND flags -DCMAKE_C_COMPILER_LAUNCHER=${CCACHE} -DCMAKE_CXX_COMPILER_LAUNCHER=${CCACHE})
  endif()
  if(CMAKE_TOOLCHAIN_FILE)
    get_filename_component(toolchain ${CMAKE_TOOLCHAIN_FILE} ABSOLUTE BASE_DIR ${PROJECT_SOURCE_DIR})
    list(APPEND flags -DCMAKE_TOOLCHAIN_FILE=${toolchain})
  endif()
  # flock: two build trees can get here at once. The crate's patches are for its Rust users and are left out.
  set(locked flock ${MPISEC_DEPS_DIR}/boringssl.lock)
  add_custom_command(
    OUTPUT ${archive}
    COMMAND ${locked} ${CMAKE_COMMAND} -S ${source} -B ${build} -G ${CMAKE_GENERATOR} ${flags} -Wno-dev --log-level=ERROR
    COMMAND ${locked} ${CMAKE_COMMAND} --build ${build} --target crypto --parallel 2
    COMMENT "Building BoringSSL's libcrypto (minutes, once)"
    VERBATIM)
  add_custom_target(mpisec_boringssl_build DEPENDS ${archive})
  mpisec_aead_plugin(boringssl SOURCE plugins/boringssl.cpp INCLUDE ${source}/include LINK ${archive} Threads::Threads
                     DEFINE MPISEC_BORINGSSL_VERSION="boring-sys 5.4.0")
  add_dependencies(mpisec_aead_boringssl mpisec_boringssl_build)
else()
  find_path(MPISEC_ANDROID_BORINGSSL_INCLUDE openssl/aead.h PATHS /usr/include/android NO_DEFAULT_PATH)
  find_library(MPISEC_ANDROID_BORINGSSL crypto PATH_SUFFIXES android NO_CMAKE_SYSTEM_PATH
               PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE} NO_DEFAULT_PATH)
  if(MPISEC_ANDROID_BORINGSSL_INCLUDE AND MPISEC_ANDROID_BORINGSSL)
    mpisec_aead_plugin(boringssl SOURCE plugins/boringssl.cpp INCLUDE ${MPISEC_ANDROID_BORINGSSL_INCLUDE}
                       LINK ${MPISEC_ANDROID_BORINGSSL} DEFINE MPISEC_BORINGSSL_VERSION="Android's")
  else()
    mpisec_aead_skipped(boringssl "needs cargo and the crate boring-sys, or Debian's android-libboringssl-dev")
  endif()
endif()
