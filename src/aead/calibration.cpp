#include "aead/calibration.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <limits>

#include "aead/names.hpp"

namespace mpisec::aead {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array<std::size_t, size_classes> sample_bytes = {64, 4096, 256 * 1024};
constexpr std::array<int, size_classes> calls_per_block = {64, 16, 1};
constexpr int min_rounds = 3, max_rounds = 12;
constexpr auto time_limit = std::chrono::milliseconds(30);

struct Candidate {
    const Library* library;
    Key key;
    std::array<double, size_classes> best_ns;
};

double time_block(const Key& key, std::size_t size_class, std::vector<std::uint8_t>& buffer) {
    // The key is a constant of this file: nothing secret.
    static constexpr std::array<std::uint8_t, nonce_bytes> nonce{};
    static constexpr std::array<std::uint8_t, 32> ad{};
    std::size_t n = sample_bytes[size_class];
    bool good = true;
    auto start = Clock::now();
    for (int call = 0; call < calls_per_block[size_class]; ++call) {
        good &= key.seal(buffer.data(), buffer.data(), n, nonce.data(), ad.data(), ad.size());
        good &= key.open(buffer.data(), buffer.data(), n, nonce.data(), ad.data(), ad.size());
    }
    std::chrono::duration<double, std::nano> spent = Clock::now() - start;
    return good ? spent.count() / calls_per_block[size_class] : std::numeric_limits<double>::infinity();
}

// Identifies the CPU by the lines of the first processor that say what it is and what it can do. /proc/cpuinfo is read no further: on large
// machines it is long.
std::string cpu_identity() {
    std::ifstream file("/proc/cpuinfo");
    std::string model, line;
    std::uint64_t digest = 14695981039346656037u;  // FNV-1a: an identifier, not a protection
    while (std::getline(file, line) && !line.empty()) {
        std::size_t colon = line.find(": ");
        if (colon == std::string::npos) continue;
        if (line.starts_with("model name")) model = line.substr(colon + 2);
        bool fixed = line.starts_with("model name") || line.starts_with("flags") ||
                     line.starts_with("Features") || line.starts_with("CPU implementer") ||
                     line.starts_with("CPU part");
        if (!fixed) continue;
        for (char byte : line) digest = (digest ^ static_cast<unsigned char>(byte)) * 1099511628211u;
    }
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(digest));
    return (model.empty() ? "cpu" : model) + " " + text;
}

}  // namespace

CalibrationKey calibration_key(Cipher cipher, const std::string& directory) {
    CalibrationKey key{cpu_identity(), "", std::string(info(cipher).name)};
    for (const std::string& name : available(directory)) {
        struct stat file {};
        if (stat(plugin_path(name, directory).c_str(), &file) != 0) continue;
        key.plugins += name + " " + std::to_string(file.st_size) + " " + std::to_string(file.st_mtim.tv_sec) +
                       "." + std::to_string(file.st_mtim.tv_nsec) + "; ";
    }
    return key;
}

Choice calibrate(const std::vector<const Library*>& candidates, Cipher cipher) {
    auto end = Clock::now() + time_limit;
    std::array<std::uint8_t, max_key_bytes> key_bytes{};
    std::vector<Candidate> all;
    for (const Library* library : candidates) {
        Result<Key> key = library->make_key(cipher, key_bytes.data());
        if (!key) continue;
        all.push_back({library, std::move(*key), {}});
        all.back().best_ns.fill(std::numeric_limits<double>::infinity());
    }
    std::vector<std::uint8_t> buffer(sample_bytes.back() + tag_bytes);
    // Libraries alternate inside a round, so that a change of the machine's speed affects all of them.
    for (int round = 0; round < max_rounds && (round < min_rounds || Clock::now() < end); ++round)
        for (std::size_t size_class = 0; size_class < size_classes; ++size_class)
            for (Candidate& one : all)
                one.best_ns[size_class] =
                    std::min(one.best_ns[size_class], time_block(one.key, size_class, buffer));

    Choice choice;
    for (std::size_t size_class = 0; size_class < size_classes; ++size_class) {
        auto best = std::min_element(all.begin(), all.end(), [&](const Candidate& a, const Candidate& b) {
            return a.best_ns[size_class] < b.best_ns[size_class];
        });
        if (best != all.end()) choice[size_class] = best->library->name();
    }
    return choice;
}

}  // namespace mpisec::aead
