#include "shim/pmpi/constants.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/error_line.hpp"
#include "shim/pmpi/real.hpp"

// Open MPI's handle constants are addresses of data symbols in its library, written with one macro. Naming
// the symbols would make the shim unloadable into anything but an Open MPI program, so the macro looks them
// up instead.
#if defined(OPEN_MPI)
#undef OMPI_PREDEFINED_GLOBAL
#define OMPI_PREDEFINED_GLOBAL(type, symbol) static_cast<type>(data_symbol(#symbol))
#undef MPI_COMM_NULL_COPY_FN
#define MPI_COMM_NULL_COPY_FN \
    reinterpret_cast<MPI_Comm_copy_attr_function*>(data_symbol("OMPI_C_MPI_COMM_NULL_COPY_FN"))
#endif

#if defined(MPICH_VERSION) && !defined(MPI_UNWEIGHTED)  // variables there
#define MPI_UNWEIGHTED *static_cast<int**>(data_symbol("MPI_UNWEIGHTED"))
#define MPI_WEIGHTS_EMPTY *static_cast<int**>(data_symbol("MPI_WEIGHTS_EMPTY"))
#endif

namespace mpisec::shim {

namespace {

[[maybe_unused]] void* data_symbol(const char* name) {
    // A program that names the symbol may hold the variable itself (copy relocation): the global scope knows that, the library does not.
    if (void* address = dlsym(RTLD_DEFAULT, name)) return address;
    if (void* address = library_symbol(name)) return address;
    write_error_line(
        std::string("MPIsec: the MPI library lacks \"") + name +
        "\"; its version is not supported. Please report it with the output of `mpisec doctor`.");
    std::_Exit(EXIT_FAILURE);
}

}  // namespace

void resolve_constants() {
    constants = Constants{
        .comm_world = MPI_COMM_WORLD,
        .comm_self = MPI_COMM_SELF,
        .comm_null = MPI_COMM_NULL,
        .request_null = MPI_REQUEST_NULL,
        .message_null = MPI_MESSAGE_NULL,
        .message_no_proc = MPI_MESSAGE_NO_PROC,
        .group_null = MPI_GROUP_NULL,
        .group_empty = MPI_GROUP_EMPTY,
        .info_null = MPI_INFO_NULL,
        .file_null = MPI_FILE_NULL,
        .win_null = MPI_WIN_NULL,
        .datatype_null = MPI_DATATYPE_NULL,
        .byte = MPI_BYTE,
        .packed = MPI_PACKED,
        .int32 = MPI_INT32_T,
        .int64 = MPI_INT64_T,
        .uint64 = MPI_UINT64_T,
        .max = MPI_MAX,
        .sum = MPI_SUM,
        .land = MPI_LAND,
        .replace = MPI_REPLACE,
        .no_op = MPI_NO_OP,
        .op_null = MPI_OP_NULL,
        .errors_return = MPI_ERRORS_RETURN,
        .errors_are_fatal = MPI_ERRORS_ARE_FATAL,
        .comm_null_copy_fn = MPI_COMM_NULL_COPY_FN,
        .unweighted = MPI_UNWEIGHTED,
        .weights_empty = MPI_WEIGHTS_EMPTY,
        .predefined_operations = {MPI_MAX, MPI_MIN, MPI_SUM, MPI_PROD, MPI_LAND, MPI_BAND, MPI_LOR, MPI_BOR,
                                  MPI_LXOR, MPI_BXOR, MPI_MAXLOC, MPI_MINLOC, MPI_REPLACE, MPI_NO_OP},
    };
}

bool is_predefined(MPI_Op op) {
    return std::ranges::find(constants.predefined_operations, op) != constants.predefined_operations.end();
}

bool is_equality(MPI_Op op) {
#if defined(MPIX_EQUAL)
    return op == MPIX_EQUAL;
#else
    (void)op;
    return false;
#endif
}

}  // namespace mpisec::shim
