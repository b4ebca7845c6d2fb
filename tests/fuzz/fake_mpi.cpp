#include "fake_mpi.hpp"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "check.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"

namespace {
std::vector<char> said;
}

// Waiting is not what is tested, and sentences of the shim would drown the fuzzer's.
extern "C" int usleep(useconds_t) {
    return 0;
}
extern "C" int nanosleep(const timespec*, timespec*) {
    return 0;
}
extern "C" ssize_t write(int descriptor, const void* bytes, size_t n) {
    if (descriptor == STDERR_FILENO && n > 13 && std::memcmp(bytes, "mpisec: rank ", 13) == 0) {
        said.insert(said.end(), static_cast<const char*>(bytes), static_cast<const char*>(bytes) + n);
        return static_cast<ssize_t>(n);
    }
    return syscall(SYS_write, descriptor, bytes, n);
}

// For builds without the algorithms of collectives (collective_choice.hpp): none runs here.
namespace mpisec::shim {
[[gnu::weak]] std::array<std::uint8_t, 16> selection_mark() {
    return {};
}
}  // namespace mpisec::shim

namespace mpisec::fuzz {
namespace {

using shim::real;

constexpr int own_class = 200;

struct Receive {
    std::uint8_t* buffer = nullptr;
    std::size_t room = 0;
    MPI_Comm comm{};
    int source = 0, tag = 0;
    bool active = true, done = false, cancelled = false;
    int error = MPI_SUCCESS;
    MPI_Status status{};
};

struct World {
    int size = 0;
    int next_handle = 1;
    int next_error = own_class + 1;
    bool failing = false;
    std::map<int, std::shared_ptr<Receive>> requests;  // sends too: they are done from the start
    std::deque<std::shared_ptr<Receive>> posted;
    std::deque<Message> unexpected;
    std::map<int, Message> matched;  // by message handle
    std::vector<Message> sent;
};
World& world = *new World;

bool fits(MPI_Comm comm, int source, int tag, const Message& message) {
    return comm == message.comm && (source == MPI_ANY_SOURCE || source == message.peer) &&
           (tag == MPI_ANY_TAG || tag == message.tag);
}

void set_count(MPI_Status& status, std::size_t bytes) {
    status.count_lo = static_cast<int>(bytes & 0xFFFFFFFF);
    status.count_hi_and_cancelled = static_cast<int>(bytes >> 32 << 1);
}
std::size_t count_of(const MPI_Status& status) {
    return static_cast<std::size_t>(static_cast<unsigned>(status.count_hi_and_cancelled) >> 1) << 32 |
           static_cast<unsigned>(status.count_lo);
}

MPI_Status status_of(const Message& message) {
    MPI_Status status{};
    status.MPI_SOURCE = message.peer;
    status.MPI_TAG = message.tag;
    set_count(status, message.bytes.size());
    return status;
}

void deliver(Receive& receive, const Message& message) {
    const std::size_t n = std::min(receive.room, message.bytes.size());
    if (n > 0) std::memcpy(receive.buffer, message.bytes.data(), n);
    receive.status = status_of(message);
    set_count(receive.status, n);
    receive.error = n < message.bytes.size() ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
    receive.done = true;
}

int keep(std::shared_ptr<Receive> receive) {
    world.requests[world.next_handle] = std::move(receive);
    return world.next_handle++;
}

std::deque<Message>::iterator find_unexpected(MPI_Comm comm, int source, int tag) {
    return std::find_if(world.unexpected.begin(), world.unexpected.end(),
                        [&](const Message& message) { return fits(comm, source, tag, message); });
}

int irecv(void* buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
          MPI_Request* request) {
    FUZZ_CHECK(type == MPI_BYTE && count >= 0);
    auto receive = std::make_shared<Receive>();
    receive->buffer = static_cast<std::uint8_t*>(buffer);
    receive->room = static_cast<std::size_t>(count);
    receive->comm = comm;
    receive->source = source;
    receive->tag = tag;
    *request = keep(receive);
    if (const auto found = find_unexpected(comm, source, tag); found != world.unexpected.end()) {
        deliver(*receive, *found);
        world.unexpected.erase(found);
    } else {
        world.posted.push_back(receive);
    }
    return MPI_SUCCESS;
}

int isend(const void* buffer, int count, MPI_Datatype, int destination, int tag, MPI_Comm comm,
          MPI_Request* request) {
    const auto* bytes = static_cast<const std::uint8_t*>(buffer);
    Message message{comm, destination, tag, {bytes, bytes + count}};
    if (comm == private_handle)
        arrive(std::move(message));
    else
        world.sent.push_back(std::move(message));
    auto send = std::make_shared<Receive>();
    send->done = true;
    *request = keep(send);
    return MPI_SUCCESS;
}

int test(MPI_Request* request, int* flag, MPI_Status* status) {
    *flag = 1;
    if (*request == MPI_REQUEST_NULL) return MPI_SUCCESS;
    const auto found = world.requests.find(*request);
    FUZZ_CHECK(found != world.requests.end());  // the shim tests what it has completed or freed
    Receive& receive = *found->second;
    if (!receive.done && world.failing && receive.active) {
        std::erase(world.posted, found->second);
        receive.error = MPI_ERR_OTHER;
        receive.done = true;
    }
    if (!receive.done) {
        *flag = 0;
        return MPI_SUCCESS;
    }
    const int error = receive.error;
    if (status != MPI_STATUS_IGNORE) {
        *status = receive.status;
        if (receive.cancelled) status->count_hi_and_cancelled |= 1;
    }
    world.requests.erase(found);
    *request = MPI_REQUEST_NULL;
    return error;
}

int wait(MPI_Request* request, MPI_Status* status) {
    int flag = 0;
    const int code = test(request, &flag, status);
    FUZZ_CHECK(flag);  // else this process would wait for ever
    return code;
}

int cancel(MPI_Request* request) {
    const auto found = world.requests.find(*request);
    FUZZ_CHECK(found != world.requests.end());
    if (found->second->done) return MPI_SUCCESS;
    std::erase(world.posted, found->second);
    found->second->done = found->second->cancelled = true;
    return MPI_SUCCESS;
}

int iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
    const auto found = find_unexpected(comm, source, tag);
    *flag = found != world.unexpected.end();
    if (*flag && status != MPI_STATUS_IGNORE) *status = status_of(*found);
    return MPI_SUCCESS;
}

int improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* handle, MPI_Status* status) {
    const auto found = find_unexpected(comm, source, tag);
    *flag = found != world.unexpected.end();
    if (!*flag) return MPI_SUCCESS;
    if (status != MPI_STATUS_IGNORE) *status = status_of(*found);
    *handle = world.next_handle++;
    world.matched[*handle] = std::move(*found);
    world.unexpected.erase(found);
    return MPI_SUCCESS;
}

