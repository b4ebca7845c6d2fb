#include "shim/rma/transfer.hpp"

#include "base/bytes.hpp"
#include "shim/pmpi/constants.hpp"

namespace mpisec::shim::rma {

void abandon(std::unique_ptr<Operation> operation) {
    if (!operation || operation->complete()) return;
    operation->cancel();
    leave_work_list(*operation);
    if (!operation->advance()) (void)operation.release();
}

Transfer::~Transfer() {
    if (kept_) release_type(result_.type);
}

void Transfer::expect(const Elements& result, std::uint64_t bytes) {
    result_ = result;
    expected_ = bytes;
    answered_ = true;
    type_facts(result.type, facts_);
    if (facts_.contiguous) return;
    result_.type = keep_type(result.type);
    kept_ = true;
    packed_ = Buffer(bytes);
}

std::uint8_t* Transfer::room() const {
    return packed_ ? packed_.data() : static_cast<std::uint8_t*>(result_.buf);
}

bool Transfer::advance() {
    if (done_) return true;
    if (unsent) return false;
    bool all = true;
    for (auto& part : parts) all = part->advance() && all;
    if (!all) return false;
    done_ = true;
    for (const auto& part : parts)
        if (const int code = part->outcome().error; code != MPI_SUCCESS && error_ == MPI_SUCCESS) {
            error_ = code;
            broken_ = true;
        }
    if (answered_ && error_ == MPI_SUCCESS) take_answer(parts.back()->outcome());
    parts.clear();
    for (Buffer* buffer : {&message, &runs, &bulk}) *buffer = Buffer();
    return true;
}

void Transfer::take_answer(const Outcome& outcome) {
    // The target sends nothing when the data is not in its window.
    if (outcome.bytes != expected_) {
        error_ = outcome.bytes == 0 ? MPI_ERR_RMA_RANGE : MPI_ERR_INTERN;
        return;
    }
    if (status) error_ = load_le<std::int32_t>(status);
    if (packed_) error_ = unpack(packed_.data(), expected_, result_.buf, result_.count, result_.type, facts_);
}

void Transfer::abandon() {
    if (done_) return;
    if (unsent) {
        done_ = true;
        return;
    }
    for (auto& part : parts) rma::abandon(std::move(part));
    parts.clear();
    // Memory that MPI still has is not given back.
    for (Buffer* buffer : {&message, &runs, &bulk, &packed_}) (void)new Buffer(std::move(*buffer));
    done_ = true;
}

}  // namespace mpisec::shim::rma
