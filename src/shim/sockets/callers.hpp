// Who has made a call of the C library.
#pragma once

namespace mpisec::shim {

/// Whether the call that returns to `caller` was made by a transport of MPI libraries whose frames reach into memory: Open MPI's btl tcp,
/// UCX; with `every` also libfabric. Transports are recognised by the file names of their objects.
bool called_by_transport(const void* caller, bool every);

}  // namespace mpisec::shim