int mprobe(int source, int tag, MPI_Comm comm, MPI_Message* handle, MPI_Status* status) {
    int flag = 0;
    improbe(source, tag, comm, &flag, handle, status);
    FUZZ_CHECK(flag);
    return MPI_SUCCESS;
}

int imrecv(void* buffer, int count, MPI_Datatype, MPI_Message* handle, MPI_Request* request) {
    const auto found = world.matched.find(*handle);
    FUZZ_CHECK(found != world.matched.end() && count >= 0);
    auto receive = std::make_shared<Receive>();
    receive->buffer = static_cast<std::uint8_t*>(buffer);
    receive->room = static_cast<std::size_t>(count);
    deliver(*receive, found->second);
    world.matched.erase(found);
    *handle = MPI_MESSAGE_NULL;
    *request = keep(receive);
    return MPI_SUCCESS;
}

int mrecv(void* buffer, int count, MPI_Datatype type, MPI_Message* handle, MPI_Status* status) {
    MPI_Request request;
    imrecv(buffer, count, type, handle, &request);
    return wait(&request, status);
}

int recv_init(void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request* request) {
    auto receive = std::make_shared<Receive>();
    receive->active = false;
    *request = keep(receive);
    return MPI_SUCCESS;
}

bool is_self(MPI_Comm comm) {
    return comm == MPI_COMM_SELF || comm == private_handle;
}

void install_messages() {
    real.Irecv = irecv;
    real.Isend = real.Issend = real.Irsend = isend;
    real.Test = test;
    real.Wait = wait;
    real.Cancel = cancel;
    real.Iprobe = iprobe;
    real.Improbe = improbe;
    real.Mprobe = mprobe;
    real.Imrecv = imrecv;
    real.Mrecv = mrecv;
    real.Recv_init = recv_init;
    real.Request_free = [](MPI_Request* request) {
        world.requests.erase(*request);
        *request = MPI_REQUEST_NULL;
        return MPI_SUCCESS;
    };
}

