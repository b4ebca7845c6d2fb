#include "coll/selection_settings.hpp"

#include <fmt/format.h>

#include "coll/selection_words.hpp"
#include "config/file.hpp"

namespace mpisec::coll {
namespace {

Result<Selection> built_in_table() {
    return Selection::parse(built_in_selection(), "the built-in selection table");
}

/// A site's own table needs no rules for every call: the built-in ones stand behind it.
Result<Selection> table_of(const config::Settings& settings) {
    if (settings.tuning.empty()) return built_in_table();
    const Result<std::string> text =
        config::read_file(settings.tuning, "selection table", "MPISEC_TUNING names it");
    if (!text) return tl::unexpected(text.error());
    Result<Selection> table = Selection::parse(*text, settings.tuning);
    if (!table) return table;
    const Result<Selection> built_in = built_in_table();
    if (!built_in) return built_in;
    table->complete_with(*built_in);
    return table;
}

}  // namespace

Result<Selection> selection_of(const config::Settings& settings) {
    Result<Selection> selection = table_of(settings);
    if (!selection) return selection;
    for (int i = 0; i < collectives; ++i) {
        const auto collective = static_cast<Collective>(i);
        const std::string& wanted = settings.algorithm[static_cast<std::size_t>(i)];
        if (wanted == "auto") continue;
        const Entry* entry = find_algorithm(collective, wanted);
        if (!entry)
            return fail(fmt::format("{} can not be \"{}\": \"auto\" or one of {} is accepted.",
                                    config::algorithm_variables[static_cast<std::size_t>(i)], wanted,
                                    names_of_algorithms(collective)));
        selection->force(collective, entry);
    }
    return selection;
}

}  // namespace mpisec::coll
