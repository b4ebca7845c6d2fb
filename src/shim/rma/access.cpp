// Checks what a one-sided operation is to do, and describes the target's data for whoever carries it out.
#include "shim/rma/access.hpp"

#include <atomic>

#include "shim/collective/reduction.hpp"
#include "shim/p2p/type_contents.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/rma/layout.hpp"

namespace mpisec::shim::rma {
namespace {

AccessShape shape_of(const Access& access) {
    return {.kind = access.kind,
            .accumulates = access.accumulates,
            .of_one_element = access.of_one_element,
            .op = access.op,
            .origin_count = access.origin.count,
            .result_count = access.result.count,
            .count = access.count,
            .origin_type = access.origin.type,
            .result_type = access.result.type,
            .type = access.type,
            .types_freed = type_generation.load(std::memory_order_relaxed)};
}

std::uint64_t bytes_of(const Elements& elements, int& error) {
    TypeFacts facts;
    if (elements.count < 0) error = MPI_ERR_COUNT;
    if (!type_facts(elements.type, facts)) error = MPI_ERR_TYPE;
    return error == MPI_SUCCESS ? static_cast<std::uint64_t>(elements.count) * facts.size : 0;
}

bool is_no_op(const Access& access) {
    return access.accumulates && access.op == constants.no_op;
}

/// Returns an MPI error class.
int describe_arithmetic(const Access& access, const TypeLayout& type, DescribedAccess& described) {
    Header& header = described.header;
    if (!is_predefined(access.op)) return MPI_ERR_OP;
    if (header.bytes == 0) return MPI_SUCCESS;  // MPI libraries accept any operation on no data
    if (type.element == constants.datatype_null) return MPI_ERR_TYPE;
    header.element = shared_handle(type.element);
    header.op = shared_handle_of_op(access.op);
    if (TypeFacts facts; !type_facts(type.element, facts) || header.bytes % facts.size != 0)
        return MPI_ERR_TYPE;
    described.arithmetic = arithmetic_of(header);
    return described.arithmetic.error;
}

/// Checks the arguments, except for the target's data; returns an MPI error class.
int check_arguments(Window& window, const Access& access) {
    if (access.target < 0 || access.target >= window.size()) return MPI_ERR_RANK;
    if (access.count < 0) return MPI_ERR_COUNT;
    if (!window.may_access(access.target)) return MPI_ERR_RMA_SYNC;
    if (access.for_request && !window.holds(access.target)) return MPI_ERR_RMA_SYNC;
    return !window.dynamic && access.displacement < 0 ? MPI_ERR_DISP : MPI_SUCCESS;
}

/// Describes what follows from the arguments, except for the buffers and the displacement; returns an MPI error class.
int describe(const Access& access, DescribedAccess& described) {
    const auto type = layout_of(access.type);
    if (!type) return MPI_ERR_TYPE;
    if (access.of_one_element &&
        (type->element == constants.datatype_null || !is_predefined_type(access.type)))
        return MPI_ERR_TYPE;
    describe_elements(*type, access.count, described.layout);
    Wide bytes = described.layout.bytes();
    if (bytes > (Wide{1} << 62)) return MPI_ERR_COUNT;
    // As in messages, what is sent may be shorter than the room for it (MPI standard section 12.3).
    if (access.kind == Kind::put || access.kind == Kind::accumulate) {
        int error = MPI_SUCCESS;
        const Wide given = bytes_of(access.origin, error);
        if (error != MPI_SUCCESS) return error;
        if (given > bytes) return MPI_ERR_TRUNCATE;
        if (given < bytes) error = shorten(described.layout, static_cast<std::uint64_t>(given));
        if (error != MPI_SUCCESS) return error;
        bytes = given;
    }
    described.header = {};
    described.arithmetic = {};
    Header& header = described.header;
    header.kind = access.kind;
    header.count = described.layout.count;
    header.extent = described.layout.extent;
    header.runs = static_cast<std::uint32_t>(described.layout.runs.size());
    header.bytes = static_cast<std::uint64_t>(bytes);
    if (access.accumulates)
        if (int error = describe_arithmetic(access, *type, described); error != MPI_SUCCESS) return error;
    described.fetches = access.kind != Kind::put && access.kind != Kind::accumulate;
    const Elements& result = result_of(access);
    int error = MPI_SUCCESS;
    if (described.fetches && bytes_of(result, error) < header.bytes && error == MPI_SUCCESS)
        error = MPI_ERR_TRUNCATE;
    if (access.kind != Kind::get && !is_no_op(access) && error == MPI_SUCCESS &&
        bytes_of(access.origin, error) != header.bytes && error == MPI_SUCCESS)
        error = MPI_ERR_TRUNCATE;
    TypeFacts facts;
    described.origin_is_one_run = type_facts(access.origin.type, facts) && facts.contiguous;
    described.result_is_one_run = described.fetches && type_facts(result.type, facts) && facts.contiguous;
    return error;
}

}  // namespace

int prepare(Window& window, const Access& access) {
    if (int error = check_arguments(window, access); error != MPI_SUCCESS) return error;
    DescribedAccess& described = window.described;
    if (const AccessShape shape = shape_of(access); described.shape != shape) {
        described.shape = {};
        if (int error = describe(access, described); error != MPI_SUCCESS) return error;
        described.shape = shape;
        // Describing may itself free types, which are not the program's.
        described.shape.types_freed = type_generation.load(std::memory_order_relaxed);
    }
    const Target& target = window.target(access.target);
    const bool inside = window.dynamic || described.header.bytes == 0 ||
                        fits(access.displacement, target.unit, target.size, described.layout);
    return inside ? MPI_SUCCESS : MPI_ERR_RMA_RANGE;
}

}  // namespace mpisec::shim::rma