void install_statuses_and_types() {
    real.Test_cancelled = [](const MPI_Status* status, int* flag) {
        *flag = status->count_hi_and_cancelled & 1;
        return MPI_SUCCESS;
    };
    real.Get_elements_x = [](const MPI_Status* status, MPI_Datatype, MPI_Count* count) {
        *count = static_cast<MPI_Count>(count_of(*status));
        return MPI_SUCCESS;
    };
    real.Get_count = [](const MPI_Status* status, MPI_Datatype type, int* count) {
        MPI_Count bytes = 0;
        const int code = real.Get_elements_x(status, type, &bytes);
        *count = static_cast<int>(bytes);
        return code;
    };
    real.Status_set_elements_x = [](MPI_Status* status, MPI_Datatype, MPI_Count count) {
        set_count(*status, static_cast<std::size_t>(count));
        return MPI_SUCCESS;
    };
    real.Status_set_cancelled = [](MPI_Status* status, int flag) {
        status->count_hi_and_cancelled = (status->count_hi_and_cancelled & ~1) | (flag ? 1 : 0);
        return MPI_SUCCESS;
    };
    real.Type_size_x = [](MPI_Datatype, MPI_Count* size) {
        *size = 1;
        return MPI_SUCCESS;
    };
    real.Type_get_extent = [](MPI_Datatype, MPI_Aint* lower, MPI_Aint* extent) {
        *lower = 0;
        *extent = 1;
        return MPI_SUCCESS;
    };
    real.Type_get_envelope = [](MPI_Datatype, int* integers, int* addresses, int* types, int* combiner) {
        *integers = *addresses = *types = 0;
        *combiner = MPI_COMBINER_NAMED;
        return MPI_SUCCESS;
    };
}

void install_communicators_and_errors() {
    real.Comm_test_inter = [](MPI_Comm, int* flag) { return *flag = 0, MPI_SUCCESS; };
    real.Comm_rank = [](MPI_Comm, int* rank) { return *rank = 0, MPI_SUCCESS; };
    real.Comm_size = [](MPI_Comm comm, int* size) {
        return *size = is_self(comm) ? 1 : world.size, MPI_SUCCESS;
    };
    real.Comm_group = [](MPI_Comm comm, MPI_Group* group) { return *group = comm, MPI_SUCCESS; };
    real.Group_free = [](MPI_Group*) { return MPI_SUCCESS; };
    real.Group_size = [](MPI_Group group, int* size) { return real.Comm_size(group, size); };
    real.Group_translate_ranks = [](MPI_Group, int n, const int* from, MPI_Group, int* to) {
        return std::copy_n(from, n, to), MPI_SUCCESS;
    };
    real.Comm_get_errhandler = [](MPI_Comm, MPI_Errhandler*) { return MPI_ERR_OTHER; };  // none that is fatal
    real.Comm_call_errhandler = [](MPI_Comm, int) { return MPI_SUCCESS; };
    real.Add_error_class = [](int* error_class) { return *error_class = own_class, MPI_SUCCESS; };
    real.Add_error_code = [](int, int* code) { return *code = world.next_error++, MPI_SUCCESS; };
    real.Add_error_string = [](int, const char*) { return MPI_SUCCESS; };
    real.Error_class = [](int code, int* error_class) {
        return *error_class = code >= own_class ? own_class : code, MPI_SUCCESS;
    };
    real.Error_string = [](int, char* text, int* length) {
        return std::strcpy(text, "error"), *length = 5, MPI_SUCCESS;
    };
    real.Abort = [](MPI_Comm, int) -> int { throw Aborted(); };
}

}  // namespace

void install_fake_mpi(int size) {
    world.size = size;
    install_messages();
    install_statuses_and_types();
    install_communicators_and_errors();
    shim::constants.comm_world = MPI_COMM_WORLD;
    shim::constants.comm_self = MPI_COMM_SELF;
    shim::constants.comm_null = MPI_COMM_NULL;
    shim::constants.request_null = MPI_REQUEST_NULL;
    shim::constants.message_null = MPI_MESSAGE_NULL;
    shim::constants.message_no_proc = MPI_MESSAGE_NO_PROC;
    shim::constants.datatype_null = MPI_DATATYPE_NULL;
    shim::constants.byte = MPI_BYTE;
}

void reset_fake_mpi() {
    const int size = world.size;
    world = World();
    world.size = size;
    said.clear();
}

void arrive(Message message) {
    const auto found = std::find_if(world.posted.begin(), world.posted.end(), [&](const auto& receive) {
        return fits(receive->comm, receive->source, receive->tag, message);
    });
    if (found == world.posted.end()) return world.unexpected.push_back(std::move(message));
    deliver(**found, message);
    world.posted.erase(found);
}

std::vector<Message> take_sent() {
    return std::exchange(world.sent, {});
}

void fail_receives() {
    world.failing = true;
    world.unexpected.clear();
}

std::vector<char> take_said() {
    return std::exchange(said, {});
}

}  // namespace mpisec::fuzz
