#include "shim/p2p/unsupported.hpp"

#include <unistd.h>

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "shim/p2p/communicator.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/gate.hpp"
#include "shim/runtime/state.hpp"
#include "shim/runtime/waits.hpp"

namespace mpisec::shim {

struct RefusedCalls {
    std::mutex mutex;
    std::set<std::string> said;                 ///< sentences, once each
    std::set<std::string, std::less<>> waived;  ///< procedures whose warning has been given
    int error_class = MPI_SUCCESS;
    std::map<std::string, int, std::less<>> codes;  ///< one per procedure
};

namespace {

struct UnsupportedCall {
    std::string_view procedure;
    const char* reason;
    const char* later;
    bool everywhere;  ///< inside a node too
    bool all_call;    ///< all ranks of the communicator make the call
};
constexpr UnsupportedCall unsupported_calls[] = {
#include "refusals.inc"
};

const UnsupportedCall* find_refusal(std::string_view procedure) {
    for (const UnsupportedCall& refusal : unsupported_calls)
        if (refusal.procedure == procedure) return &refusal;
    return nullptr;
}

/// For standard error.
std::string sentence_for(std::string_view procedure) {
    const std::string sentence = std::string(procedure) + " is refused: ";
    const UnsupportedCall* refusal = find_refusal(procedure);
    if (refusal && !*refusal->later)
        return sentence + refusal->reason +
               ". Keep the call inside a node, or set MPISEC_UNPROTECTED=allow to let it through in clear";
    if (refusal)
        return sentence + refusal->reason + ". Protection is to come with " + refusal->later +
               "; until then " + (refusal->everywhere ? "" : "keep the call inside a node, or ") +
               "set MPISEC_UNPROTECTED=allow to let it through in clear";
    if (!library_symbol(std::string(procedure).c_str()))
        return sentence + "the MPI library that runs does not have it";
    return sentence +
           "it is not yet protected on an inter-communicator whose ranks are on different nodes; merge it "
           "first (MPI_Intercomm_merge)";
}

/// For MPI_Error_string: what to do, and no more than the 256 characters of the shortest
/// MPI_MAX_ERROR_STRING.
std::string short_text_for(std::string_view procedure) {
    const std::string refused = "MPIsec: " + std::string(procedure) + " is refused: ";
    if (const UnsupportedCall* refusal = find_refusal(procedure))
        return refused + (refusal->everywhere ? "" : "keep the call inside a node, or ") +
               "set MPISEC_UNPROTECTED=allow to let it through in clear";
    if (!library_symbol(std::string(procedure).c_str()))
        return refused + "use an MPI library that has it; this one does not";
    return refused + "merge the inter-communicator first (MPI_Intercomm_merge)";
}

/// Whether another rank says why the call is refused: the first rank of the communicator, when all its ranks make the call. Of an
/// inter-communicator, the group that has the lower rank says it.
bool another_says_it(std::string_view procedure, MPI_Comm handle) {
    const UnsupportedCall* refusal = find_refusal(procedure);
    if (!refusal || !refusal->all_call || gate.phase != Phase::closed) return false;
    const Communicator* comm = find_communicator(handle);
    if (!comm) return false;
    auto first = [](Ranks members) {
        return members.empty() ? std::numeric_limits<std::int32_t>::max()
                               : *std::min_element(members.begin(), members.end());
    };
    return own_number(comm->members) != std::min(first(comm->members), first(comm->remote_members));
}

/// True the first time that this process is about to say the sentence.
bool is_news(const std::string& sentence) {
    RefusedCalls& refused = *process.refused_calls;
    std::lock_guard lock(refused.mutex);
    return refused.said.insert(sentence).second;
}

void say_once(const std::string& sentence) {
    if (is_news(sentence)) say(sentence);
}

/// One error code per procedure and reason, so that MPI_Error_string names it; all of one error class.
int error_code(const std::string& key, const std::string& text) {
    RefusedCalls& refused = *process.refused_calls;
    int& error_class = refused.error_class;
    std::lock_guard lock(refused.mutex);
    if (error_class == MPI_SUCCESS) {
        real.Add_error_class(&error_class);
        real.Add_error_string(error_class, "MPIsec: the call is not protected and was refused");
    }
    auto [entry, fresh] = refused.codes.try_emplace(key, MPI_ERR_OTHER);
    if (fresh) {
        real.Add_error_code(error_class, &entry->second);
        real.Add_error_string(entry->second, text.c_str());
    }
    return entry->second;
}
int error_code(const char* procedure) {
    return error_code(procedure, short_text_for(procedure));
}

}  // namespace

int refusal_code(const char* procedure) {
    return error_code(procedure);
}

int refusal_code(const char* procedure, const std::string& detail) {
    say_once(sentence_for(procedure) + ". " + detail);
    return error_code(procedure);
}

int refuse(const char* procedure, MPI_Comm comm) {
    const std::string sentence = sentence_for(procedure) + ".";
    if (!world_model_is_on() && !state.ready) {  // there is no error handler and, before MPI 4, no error code
        say_once(sentence);
        return MPI_ERR_OTHER;
    }
    const MPI_Comm owner = comm == constants.comm_null ? self_comm() : comm;
    const int code = refusal_code(procedure);
    if (another_says_it(procedure, comm)) {
        if (!is_fatal(owner)) return raise_on(owner, code);
        sleep(seconds_to_end_a_job);
    }
    say_once(sentence);
    return raise_on(owner, code);
}

int refuse_device(const char* procedure, MPI_Comm comm) {
    const std::string call = procedure;
    say_once(call +
             " is refused: a buffer is in the memory of a GPU, which MPIsec does not protect in this call " +
             "(docs/gpu.md has those in which it does). Copy it to memory of the host first.");
    const MPI_Comm owner = comm == constants.comm_null ? self_comm() : comm;
    const int code =
        error_code(call + " of a GPU", "MPIsec: " + call +
                                           " is refused: a buffer is in the memory of a GPU; copy it to "
                                           "memory of the host first");
    return raise_on(owner, code);
}

bool refusal_waived(const char* procedure) {
    if (!settings().unprotected_allow) return false;
    RefusedCalls& refused = *process.refused_calls;
    std::lock_guard lock(refused.mutex);
    if (refused.waived.emplace(procedure).second)
        say(std::string("WARNING: ") + procedure +
            " goes over the network UNENCRYPTED, because MPISEC_UNPROTECTED=allow is set.");
    return true;
}

}  // namespace mpisec::shim
