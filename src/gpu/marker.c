/* A library without content, which stands at the end of the dynamic linker's list until another is loaded
 * (src/shim/runtime/device.hpp). */
__attribute__((visibility("default"))) const char mpisec_marker = 0;
