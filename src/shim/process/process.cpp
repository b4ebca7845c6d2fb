#include "shim/process/process.hpp"

namespace mpisec::shim {

#if !defined(__clang__) || \
    __clang_major__ >= 15  // earlier ones do not accept a std::string of libstdc++ as constant
constinit
#endif
    NeverDestroyed never_destroyed;

namespace {

/// For a program that leaves without MPI_Finalize: workers must not go on while libraries are being taken down. In
/// a forked child, which has no workers, this does nothing.
[[gnu::destructor]] void join_workers() {
    process.state.engine.reset();
}

}  // namespace
}  // namespace mpisec::shim
