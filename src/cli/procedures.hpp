// What MPIsec does with each MPI procedure: reads gen/classes.toml, from which the shim is generated,
// for `mpisec doctor`.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace mpisec::cli {

struct ProcedureGroup {
    std::string title;
    std::string handling;  ///< sealed, same-node, refused or local
    std::string later;     ///< where protection will come from; may be empty
};

class ProcedureTable {
  public:
    /// From share/mpisec, or the source tree; an error when the file is missing or damaged.
    static Result<ProcedureTable> load();
    /// The group of a symbol: MPI_Send, PMPI_Send_c, mpi_send_, pmpi_send_f08_ … Null when the symbol is not one of
    /// MPI's procedures.
    const ProcedureGroup* find(std::string_view symbol) const;
    /// Number of procedures that are handled in this way.
    std::size_t count(std::string_view handling) const;

  private:
    /// "mpi_send" -> group.
    std::map<std::string, std::shared_ptr<const ProcedureGroup>, std::less<>> by_name_;
};

/// "mpi_send" for MPI_Send, PMPI_Send_c, mpi_send_, mpi_send_f08_ and their like.
std::string procedure_of_symbol(std::string_view symbol);

}  // namespace mpisec::cli
