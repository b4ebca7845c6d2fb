#include "cli/procedures.hpp"

#include <algorithm>
#include <cctype>
#include <sstream>

#include "base/toml.hpp"
#include "cli/places.hpp"

namespace mpisec::cli {

std::string procedure_of_symbol(std::string_view symbol) {
    std::string name(symbol);
    std::transform(name.begin(), name.end(), name.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (name.starts_with("pmpi_")) name.erase(0, 1);
    while (name.ends_with('_')) name.pop_back();
    for (std::string_view suffix : {"_f08ts", "_f08", "_cdesc", "_fts", "_c"})
        if (name.ends_with(suffix)) name.erase(name.size() - suffix.size());
    return name;
}

Result<ProcedureTable> ProcedureTable::load() {
    std::string path = data_file("gen/classes.toml");
    if (path.empty())
        return fail("this installation lacks the table of procedures (share/mpisec/gen/classes.toml)");
    toml::parse_result parsed = toml::parse_file(path);
    if (!parsed) return fail(path + " cannot be read: " + std::string(parsed.error().description()));
    ProcedureTable table;
    const toml::array* groups = parsed.table()["group"].as_array();
    if (!groups) return fail(path + " holds no groups of procedures");
    for (const toml::node& node : *groups) {
        const toml::table* entry = node.as_table();
        if (!entry) return fail(path + ": a group is no table");
        auto text = [entry](const char* key) { return (*entry)[key].value_or(std::string()); };
        auto group = std::make_shared<const ProcedureGroup>(
            ProcedureGroup{text("title"), text("class"), text("later")});
        std::istringstream names(text("procedures"));
        for (std::string name; names >> name;) table.by_name_.emplace(procedure_of_symbol(name), group);
    }
    return table;
}

const ProcedureGroup* ProcedureTable::find(std::string_view symbol) const {
    auto found = by_name_.find(procedure_of_symbol(symbol));
    return found == by_name_.end() ? nullptr : found->second.get();
}

std::size_t ProcedureTable::count(std::string_view handling) const {
    return static_cast<std::size_t>(std::count_if(by_name_.begin(), by_name_.end(), [&](const auto& entry) {
        return entry.second->handling == handling;
    }));
}

}  // namespace mpisec::cli
