#include "shim/io/hints.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "shim/collective/collective_context.hpp"
#include "shim/p2p/communicator.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"

namespace mpisec::shim::io {
namespace {

constexpr const char *sieving = "romio_ds_write", *list_of_nodes = "cb_config_list",
                     *aggregators = "cb_nodes";

/// Empty where there is no such hint.
std::string hint(MPI_Info info, const char* key) {
    int length = 0, found = 0;
    if (info == constants.info_null) return {};
    real.Info_get_valuelen(info, key, &length, &found);
    if (!found) return {};
    std::string value(static_cast<std::size_t>(length), '\0');
    real.Info_get(info, key, length, value.data(), &found);
    return value;
}

/// How many ranks an element of the list chooses on one node of `ranks`: "NODE" one, "NODE:n" n, "NODE:*" all.
int chosen_by(std::string_view element, int ranks) {
    const std::size_t colon = element.rfind(':');
    if (colon == std::string_view::npos) return 1;
    const std::string number(element.substr(colon + 1));
    return number == "*" ? ranks : std::clamp(std::atoi(number.c_str()), 0, ranks);
}

/// How many aggregators ROMIO would have for this list. An element that names a node counts as if it had as many ranks as the smallest one.
int aggregators_of(std::string_view list, const fabric::Topology& topology) {
    int sum = 0;
    while (!list.empty()) {
        const std::string_view element = list.substr(0, list.find(','));
        list.remove_prefix(std::min(list.size(), element.size() + 1));
        if (element.starts_with('*'))
            for (int node = 0; node < topology.nodes(); ++node)
                sum += chosen_by(element, topology.node_size(node));
        else
            sum += chosen_by(element, topology.smallest_node());
    }
    return std::clamp(sum, 1, topology.ranks());
}

}  // namespace

Hints::Hints(MPI_Info given, bool opens) : given_(given), opens_(opens), info_(given) {
    const std::string wish = hint(given, sieving);
    const bool wished = !wish.empty() && wish != "automatic";
    sieving_ = wished ? Sieving::programs : opens || !wish.empty() ? Sieving::ours : Sieving::as_before;
    const bool names_nodes = !hint(given, list_of_nodes).empty();
    if (sieving_ == Sieving::ours || names_nodes) copy();
    if (info_ == given_) return;
    if (sieving_ == Sieving::ours) real.Info_set(info_, sieving, "disable");
    if (names_nodes) real.Info_delete(info_, list_of_nodes);
}

Hints::~Hints() {
    if (info_ != given_) real.Info_free(&info_);
}

void Hints::copy() {
    MPI_Info made = given_;
    const int code = given_ == constants.info_null ? real.Info_create(&made) : real.Info_dup(given_, &made);
    if (code == MPI_SUCCESS) info_ = made;
}

void Hints::note_in(File& file) const {
    if (sieving_ != Sieving::as_before) file.sieving_is_ours = sieving_ == Sieving::ours;
    if (!opens_) return;  // ROMIO chooses its aggregators once
    file.list_of_nodes = hint(given_, list_of_nodes);
    file.wished_aggregators = std::atoi(hint(given_, aggregators).c_str());
}

void show_hints(const File& file, MPI_Info info) {
    int length = 0, is_romio = 0, found = 0;
    real.Info_get_valuelen(info, sieving, &length, &found);
    real.Info_get_valuelen(info, "romio_ds_read", &length, &is_romio);
    if (found && file.sieving_is_ours) {
        if (is_romio)
            real.Info_set(info, sieving, "automatic");
        else
            real.Info_delete(info, sieving);
    }
    if (!is_romio) return;
    const std::string list = file.list_of_nodes.empty() ? "*:1" : file.list_of_nodes;
    const int most = aggregators_of(list, find_communicator(file.comm())->collective_context->topology());
    real.Info_set(info, list_of_nodes, list.c_str());
    real.Info_set(
        info, aggregators,
        std::to_string(file.wished_aggregators > 0 ? std::min(file.wished_aggregators, most) : most).c_str());
}

}  // namespace mpisec::shim::io
