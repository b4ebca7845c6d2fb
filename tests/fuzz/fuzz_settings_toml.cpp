// The settings file: any text is either an error that names the file, or settings within their ranges.
#include "check.hpp"
#include "config/sources.hpp"
#include "ranges.hpp"

using namespace mpisec;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    config::Settings settings;
    const auto applied = config::apply_toml(settings, {reinterpret_cast<const char*>(data), size}, "FILE");
    if (!applied) FUZZ_CHECK(applied.error().message.starts_with("FILE, line "));
    fuzz::check_ranges(settings);
    return 0;
}
