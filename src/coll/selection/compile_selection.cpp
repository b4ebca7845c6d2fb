// compile_selection OUT.cpp OWN.toml SHARED.toml: runs while MPIsec is built and writes the built-in
// selection tables as constants.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "coll/selection/built_in_rules.hpp"

namespace mpisec::coll {
namespace {

/// FNV-1a of 64 bits (Fowler, Noll and Vo).
std::uint64_t checksum(std::string_view text) {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    return hash;
}

std::string literal(const Interval& range) {
    return fmt::format("{{{}u, {}u}}", range.least, range.most);
}

std::string literal(const Rule& rule) {
    const auto& known = algorithms(rule.collective);
    const auto index = rule.algorithm - known.data();
    return fmt::format(
        "    {{Collective({}), {}, {}, {}, {}, {}}},\n", static_cast<int>(rule.collective), index,
        literal(rule.nodes), literal(rule.ranks_per_node),
        rule.bytes ? "Interval" + literal(*rule.bytes) : "{}",
        rule.placement ? fmt::format("Placement({})", static_cast<int>(*rule.placement)) : "{}");
}

/// `constexpr CompiledRule <name>_rules[]` and its table; empty when the file is no selection table.
std::string definition(const char* name, const char* path) {
    std::stringstream toml;
    toml << std::ifstream(path).rdbuf();
    const Result<Selection> selection = Selection::parse(toml.str(), path);
    if (!selection) {
        fmt::print(stderr, "{}\n", selection.error().message);
        return {};
    }
    std::string text = fmt::format("constexpr CompiledRule {}_rules[] = {{\n", name);
    for (int i = 0; i < collectives; ++i)
        for (const Rule& rule : selection->rules(static_cast<Collective>(i))) text += literal(rule);
    return text + fmt::format("}};\nconstexpr CompiledTable {0}_table{{{0}_rules, {1}u}};\n", name,
                              checksum(selection->text()));
}

int write(const char* path, const std::string& own, const std::string& shared) {
    if (own.empty() || shared.empty()) return 1;
    std::ofstream file(path);
    file << "#include \"coll/selection/built_in_rules.hpp\"\n\nnamespace mpisec::coll {\nnamespace {\n\n"
         << own << shared << "\n}  // namespace\n\nconst CompiledTable& compiled_table(Cpus cpus) {\n"
         << "    return cpus == Cpus::own ? own_table : shared_table;\n}\n\n}  // namespace mpisec::coll\n";
    file.close();
    return file ? 0 : 1;
}

}  // namespace
}  // namespace mpisec::coll

int main(int argc, char** argv) {
    using namespace mpisec::coll;
    if (argc != 4) return 2;
    return write(argv[1], definition("own", argv[2]), definition("shared", argv[3]));
}
