// Which MPI family a program uses, without running it.
#pragma once

#include <string>
#include <vector>

#include "base/error.hpp"
#include "cli/mpi4py.hpp"
#include "cli/program.hpp"

namespace mpisec::cli {

/// In this order: `given` (--mpi), `setting` (MPISEC_MPI), both empty when not given; the program's own
/// DT_NEEDED; all that its loader would load; a program named among its arguments (numactl ./app, ./run.sh
/// ./app); what mpi4py was told (MPI4PY_…); the launcher; what mpi4py would find. Any remaining doubt
/// is an error that says how to resolve it: a wrong guess would leave the job unprotected (S1). `command` begins with the program's name.
Result<FoundMpi> detect(const Program& program, const std::vector<std::string>& command,
                        const std::string& given, const std::string& setting);

}  // namespace mpisec::cli
