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

/// For a start-up other than MPI_Init's: a mark of what all participants know of it in advance, the call and its arguments.
std::array<std::uint8_t, 16> purpose_mark(const std::string& call);

/// Unless all agree, ends the job, naming the ranks that differ from the first one, and in what, or a rank that is of
/// another job than this rank.
void require_agreement(const std::vector<Hello>& hellos, const Hello& own);

/// "rank 3 (host)"
std::string name_of(const Hello& hello);

}  // namespace mpisec::shim
