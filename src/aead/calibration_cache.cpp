// The file that remembers calibrations: a JSON list, newest first. It may be in a home directory that many kinds of machine share, be
// damaged, or be written by several ranks at once: nothing in it is trusted beyond the name of a library.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "aead/calibration.hpp"
#include "base/replaced_file.hpp"

namespace mpisec::aead {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr std::size_t max_entries = 64;
constexpr std::uintmax_t max_file_bytes = 1 << 20;

json read_entries(const std::string& cache_file) {
    std::error_code error;
    std::uintmax_t bytes = fs::file_size(cache_file, error);
    if (error || bytes > max_file_bytes) return json::array();
    std::ifstream file(cache_file);
    json parsed = json::parse(file, nullptr, /*allow_exceptions=*/false);
    if (!parsed.is_array()) return json::array();
    return parsed;  // never copied: values nested as deep as the file is long would take all of the stack
}

/// The entry with the fields that recall() reads and nothing else, which could be anything, nested as deep as the file is long; null when a
/// field is missing.
json known_fields(const json& entry) {
    json kept = json::object();
    if (!entry.is_object()) return nullptr;
    for (const char* field : {"cpu", "plugins", "cipher"}) {
        if (!entry.contains(field) || !entry[field].is_string()) return nullptr;
        kept[field] = entry[field];
    }
    if (!entry.contains("libraries") || !entry["libraries"].is_array()) return nullptr;
    for (const json& name : entry["libraries"]) {
        if (!name.is_string()) return nullptr;
        kept["libraries"].push_back(name);
    }
    return kept;
}

bool is_about(const json& entry, const CalibrationKey& key) {
    auto equals = [&](const char* field, const std::string& value) {
        return entry.contains(field) && entry[field].is_string() &&
               entry[field].get_ref<const std::string&>() == value;
    };
    return entry.is_object() && equals("cpu", key.cpu) && equals("plugins", key.plugins) &&
           equals("cipher", key.cipher);
}

fs::path make_directory(const std::string& cache_file) {
    std::error_code error;
    fs::path directory = fs::path(cache_file).parent_path();
    if (directory.empty()) return ".";
    if (fs::create_directories(directory, error)) fs::permissions(directory, fs::perms::owner_all, error);
    return directory;
}

void replace_file(const std::string& path, const std::string& text) {
    ReplacedFile file(path);
    file.write(text);
    file.finish();
}

}  // namespace

std::optional<Choice> recall(const std::string& cache_file, const CalibrationKey& key) {
    for (const json& entry : read_entries(cache_file)) {
        if (!is_about(entry, key) || !entry.contains("libraries")) continue;
        const json& names = entry["libraries"];
        if (!names.is_array() || names.size() != size_classes) return std::nullopt;
        Choice choice;
        for (std::size_t i = 0; i < size_classes; ++i) {
            if (!names[i].is_string()) return std::nullopt;
            choice[i] = names[i].get<std::string>();
        }
        return choice;
    }
    return std::nullopt;
}

void remember(const std::string& cache_file, const CalibrationKey& key, const Choice& choice) {
    json entries = json::array();
    entries.push_back(
        {{"cpu", key.cpu}, {"cipher", key.cipher}, {"libraries", choice}, {"plugins", key.plugins}});
    for (const json& old : read_entries(cache_file)) {
        if (entries.size() == max_entries) break;
        if (is_about(old, key)) continue;
        if (json kept = known_fields(old); !kept.is_null()) entries.push_back(std::move(kept));
    }
    make_directory(cache_file);
    replace_file(cache_file, entries.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
}

CalibrationTurn::CalibrationTurn(const std::string& cache_file) {
    if (cache_file.empty()) return;
    directory_ = open(make_directory(cache_file).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory_ < 0) return;
    auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(250);
    while (flock(directory_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK &&
           std::chrono::steady_clock::now() < end)
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

CalibrationTurn::~CalibrationTurn() {
    if (directory_ >= 0) close(directory_);
}

}  // namespace mpisec::aead
