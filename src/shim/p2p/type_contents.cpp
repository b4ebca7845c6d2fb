#include "shim/p2p/type_contents.hpp"

#include "shim/p2p/datatype.hpp"
#include "shim/pmpi/real.hpp"

namespace mpisec::shim {
namespace {

struct Envelope {
    int combiner = MPI_UNDEFINED;
    MPI_Count integers = 0, addresses = 0, counts = 0, types = 0;
};

#if !defined(OPEN_MPI)
bool has_large_counts() {
    return real.Type_get_envelope_c && real.Type_get_contents_c;
}
#endif

Envelope envelope_of(MPI_Datatype type) {
    Envelope envelope;
    int integers = 0, addresses = 0, types = 0;
    int code;
#if !defined(OPEN_MPI)
    if (has_large_counts())
        code = real.Type_get_envelope_c(type, &envelope.integers, &envelope.addresses, &envelope.counts,
                                        &envelope.types, &envelope.combiner);
    else
#endif
    {
        code = real.Type_get_envelope(type, &integers, &addresses, &types, &envelope.combiner);
        envelope.integers = integers, envelope.addresses = addresses, envelope.types = types;
    }
    return code == MPI_SUCCESS ? envelope : Envelope{};
}

/// Has room for one more element: some libraries look at arrays that have no elements.
template <class Element>
std::vector<Element> room(MPI_Count elements) {
    return std::vector<Element>(static_cast<std::size_t>(elements) + 1);
}

}  // namespace

TypeContents::TypeContents(MPI_Datatype type) {
    read(type);
}

void TypeContents::read(MPI_Datatype type) {
    const Envelope envelope = envelope_of(type);
    combiner = envelope.combiner;
    if (combiner == MPI_COMBINER_NAMED || combiner == MPI_UNDEFINED || envelope.types == 0) return;
    auto integers = room<int>(envelope.integers);
    auto addresses = room<MPI_Aint>(envelope.addresses);
    auto counts = room<MPI_Count>(envelope.counts);
    inner = room<MPI_Datatype>(envelope.types);
    int code;
#if !defined(OPEN_MPI)
    if (has_large_counts())
        code = real.Type_get_contents_c(type, envelope.integers, envelope.addresses, envelope.counts,
                                        envelope.types, integers.data(), addresses.data(), counts.data(),
                                        inner.data());
    else
#endif
        code = real.Type_get_contents(type, static_cast<int>(envelope.integers),
                                      static_cast<int>(envelope.addresses), static_cast<int>(envelope.types),
                                      integers.data(), addresses.data(), inner.data());
    inner.resize(code == MPI_SUCCESS ? static_cast<std::size_t>(envelope.types) : 0);
    if (inner.empty()) {
        combiner = MPI_UNDEFINED;
        return;
    }
    integers_.assign(integers.begin(), integers.end() - 1);
    addresses_.assign(addresses.begin(), addresses.end() - 1);
    counts.pop_back();
    if (!counts.empty()) arrange(counts);
}

/// Sorts the arguments of the large-count constructors (MPI standard section 5.1.13, the second list): what is an address for the other
/// constructors is a count there.
void TypeContents::arrange(const std::vector<MPI_Count>& counts) {
    std::size_t integers = counts.size();  // how many of the counts are integers; those behind are addresses
    switch (combiner) {
        case MPI_COMBINER_HVECTOR:
        case MPI_COMBINER_HINDEXED_BLOCK:
            integers = 2;
            break;
        case MPI_COMBINER_HINDEXED:
        case MPI_COMBINER_STRUCT:
            integers = 1 + static_cast<std::size_t>(counts[0]);
            break;
        case MPI_COMBINER_RESIZED:
            integers = 0;
            break;
        default:
            break;
    }
    const auto first_address = counts.begin() + static_cast<std::ptrdiff_t>(integers);
    // Integers that precede the counts: one for MPI_Type_create_subarray (its dimensions), three for MPI_Type_create_darray.
    const std::ptrdiff_t before = combiner == MPI_COMBINER_SUBARRAY ? 1
                                  : combiner == MPI_COMBINER_DARRAY ? 3
                                                                    : 0;
    integers_.insert(integers_.begin() + before, counts.begin(), first_address);
    addresses_.insert(addresses_.end(), first_address, counts.end());
}

TypeContents::~TypeContents() {
    for (MPI_Datatype& type : inner)
        if (!is_predefined_type(type)) Type_free(&type);  // a reference that MPI_Type_get_contents gave
}

int combiner_of(MPI_Datatype type) {
    return envelope_of(type).combiner;
}

}  // namespace mpisec::shim
