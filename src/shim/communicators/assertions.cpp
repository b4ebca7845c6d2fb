#include "shim/communicators/assertions.hpp"

#include <string>
#include <string_view>
#include <vector>

#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"

namespace mpisec::shim {
namespace {

std::vector<std::string> assertions_in(MPI_Info info) {
    std::vector<std::string> found;
    int keys = 0;
    if (info == constants.info_null || real.Info_get_nkeys(info, &keys) != MPI_SUCCESS) return found;
    for (int i = 0; i < keys; ++i) {
        char key[MPI_MAX_INFO_KEY + 1] = "";
        real.Info_get_nthkey(info, i, key);
        if (std::string_view(key).starts_with("mpi_assert_")) found.emplace_back(key);
    }
    return found;
}

}  // namespace

HintsForLibrary::HintsForLibrary(MPI_Info given) : given_(given), hints_(given) {
    const std::vector<std::string> assertions = assertions_in(given);
    if (assertions.empty()) return;
    copied_ = real.Info_dup(given, &hints_) == MPI_SUCCESS;
    if (!copied_) hints_ = constants.info_null;
    for (const std::string& key : assertions)
        if (copied_) real.Info_delete(hints_, key.c_str());
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
void HintsForLibrary::give_answer(const char* key) const {
    if (!copied_) return;
    char value[MPI_MAX_INFO_VAL + 1] = "";
    int found = 0;
    if (real.Info_get(hints_, key, MPI_MAX_INFO_VAL, value, &found) == MPI_SUCCESS && found)
        real.Info_set(given_, key, value);
}
#pragma GCC diagnostic pop

HintsForLibrary::~HintsForLibrary() {
    if (copied_) real.Info_free(&hints_);
}

}  // namespace mpisec::shim
