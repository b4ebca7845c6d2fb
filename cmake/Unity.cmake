# mpisec_unity(<target> <files>): compiles a target's sources in groups of so many files (0: all at once), since most of a file's
# time goes into the headers that all of them include. Names in the anonymous namespaces of such a target must differ.
# -DMPISEC_UNITY=OFF compiles file by file: for clang-tidy, and where single files are changed and built often.
option(MPISEC_UNITY "Compile the sources of some targets in groups" ON)

function(mpisec_unity target files)
  if(MPISEC_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${files})
    # g++ takes the grouped sources for headers, whose types should not use an anonymous namespace.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()
