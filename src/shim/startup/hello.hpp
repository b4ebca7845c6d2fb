// What this rank says of itself at start-up, and whether what others say agrees with it (S7).
#pragma once

#include <mpi.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "config/settings.hpp"
#include "keys/hkdf.hpp"
#include "shim/startup/job_name.hpp"
#include "wire/hello.hpp"

namespace mpisec::shim {

using wire::Hello;
using wire::protocol_version;

Hello make_hello(int rank, const config::Settings& settings, const std::array<std::uint8_t, 16>& selection);

/// Of a start-up that is not MPI_Init's: what all who take part know of it before, the call and its arguments.
std::array<std::uint8_t, 16> purpose_mark(const std::string& call);

/// Ends the job, naming who differs from the first of them in what, or is of another job than this rank, unless all
/// agree.
void require_agreement(const std::vector<Hello>& hellos, const Hello& own);

/// "rank 3 (host)"
std::string name_of(const Hello& hello);

}  // namespace mpisec::shim
