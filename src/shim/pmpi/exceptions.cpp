#include "shim/pmpi/exceptions.hpp"

#include <unwind.h>

namespace mpisec::shim {

void let_exceptions_through() {
    _Unwind_Backtrace([](_Unwind_Context*, void*) { return _URC_END_OF_STACK; }, nullptr);
}

}  // namespace mpisec::shim
