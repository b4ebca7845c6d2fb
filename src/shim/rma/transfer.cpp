#include "shim/rma/transfer.hpp"

#include "base/bytes.hpp"
#include "shim/pmpi/constants.hpp"

namespace mpisec::shim::rma {

Transfer::~Transfer() {
    if (kept_) release_type(result_.type);
}

void Transfer::expect(const Elements& result, std::uint64_t bytes) {
    result_ = result;
    expected_ = bytes;
    buffer_facts(result.buf, result.type, facts_);
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
    if (!sent() || (answer && !answer->advance())) return false;
    done_ = true;
    for (const auto& part : sends) note_error_of(*part);
    if (answer) {
        note_error_of(*answer);
        if (error_ == MPI_SUCCESS) take_answer(answer->outcome());
    }
    sends.clear();
    answer.reset();
    for (Buffer* buffer : {&message, &runs, &bulk}) *buffer = Buffer();
    return true;
}

bool Transfer::sent() {
    if (done_) return true;
    if (unsent || unstarted > 0) return false;
    bool all = true;
    for (auto& part : sends) all = part->advance() && all;
    return all;
}

void Transfer::note_error_of(const Operation& part) {
    if (part.outcome().error == MPI_SUCCESS || error_ != MPI_SUCCESS) return;
    error_ = part.outcome().error;
    broken_ = true;
}

void Transfer::take_answer(const Outcome& outcome) {
    // The target answers with no bytes when the data is not in its window.
    if (outcome.bytes != expected_) {
        error_ = outcome.bytes == 0 ? MPI_ERR_RMA_RANGE : MPI_ERR_INTERN;
        return;
    }
    if (status) error_ = load_le<std::int32_t>(status);
    if (packed_) error_ = unpack(packed_.data(), expected_, result_.buf, result_.count, result_.type, facts_);
}

void Transfer::abandon() {
    if (done_) return;
    done_ = true;
    if (unsent) return;
    for (auto& part : sends) shim::abandon(std::move(part));
    sends.clear();
    shim::abandon(std::move(answer));
    // Memory that MPI may still use is never freed.
    for (Buffer* buffer : {&message, &runs, &bulk, &packed_}) (void)new Buffer(std::move(*buffer));
}

}  // namespace mpisec::shim::rma
