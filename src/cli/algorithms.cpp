// mpisec algorithms: the collectives and the algorithms for each. The Python parts and the tests read its output.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "coll/selection/selection_words.hpp"

namespace mpisec::cli {
namespace {

/// {"barrier": ["dissemination", …], …}, in the order of coll::Collective.
std::string json_text() {
    nlohmann::ordered_json document;
    for (int i = 0; i < coll::collectives; ++i) {
        const auto collective = static_cast<coll::Collective>(i);
        nlohmann::ordered_json& names = document[std::string(name(collective))] =
            nlohmann::ordered_json::array();
        for (const coll::Entry& entry : algorithms(collective)) names.push_back(entry.name);
    }
    return document.dump(1) + "\n";
}

}  // namespace

void add_algorithms(CLI::App& app, Status& status) {
    auto json = std::make_shared<bool>(false);
    CLI::App* command = app.add_subcommand("algorithms", "Print the collectives and the algorithms of each");
    command->footer("The first one serves every call; docs/collectives.md says what the others are for.");
    command->add_flag("--json", *json, "one JSON document: a list of names for each collective");
    command->callback([json, &status] {
        status = 0;
        if (*json) return fmt::print("{}", json_text());
        for (int i = 0; i < coll::collectives; ++i) {
            const auto collective = static_cast<coll::Collective>(i);
            fmt::print("{:<19} {}\n", name(collective), coll::names_of_algorithms(collective));
        }
    });
}

}  // namespace mpisec::cli
