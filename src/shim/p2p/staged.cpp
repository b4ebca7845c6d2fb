#include "shim/p2p/staged.hpp"

#include <algorithm>

#include "shim/p2p/simple_operations.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/pool.hpp"

namespace mpisec::shim {
namespace {

/// Facts of a buffer that is_in_device() has found.
TypeFacts facts_of(const void* buf, MPI_Datatype type) {
    TypeFacts facts;
    buffer_facts(buf, type, facts);
    return facts;
}

std::size_t bytes_of(MPI_Count count, const TypeFacts& facts) {
    return static_cast<std::size_t>(count) * facts.size;
}

int raise_of(MPI_Comm comm, int code, const char* call) {
    return raise(find_communicator(comm), code, call);
}

bool is_one_run(MPI_Datatype type) {
    TypeFacts facts;  // facts of the type alone: those of a buffer in a GPU's memory differ
    return type_facts(type, facts) && facts.contiguous;
}

/// Whether the message goes in segments (sending.cpp), which are sealed one after the other.
bool goes_in_segments(const SendSpec& spec, std::size_t bytes) {
    const Route route = route_send(spec.peer, spec.tag, spec.comm, spec.count);
    return route.kind == Route::sealed && spec.mode != SendSpec::Mode::buffered &&
           bytes > route.comm->threshold;
}

/// An operation under way on a copy in host memory.
class StagedOperation : public Operation {
  public:
    explicit StagedOperation(Communicator* comm) : Operation(comm) {}
    ~StagedOperation() override {
        leave_work_list(*this);
        drop_comm();
    }
    void cancel() override {
        if (!complete_) inner_->cancel();
    }
    void stop_workers() override { inner_->stop_workers(); }
    bool needs_progress() const override { return true; }
    WaitInfo wait_info() const override { return inner_->wait_info(); }
    void begin(std::unique_ptr<Operation> inner) {
        inner_ = std::move(inner);
        step();
        enlist(*this);
    }

  protected:
    /// Returns an error code. After that nothing touches the GPU's memory.
    virtual int end(bool good) = 0;
    void step() override {
        if (!inner_->advance()) return;
        outcome_ = inner_->outcome();
        const int code = end(outcome_.error == MPI_SUCCESS && !outcome_.cancelled);
        finish(code, outcome_.raised);
    }

    std::unique_ptr<Operation> inner_;  ///< ends before its buffer
};

class StagedSendOperation final : public StagedOperation {
  public:
    StagedSendOperation(Communicator* comm, StagedSend staged)
        : StagedOperation(comm), staged_(std::move(staged)) {}
    ~StagedSendOperation() override { inner_.reset(); }

  private:
    int end(bool /*good*/) override {
        staged_.copies.reset();
        return outcome_.error;
    }
    StagedSend staged_;
};

class StagedReceiveOperation final : public StagedOperation {
  public:
    StagedReceiveOperation(Communicator* comm, StagedReceive staged)
        : StagedOperation(comm), staged_(std::move(staged)) {
        staged_.given.type = keep_type(staged_.given.type);
    }
    ~StagedReceiveOperation() override {
        inner_.reset();
        release_type(staged_.given.type);
    }
    const ReceiveSpec& spec() const { return staged_.spec; }

  private:
    int end(bool good) override {
        const int code = good ? staged_.deliver(outcome_.bytes) : outcome_.error;
        staged_.copies.reset();
        return code;
    }
    StagedReceive staged_;
};

}  // namespace

bool is_in_device(const void* buf, MPI_Count count, MPI_Datatype type) {
    TypeFacts facts;
    return count > 0 && type != constants.datatype_null && buffer_facts(buf, type, facts) && facts.device;
}

StagedSend::StagedSend(const SendSpec& given) : spec(given), error(MPI_SUCCESS) {
    const TypeFacts facts = facts_of(given.buf, given.type);
    const std::size_t n = bytes_of(given.count, facts);
    host = StagingMemory(given.buf, n);
    if (host.is_pinned() && is_one_run(given.type) && goes_in_segments(given, n)) {
        copies = std::make_unique<CopiesFromDevice>(host.data(), given.buf, n);
        // Shows before anything is sent whether the driver can copy at all.
        if (!copies->wait_for(find_communicator(given.comm)->threshold)) error = MPI_ERR_OTHER;
        spec.copies = copies.get();
    } else {
        error = pack(given.buf, given.count, given.type, facts, host.data());
    }
    spec.buf = host.data();
    spec.count = static_cast<MPI_Count>(n);
    spec.type = constants.packed;
}

StagedReceive::StagedReceive(const ReceiveSpec& receive)
    : spec(receive), given(receive), facts(facts_of(receive.buf, receive.type)) {
    const std::size_t n = bytes_of(receive.count, facts);
    host = StagingMemory(receive.buf, n);
    if (host.is_pinned() && is_one_run(receive.type))
        copies = std::make_unique<CopiesToDevice>(receive.buf, host.data(), n);
    spec.copies = copies.get();
    spec.buf = host.data();
    spec.count = static_cast<MPI_Count>(n);
    spec.type = constants.packed;
}

int StagedReceive::deliver(std::size_t bytes) const {
    bytes = std::min(bytes, bytes_of(given.count, facts));
    if (copies) return copies->finish(bytes) ? MPI_SUCCESS : MPI_ERR_OTHER;
    return unpack(host.data(), bytes, given.buf, given.count, given.type, facts);
}

std::unique_ptr<Operation> start_staged_send(const SendSpec& spec) {
    StagedSend staged(spec);
    Communicator* comm = find_communicator(spec.comm);
    if (staged.error != MPI_SUCCESS) return std::make_unique<FailedOperation>(comm, staged.error);
    const SendSpec copy = staged.spec;
    auto operation = std::make_unique<StagedSendOperation>(comm, std::move(staged));
    operation->begin(begin_send(copy));
    return operation;
}

std::unique_ptr<Operation> start_staged_receive(const ReceiveSpec& spec, const StartReceive& start) {
    auto operation =
        std::make_unique<StagedReceiveOperation>(find_communicator(spec.comm), StagedReceive(spec));
    std::unique_ptr<Operation> inner = start(operation->spec());
    if (!inner) return nullptr;
    operation->begin(std::move(inner));
    return operation;
}

int raise_not_copied(const ReceiveSpec& spec, int code) {
    return raise_of(spec.comm, code, spec.call);
}
int raise_not_copied(const SendSpec& spec, int code) {
    return raise_of(spec.comm, code, spec.call);
}

}  // namespace mpisec::shim
