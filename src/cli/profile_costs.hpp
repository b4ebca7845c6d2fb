// What sealing and opening a message of any size costs on this machine, with the libraries that a job would
// use (the remembered calibration): measured at a few sizes, with straight lines in between.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "aead/aead.hpp"

namespace mpisec::cli {

class Costs {
  public:
    /// Takes some 50 ms.
    explicit Costs(const aead::Selection& selection);
    double seal(double bytes) const { return at(seal_, bytes); }  ///< nanoseconds
    double open(double bytes) const { return at(open_, bytes); }
    bool good() const { return good_; }  ///< the libraries could seal and open

  private:
    struct Point {
        double bytes, nanoseconds;
    };
    static double at(const std::vector<Point>& points, double bytes);
    std::vector<Point> seal_, open_;
    bool good_ = true;
};

}  // namespace mpisec::cli
