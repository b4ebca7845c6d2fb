#include "coll/selection_settings.hpp"

#include <fmt/format.h>

#include "coll/selection_words.hpp"
#include "config/file.hpp"

namespace mpisec::coll {
namespace {

Result<Selection> built_in_table(Cpus cpus) {
    const auto name = std::string(built_in_selections()[static_cast<std::size_t>(cpus)].name);
    return Selection::parse(built_in_selection(cpus), "the built-in table " + name);
}

/// Empty when the settings name none.
Result<Selection> table_of_site(const config::Settings& settings) {
    if (settings.tuning.empty()) return Selection();
    const Result<std::string> text =
        config::read_file(settings.tuning, "selection table", "MPISEC_TUNING names it");
    if (!text) return tl::unexpected(text.error());
    return Selection::parse(*text, settings.tuning);
}

/// `tables` with a built-in one behind what it holds.
Result<Selection> completed(Result<Selection> tables, Cpus cpus) {
    if (!tables) return tables;
    const Result<Selection> built_in = built_in_table(cpus);
    if (!built_in) return built_in;
    tables->complete_with(*built_in);
    return tables;
}

/// Only the last table needs rules for every call.
Result<Selection> tables_of(const config::Settings& settings, Cpus cpus) {
    Result<Selection> tables = table_of_site(settings);
    if (cpus == Cpus::shared) tables = completed(std::move(tables), Cpus::shared);
    return completed(std::move(tables), Cpus::own);
}

}  // namespace

Result<Selection> selection_of(const config::Settings& settings, Cpus cpus) {
    Result<Selection> selection = tables_of(settings, cpus);
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
