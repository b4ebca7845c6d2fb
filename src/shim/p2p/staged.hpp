// Messages in a GPU's memory (docs/gpu.md): they are packed into host memory before they are sent, and unpacked from there when they have
// been received and verified. In the host's memory they are like any other, whether they go to another node, sealed, or within this one.
#pragma once

#include <functional>
#include <memory>

#include "shim/p2p/operation.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/runtime/device.hpp"
#include "shim/runtime/device_copies.hpp"

namespace mpisec::shim {

/// Asks the driver.
[[gnu::cold, gnu::noinline]] bool is_in_device(const void* buf, MPI_Count count, MPI_Datatype type);
/// Without a driver: two loads and a branch.
template <class Spec>
inline bool needs_staging(const Spec& spec) {
    return device_is_possible() && is_in_device(spec.buf, spec.count, spec.type);
}

/// A copy in host memory. Of a large message that is one run of bytes and leaves the node, only the part that is sealed first is already
/// there.
struct StagedSend {
    explicit StagedSend(const SendSpec& spec);
    StagingMemory host;
    std::unique_ptr<CopiesFromDevice> copies;  ///< of what is not there yet; null if all is
    SendSpec spec;                             ///< describes the copy
    int error;                                 ///< result of packing
};

/// Room in host memory for the message to be received.
struct StagedReceive {
    explicit StagedReceive(const ReceiveSpec& spec);
    /// Copies `bytes` of the room to the GPU.
    int deliver(std::size_t bytes) const;
    StagingMemory host;
    std::unique_ptr<CopiesToDevice> copies;  ///< of what is copied while it is received; else null
    ReceiveSpec spec;                        ///< receives into the room
    ReceiveSpec given;
    TypeFacts facts;
};

/// Under the Guard.
std::unique_ptr<Operation> start_staged_send(const SendSpec& spec);
/// `start`: begin_receive, or what receives a matched message.
using StartReceive = std::function<std::unique_ptr<Operation>(const ReceiveSpec&)>;
std::unique_ptr<Operation> start_staged_receive(const ReceiveSpec& spec, const StartReceive& start);

/// A blocking receive: `receive` is the procedure that does it in the host's memory.
template <class Receive>
int receive_staged(const ReceiveSpec& spec, MPI_Status* status, Receive receive);

/// Raises the error that the driver could not copy; on MPI_COMM_SELF where there is no communicator.
int raise_not_copied(const ReceiveSpec& spec, int code);
int raise_not_copied(const SendSpec& spec, int code);

template <class Receive>
int receive_staged(const ReceiveSpec& spec, MPI_Status* status, Receive receive) {
    const StagedReceive staged(spec);
    MPI_Status own{};
    const int code = receive(staged.spec, &own);
    if (status != MPI_STATUS_IGNORE) {
        const int kept = status->MPI_ERROR;
        *status = own;
        status->MPI_ERROR = kept;
    }
    if (code != MPI_SUCCESS) return code;
    MPI_Count bytes = 0;
    real.Get_elements_x(&own, constants.byte, &bytes);
    const int delivered = staged.deliver(bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
    return delivered == MPI_SUCCESS ? MPI_SUCCESS : raise_not_copied(spec, delivered);
}

}  // namespace mpisec::shim
