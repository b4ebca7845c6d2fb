// Which library is fastest for which size class on this machine: measured once, then remembered.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "aead/aead.hpp"

namespace mpisec::aead {

/// Names of the fastest library for each size class.
using Choice = std::array<std::string, size_classes>;

/// What a remembered choice depends on; another CPU, plug-in build or cipher requires a new calibration.
struct CalibrationKey {
    std::string cpu;  ///< model name and a digest of its feature flags
    /// name, size and time of every plug-in file: no plug-in needs opening to compare them
    std::string plugins;
    std::string cipher;
};
CalibrationKey calibration_key(Cipher cipher, const std::string& directory);

/// Times one seal and one open per library and size class (64 B, 4 KiB, 256 KiB) in interleaved rounds, about 30 ms in all, and takes each
/// library's best round. `candidates` is not empty, and each of them offers `cipher`.
Choice calibrate(const std::vector<const Library*>& candidates, Cipher cipher);

/// The choice remembered in `cache_file`; nothing when the file is absent, unreadable, damaged or about
/// something else.
std::optional<Choice> recall(const std::string& cache_file, const CalibrationKey& key);

/// Adds the choice to `cache_file` (mode 0600, replaced atomically, directory made when missing). A choice that cannot be written is not an
/// error: it is measured again next time.
void remember(const std::string& cache_file, const CalibrationKey& key, const Choice& choice);

/// Lets one process of a machine calibrate at a time, so that a job's first start does not time its own ranks against each other. The turn
/// is a lock on the cache's directory, which needs no file and ends with the process.
class CalibrationTurn {
  public:
    /// Waits for its turn, 250 ms at most. Where a turn is not possible (no directory, no locks there), goes on without.
    explicit CalibrationTurn(const std::string& cache_file);
    ~CalibrationTurn();
    CalibrationTurn(const CalibrationTurn&) = delete;
    CalibrationTurn& operator=(const CalibrationTurn&) = delete;

  private:
    int directory_ = -1;
};

}  // namespace mpisec::aead
