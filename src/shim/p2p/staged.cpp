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

/// What is under way in the host's memory.
class StagedOperation : public Operation {
  public:
    StagedOperation(Communicator* comm, StagingMemory host) : Operation(comm), host_(std::move(host)) {}
    ~StagedOperation() override {
        leave_work_list(*this);
        drop_comm();
    }
    void cancel() override {
        if (!complete_) inner_->cancel();
    }
    bool needs_progress() const override { return true; }
    WaitInfo wait_info() const override { return inner_->wait_info(); }
    void begin(std::unique_ptr<Operation> inner) {
        inner_ = std::move(inner);
        step();
        enlist(*this);
    }

  protected:
    virtual int arrived() { return MPI_SUCCESS; }
    void step() override {
        if (!inner_->advance()) return;
        outcome_ = inner_->outcome();
        const bool good = outcome_.error == MPI_SUCCESS && !outcome_.cancelled;
        const int code = good ? arrived() : outcome_.error;
        finish(code, outcome_.raised);
    }

  private:
    StagingMemory host_;
    std::unique_ptr<Operation> inner_;  ///< ends before its buffer
};

class StagedReceiveOperation final : public StagedOperation {
  public:
    StagedReceiveOperation(Communicator* comm, StagedReceive staged)
        : StagedOperation(comm, StagingMemory()), staged_(std::move(staged)) {
        staged_.given.type = keep_type(staged_.given.type);
    }
    ~StagedReceiveOperation() override { release_type(staged_.given.type); }
    const ReceiveSpec& spec() const { return staged_.spec; }

  private:
    int arrived() override { return staged_.deliver(outcome_.bytes); }
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
    error = pack(given.buf, given.count, given.type, facts, host.data());
    spec.buf = host.data();
    spec.count = static_cast<MPI_Count>(n);
    spec.type = constants.packed;
}

StagedReceive::StagedReceive(const ReceiveSpec& receive)
    : spec(receive), given(receive), facts(facts_of(receive.buf, receive.type)) {
    const std::size_t n = bytes_of(receive.count, facts);
    host = StagingMemory(receive.buf, n);
    spec.buf = host.data();
    spec.count = static_cast<MPI_Count>(n);
    spec.type = constants.packed;
}

int StagedReceive::deliver(std::size_t bytes) const {
    return unpack(host.data(), std::min(bytes, bytes_of(given.count, facts)), given.buf, given.count,
                  given.type, facts);
}

std::unique_ptr<Operation> start_staged_send(const SendSpec& spec) {
    StagedSend staged(spec);
    Communicator* comm = find_communicator(spec.comm);
    if (staged.error != MPI_SUCCESS) return std::make_unique<FailedOperation>(comm, staged.error);
    const SendSpec copy = staged.spec;
    auto operation = std::make_unique<StagedOperation>(comm, std::move(staged.host));
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
