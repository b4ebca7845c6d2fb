// What `mpisec doctor` found: lines under headings, and the problems among them.
#pragma once

#include <cstdio>
#include <string>

namespace mpisec::cli {

inline constexpr const char* unprotected_is_allowed =
    "MPISEC_UNPROTECTED=allow: calls that MPIsec cannot protect send their data in clear";

class Findings {
  public:
    void line(const char* topic, const std::string& text) const {
        std::printf("%-10s %s\n", topic, text.c_str());
    }
    /// Not what one would want, yet the job runs and is protected.
    void note(const char* topic, const std::string& text) {
        line(topic, "note: " + text);
        ++notes_;
    }
    /// The job would not run, or not be protected.
    void problem(const char* topic, const std::string& text) {
        line(topic, "PROBLEM: " + text);
        ++problems_;
    }
    int problems() const { return problems_; }
    int notes() const { return notes_; }

  private:
    int problems_ = 0;
    int notes_ = 0;
};

}  // namespace mpisec::cli
