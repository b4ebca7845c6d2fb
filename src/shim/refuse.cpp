// Refusals (S1): a call whose values would leave the node in clear ends in an MPI error that names it.
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "shim/communicator.hpp"
#include "shim/constants.hpp"
#include "shim/entry.hpp"
#include "shim/errors.hpp"
#include "shim/guarded.hpp"
#include "shim/real.hpp"
#include "shim/state.hpp"
#include "shim/waits.hpp"

namespace mpisec::shim {
namespace {

struct Refusal {
    std::string_view procedure;
    const char* reason;
    const char* later;
};
constexpr Refusal refusals[] = {
#include "refusals.inc"
};

std::mutex refusing;

std::string sentence_for(std::string_view procedure) {
    std::string sentence = std::string(procedure) + " is refused: ";
    for (const Refusal& refusal : refusals) {
        if (refusal.procedure != procedure) continue;
        return sentence + refusal.reason + ". Protection is to come with " + refusal.later +
               "; until then keep the call inside a node, or set MPISEC_UNPROTECTED=allow to let it through "
               "in clear";
    }
    if (!library_symbol(std::string(procedure).c_str()))
        return sentence + "the MPI library that runs does not have it";
    return sentence +
           "it is not yet protected on an inter-communicator whose ranks are on different nodes; merge it "
           "first "
           "(MPI_Intercomm_merge)";
}

}  // namespace

bool world_model_is_on() {
    int initialized = 0, finalized = 0;
    real.Initialized(&initialized);
    real.Finalized(&finalized);
    return initialized && !finalized;
}

namespace {

/// One error code per procedure, so that MPI_Error_string names it; all of one error class.
int error_code(std::string_view procedure, const std::string& sentence) {
    static int error_class = MPI_SUCCESS;
    static auto& codes = *new std::map<std::string, int, std::less<>>;  // never destroyed (state.hpp)
    std::lock_guard lock(refusing);
    if (error_class == MPI_SUCCESS) {
        real.Add_error_class(&error_class);
        real.Add_error_string(error_class, "MPIsec: the call is not protected and was refused");
    }
    auto [entry, fresh] = codes.try_emplace(std::string(procedure), MPI_ERR_OTHER);
    if (fresh) {
        real.Add_error_code(error_class, &entry->second);
        real.Add_error_string(entry->second,
                              ("MPIsec: " + sentence).substr(0, MPI_MAX_ERROR_STRING - 1).c_str());
    }
    return entry->second;
}

}  // namespace

int refusal_code(const char* procedure, const std::string& detail) {
    const std::string sentence = sentence_for(procedure);
    say(sentence + "." + (detail.empty() ? "" : " " + detail));
    return error_code(procedure, sentence);
}

int refuse(const char* procedure, MPI_Comm comm) {
    if (!world_model_is_on()) {  // no error handler and, before MPI 4, no codes to be had
        say(sentence_for(procedure) + ".");
        return MPI_ERR_OTHER;
    }
    const int code = refusal_code(procedure, "");
    real.Comm_call_errhandler(comm == constants.comm_null ? constants.comm_self : comm, code);
    return code;
}

bool refusal_waived(const char* procedure) {
    if (!settings().unprotected_allow) return false;
    static auto& said = *new std::set<std::string, std::less<>>;  // never destroyed (state.hpp)
    std::lock_guard lock(refusing);
    if (said.emplace(procedure).second)
        say(std::string("WARNING: ") + procedure +
            " goes over the network UNENCRYPTED, because MPISEC_UNPROTECTED=allow is set.");
    return true;
}

int Comm_get_parent(MPI_Comm* parent) {
    const int code = real.Comm_get_parent(parent);
    if (code != MPI_SUCCESS || *parent == constants.comm_null || refusal_waived("MPI_Comm_get_parent"))
        return code;
    *parent = constants.comm_null;
    return refuse("MPI_Comm_get_parent", constants.comm_null);
}

}  // namespace mpisec::shim
