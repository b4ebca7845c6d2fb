// What a job would have sealed, and how long that would take, computed from what a plain run counted (src/profile) and
// from the costs of this machine's crypto libraries.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "config/settings.hpp"

namespace mpisec::cli {

/// What is sealed or opened.
struct Work {
    double messages = 0, bytes = 0, nanoseconds = 0;
    Work& operator+=(const Work& other) {
        messages += other.messages;
        bytes += other.bytes;
        nanoseconds += other.nanoseconds;
        return *this;
    }
};

/// By classes of calls, as in the files of MPISEC_STATS: "point_to_point", "collective", ….
struct RankPrediction {
    std::map<std::string, Work> seal, open;
    double nanoseconds() const;
};

struct Prediction {
    int nodes = 0;
    double seconds = 0;  ///< of the plain run
    std::string library;
    std::vector<RankPrediction> ranks;
    std::map<std::string, std::uint64_t> unpredicted;  ///< calls
    const RankPrediction& slowest() const;
    RankPrediction sum() const;
};

/// `path`: the file that a plain run wrote.
Result<Prediction> predict(const std::string& path, const config::Settings& settings);

std::string as_text(const Prediction& prediction);
std::string as_json(const Prediction& prediction);

}  // namespace mpisec::cli
