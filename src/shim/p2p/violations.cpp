#include "shim/p2p/violations.hpp"

#include <array>
#include <string>

#include "shim/p2p/communicator.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"

namespace mpisec::shim {
namespace {

constexpr std::array<const char*, 6> texts = {
    "MPIsec integrity error: a message does not authenticate (changed, forged or sealed under another key)",
    "MPIsec integrity error: a message was received before (replayed)",
    "MPIsec integrity error: messages were swapped on the way (overtaking)",
    "MPIsec integrity error: a message is not in MPIsec's format (plaintext, cut or extended)",
    ("MPIsec integrity error: the MPI library made another communicator than was called for (its messages "
     "were changed)"),
    "MPIsec integrity error: another rank has met one, and reports it",
};
constexpr auto& codes = process.violation_codes;
static_assert(codes.size() == texts.size());

}  // namespace

void register_errors() {
    int error_class = 0;
    real.Add_error_class(&error_class);
    real.Add_error_string(error_class, "MPIsec integrity error");
    for (std::size_t i = 0; i < texts.size(); ++i) {
        real.Add_error_code(error_class, &codes[i]);
        real.Add_error_string(codes[i], texts[i]);
    }
}

int report_violation(Violation violation, const Communicator& comm, int source, int tag, const char* detail) {
    const auto kind = static_cast<std::size_t>(violation);
    std::string sentence = texts[kind];
    sentence += "; from rank " + std::to_string(source);
    if (source >= 0 && source < static_cast<int>(comm.peers.size()))
        sentence += " (world rank " + std::to_string(rank_in_realm(comm.peer(source))) + ")";
    sentence += ", tag " + std::to_string(tag);
    if (detail) sentence += std::string(", ") + detail;
    say(sentence + ". Nothing unverified was delivered.");
    return codes[kind];
}

int report_sealed_block_violation(const char* procedure, int sealer) {
    const auto kind = static_cast<std::size_t>(Violation::forged);
    say(std::string(texts[kind]) + "; in " + procedure + ", data of world rank " +
        std::to_string(rank_in_realm(sealer)) + ". Nothing unverified was delivered.");
    return codes[kind];
}

int report_length_violation(const char* procedure, std::size_t bytes) {
    const auto kind = static_cast<std::size_t>(Violation::malformed);
    say(std::string(texts[kind]) + "; in " + procedure + ": it has not the " + std::to_string(bytes) +
        " bytes that were expected. Or the ranks called with different counts. Nothing unverified was "
        "delivered.");
    return codes[kind];
}

int report_wrong_communicator(const char* procedure, const char* difference) {
    const auto kind = static_cast<std::size_t>(Violation::construction);
    say(std::string(texts[kind]) + "; in " + procedure + ": " + difference +
        ". Or the ranks called with different arguments. It was not handed out.");
    return codes[kind];
}

MPI_Comm handler_owner(const Communicator* comm) {
    if (!comm) return self_comm();
    if (!comm->freed || comm->free_later) return comm->handle;
    return comm->heir ? comm->heir->comm : self_comm();
}

int raise_error(const Communicator* comm, int code, const char* call) {
    return raise_on(handler_owner(comm), code, call);
}

}  // namespace mpisec::shim
