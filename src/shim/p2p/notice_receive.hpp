// Receives notices that MPIsec's processes send each other on the private channels: those of one kind, one at a time, as they arrive. No call
// waits for a notice. Whoever can forge what MPI itself sends can announce one and never send it, so a receive that takes too long is given
// up, and the next notice has its turn.
#pragma once

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <memory>

#include "shim/p2p/operation.hpp"
#include "shim/p2p/realms.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/pmpi/status.hpp"

namespace mpisec::shim {

/// `Bytes`: an array of as many bytes as the longest notice of the kind has. Used under the Guard.
template <class Bytes>
class NoticeReceive {
  public:
    enum class State { under_way, arrived, overdue };

    /// Begins to receive a notice of this realm from `rank`, which may be MPI_ANY_SOURCE; false when none is announced.
    bool begin(const Realm& realm, int rank, int tag, const char* call) {
        int flag = 0;
        MPI_Status found;
        if (real.Iprobe(rank, tag, realm.channel, &flag, &found) != MPI_SUCCESS || !flag) return false;
        const int from = from_named_source(rank, found).MPI_SOURCE;
        if (from < 0 || from >= realm.size) return false;
        source = realm.first + from;
        notice_ = std::make_unique<Notice>();
        notice_->receiving =
            begin_receive({notice_->bytes.data(), static_cast<MPI_Count>(notice_->bytes.size()),
                           constants.byte, from, tag, realm.channel, call});
        return true;
    }
    bool begun() const { return notice_ != nullptr; }

    /// Once begun, until it has arrived or is overdue; then the next one can begin.
    State advance() {
        if (notice_->receiving->advance()) {
            outcome = notice_->receiving->outcome();
            bytes = notice_->bytes;
            notice_.reset();
            return State::arrived;
        }
        if (Clock::now() - notice_->since < longest) return State::under_way;
        forget();
        return State::overdue;
    }
    /// MPI may still write into the buffer of a notice under way, so that buffer stays.
    void forget() { (void)notice_.release(); }

    static constexpr std::chrono::seconds longest{5};
    std::int32_t source = 0;  ///< world rank of the sender
    Outcome outcome;          ///< of the notice that has arrived, as are `bytes`
    Bytes bytes{};

  private:
    using Clock = std::chrono::steady_clock;
    struct Notice {
        std::unique_ptr<Operation> receiving;
        Bytes bytes{};
        Clock::time_point since = Clock::now();
    };
    std::unique_ptr<Notice> notice_;
};

}  // namespace mpisec::shim
