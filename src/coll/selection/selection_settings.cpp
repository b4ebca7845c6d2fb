#include "coll/selection/selection_settings.hpp"

#include <fmt/format.h>

#include "coll/selection/selection_words.hpp"
#include "config/file.hpp"

namespace mpisec::coll {
namespace {

/// The site's table; empty when the settings name none.
Result<Selection> table_of_site(const config::Settings& settings) {
    if (settings.tuning.empty()) return Selection();
    const Result<std::string> text =
        config::read_file(settings.tuning, "selection table", "MPISEC_TUNING names it");
    if (!text) return tl::unexpected(text.error());
    return Selection::parse(*text, "MPISEC_TUNING=" + settings.tuning);
}

/// Only the last table needs rules for every call.
Result<Selection> tables_of(const config::Settings& settings, Cpus cpus) {
    Result<Selection> tables = table_of_site(settings);
    if (!tables) return tables;
    if (cpus == Cpus::shared) tables->complete_with(built_in_selection(Cpus::shared));
    tables->complete_with(built_in_selection(Cpus::own));
    return tables;
}

}  // namespace

Selection built_in_selection(Cpus cpus) {
    std::vector<Rule> rules;
    for (const CompiledRule& rule : compiled_table(cpus).rules)
        rules.push_back({rule.collective, &algorithms(rule.collective)[rule.algorithm], rule.nodes,
                         rule.ranks_per_node, rule.bytes, rule.placement});
    return Selection(rules);
}

Result<Selection> selection_of(const config::Settings& settings, Cpus cpus) {
    Result<Selection> selection = tables_of(settings, cpus);
    if (!selection) return selection;
    for (int i = 0; i < collectives; ++i) {
        const auto collective = static_cast<Collective>(i);
        const std::string& wanted = settings.algorithm[static_cast<std::size_t>(i)];
        if (wanted == "auto") continue;
        const Entry* entry = find_algorithm(collective, wanted);
        if (!entry)
            return fail(fmt::format("{} cannot be \"{}\": \"auto\" or one of {} is accepted.",
                                    config::algorithm_variables[static_cast<std::size_t>(i)], wanted,
                                    names_of_algorithms(collective)));
        selection->force(collective, entry);
    }
    return selection;
}

}  // namespace mpisec::coll
