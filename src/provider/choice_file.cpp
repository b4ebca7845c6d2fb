// The file that remembers the choice: a line that says what it depends on, then a line per mode and key. It may
// be damaged, or written by several processes at once.
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/replaced_file.hpp"
#include "provider/choice.hpp"

namespace mpisec::provider {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_lines = 64;

bool read_line(const std::string& line, std::size_t libraries, Choices& choices) {
    std::istringstream words(line);
    int mode = 0, offered = 0;
    std::size_t key_n = 0;
    Choice choice;
    words >> mode >> key_n >> offered;
    choice.offered = offered == 1;
    for (auto& direction : choice.library)
        for (std::uint8_t& library : direction) {
            std::size_t index = 0;
            if (!(words >> index) || index >= libraries) return false;
            library = static_cast<std::uint8_t>(index);
        }
    choices[{mode, key_n}] = choice;
    return true;
}

}  // namespace

std::string choice_file() {
    if (const char* pinned = secure_getenv("MPISEC_CACHE_DIR"); pinned && *pinned)
        return std::string(pinned) + "/provider";
    if (const char* cache = secure_getenv("XDG_CACHE_HOME"); cache && *cache == '/')
        return std::string(cache) + "/mpisec/provider";
    const char* home = secure_getenv("HOME");
    return home && *home == '/' ? std::string(home) + "/.cache/mpisec/provider" : std::string();
}

std::optional<Choices> recall(const std::string& file, const std::string& measured_on,
                              std::size_t libraries) {
    if (file.empty()) return std::nullopt;
    std::ifstream in(file);
    std::string line;
    if (!std::getline(in, line) || line != measured_on) return std::nullopt;
    Choices choices;
    for (std::size_t i = 0; i < max_lines && std::getline(in, line); ++i)
        if (!read_line(line, libraries, choices)) return std::nullopt;
    if (choices.empty()) return std::nullopt;
    return choices;
}

void remember(const std::string& file, const std::string& measured_on, const Choices& choices) {
    if (file.empty()) return;
    std::error_code error;
    const fs::path directory = fs::path(file).parent_path();
    if (fs::create_directories(directory, error)) fs::permissions(directory, fs::perms::owner_all, error);
    std::ostringstream text;
    text << measured_on << "\n";
    for (const auto& [which, choice] : choices) {
        text << which.first << " " << which.second << " " << (choice.offered ? 1 : 0);
        for (const auto& direction : choice.library)
            for (std::uint8_t library : direction) text << " " << unsigned{library};
        text << "\n";
    }
    ReplacedFile replaced(file);
    replaced.write(text.str());
    replaced.finish();
}

}  // namespace mpisec::provider
