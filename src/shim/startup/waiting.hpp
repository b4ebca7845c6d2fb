// Waiting while there is no communicator to raise errors on yet.
#pragma once

#include <mpi.h>

#include <string>

#include "config/settings.hpp"

namespace mpisec::shim {

/// Ends the job with a sentence unless `code` is MPI_SUCCESS.
void check_mpi(int code, const char* call);

/// Reports once when a wait at start-up lasts longer than MPISEC_STALL_TIME, and ends the job if the settings say so
/// (S8).
class StallClock {
  public:
    StallClock(const config::Settings& settings, std::string waiting_for);
    /// Gives the core to other ranks: at start-up all ranks wait for each other, often with fewer cores than
    /// ranks.
    void look();
    double seconds() const;

  private:
    const config::Settings& settings_;
    std::string waiting_for_;
    double begun_;
    bool reported_ = false;
};

/// MPI_Wait that yields and reports. Returns the MPI code.
int complete(MPI_Request* request, const std::string& waiting_for, const config::Settings& settings,
             MPI_Status* status);
/// The same; ends the job when MPI fails.
void complete_or_abort(MPI_Request* request, const std::string& waiting_for,
                       const config::Settings& settings);

}  // namespace mpisec::shim
