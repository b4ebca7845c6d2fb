// Variables, one per line of the input, "NAME=value": any are either an error that names the variable, or
// settings within ranges.
#include <string>
#include <vector>

#include "check.hpp"
#include "config/sources.hpp"
#include "ranges.hpp"

using namespace mpisec;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    std::vector<std::string> lines(1);
    for (std::size_t i = 0; i < size; ++i)
        data[i] == '\n' || data[i] == '\0' ? lines.emplace_back()
                                           : lines.back() += static_cast<char>(data[i]);
    std::vector<const char*> environment;
    for (std::string& line : lines) environment.push_back((line.insert(0, "MPISEC_")).c_str());
    environment.push_back(nullptr);

    config::Settings settings;
    const auto applied = config::apply_environment(settings, environment.data());
    if (!applied) FUZZ_CHECK(applied.error().message.find("MPISEC_") != std::string::npos);
    fuzz::check_ranges(settings);
    return 0;
}
