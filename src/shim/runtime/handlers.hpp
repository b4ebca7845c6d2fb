// What a failed call returns after an error handler of the program's: the error code as the handler left it, because the handler gets "the
// error code to be returned" (MPI standard section 9.3.1) by its address. MPI_Comm_call_errhandler and its kin, by which MPIsec raises errors,
// keep the handler's changes to themselves. So the MPI library gets, in place of each of the program's procedures, one of MPIsec's that calls
// it and notes the code. Handlers of Fortran programs are made past MPIsec, and calls return the code that was raised.
#pragma once

#include <mpi.h>

#include <utility>

namespace mpisec::shim {

struct Handled {
    int* outcome = nullptr;    ///< where the handler that MPIsec is calling leaves its code
    int raised = MPI_SUCCESS;  ///< the code that was raised last, until the call returns,
    int left = MPI_SUCCESS;    ///< and what the handler has made of it
};
extern constinit thread_local Handled handled;

/// Raises `code` by `call_handler`, one of the library's MPI_…_call_errhandler. What runs until as_handler_left() still sees `code`.
template <typename CallHandler>
void raise_by(int code, CallHandler&& call_handler) {
    int left = code;
    struct Leaves {
        explicit Leaves(int* to) { handled = {to}; }
        ~Leaves() { handled.outcome = nullptr; }
    };
    {
        const Leaves here(&left);
        call_handler();
    }
    handled = {nullptr, code, left};
}

/// What the program's call returns: `code`, or what a handler of the program's has made of it.
inline int as_handler_left(int code) {
    if (code == MPI_SUCCESS) [[likely]]
        return code;
    const Handled last = std::exchange(handled, {});
    return code == last.raised ? last.left : code;
}

// The constructors of error handlers, in place of the library's.
int Comm_create_errhandler(MPI_Comm_errhandler_function* function, MPI_Errhandler* handler);
int Win_create_errhandler(MPI_Win_errhandler_function* function, MPI_Errhandler* handler);
int File_create_errhandler(void (*function)(MPI_File*, int*, ...), MPI_Errhandler* handler);

}  // namespace mpisec::shim
