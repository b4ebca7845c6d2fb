// The receiving side of the shim with all its state: receives, probes, segments of large messages, rejections
// and their answers, on an MPI in memory. The input says what the user calls, what other ranks send, and what
// the network makes of it: delivers, swaps, changes, cuts, repeats, drops and invents.
//
// Whatever it does, a receive that succeeds holds one genuine message of that communicator, source and tag,
// each at most once and in order; any other buffer holds nothing but its old content, zeros and authenticated
// parts of messages; nothing is written beyond a buffer; nothing ends the job; everything can be ended. As
// long as the network does nothing but deliver, nothing fails.
#include <algorithm>
#include <memory>

#include "sender.hpp"
#include "shim/calls/entry.hpp"
#include "shim/p2p/communicator.hpp"
#include "shim/p2p/operation.hpp"
#include "shim/p2p/peer_state.hpp"
#include "shim/p2p/rejected_messages.hpp"
#include "shim/p2p/requests.hpp"
#include "shim/p2p/violations.hpp"
#include "shim/runtime/pool.hpp"
#include "shim/runtime/state.hpp"
#ifdef MPISEC_NONCE_LEDGER
#include "aead/nonce_ledger.hpp"
#endif

extern "C" const mpisec_aead_plugin mpisec_aead_plugin_table;  // of plugins/openssl.cpp

using namespace mpisec;
using namespace mpisec::fuzz;

namespace {

constexpr int world_size = 4, node_peer = 2;  // this rank is 0; 1 and 3 are on other nodes
constexpr int tags = 3;
constexpr std::size_t threshold = 64, short_first = 40, segment = 32, longest = threshold + 10 * segment;

const aead::Selection& selection() {
    static const aead::Library library(&mpisec_aead_plugin_table);
    static const aead::Selection all{aead::Cipher::aes_128_gcm, {&library, &library, &library}};
    return all;
}

keys::Secret job_secret() {
    keys::Secret secret;
    std::memset(secret.data(), 0x42, keys::secret_bytes);
    return secret;
}

/// The shim as it is after MPI_Init.
void start_shim() {
    static const bool once = [] {
        install_fake_mpi(world_size);
        return true;
    }();
    (void)once;
    reset_fake_mpi();
    shim::State& state = shim::state;
    state.settings.workers = 0;
    state.settings.segment = segment;
    state.settings.same_node = config::Settings::SameNode::plain;  // what needs other processes is not fuzzed
    state.tag_upper_bound = 32767;
    state.private_self = private_handle;
    shim::World& world = state.world;
    world.rank = 0;
    world.size = world_size;
    world.topology = fabric::Topology({0, 1, 0, 2});
    world.nodes = 3;
    world.threshold = threshold;
    world.short_first = short_first;
    world.crosses_nodes = true;
    world.channel = channel_handle;
    world.job_secret = job_secret();
    world.selection = selection();
    shim::make_peer_states();
    shim::register_errors();
    auto know = [](MPI_Comm comm, std::vector<std::int32_t> members, const char* constructor) {
        const shim::Membership membership{std::move(members), {}};
        shim::adopt(comm, membership, shim::derive_context(shim::no_parent(), constructor, membership));
    };
    know(MPI_COMM_WORLD, {0, 1, 2, 3}, "MPI_COMM_WORLD");
    know(MPI_COMM_SELF, {0}, "MPI_COMM_SELF");
    know(channel_handle, {0, 1, 2, 3}, "channel");
    know(other_handle, {0, 1, 2, 3}, "MPI_Comm_dup");
}

/// Where the kernel copies to them at full speed (docs/adr/0022-buffers-begin-in-the-middle-of-a-page.md).
void long_buffers_begin_in_the_middle_of_a_page() {
    for (std::size_t bytes : {std::size_t{16} << 10, std::size_t{256} << 10, std::size_t{64} << 20}) {
        const shim::Buffer buffer(bytes);
        FUZZ_CHECK(reinterpret_cast<std::uintptr_t>(buffer.data()) % 4096 == 2048);
    }
}

void stop_shim() {
    for (int i = 0; i < 1000; ++i) shim::progress();
    shim::forget_rejections();
    FUZZ_CHECK(!shim::work_outstanding());  // something would go on for ever
    shim::finish_detached();
    shim::free_requests();
    shim::forget_peer_states();
    shim::forget_all();
    long_buffers_begin_in_the_middle_of_a_page();
    shim::empty_pool();
#ifdef MPISEC_NONCE_LEDGER
    aead::forget_nonces();
#endif
}

struct UserReceive {
    MPI_Comm comm;
    std::size_t capacity;
    /// As large as the capacity: the address sanitizer sees any overrun.
    std::unique_ptr<std::uint8_t[]> buffer;
    std::uint64_t position;  ///< of posting, or of the matched probe
    MPI_Request request = MPI_REQUEST_NULL;
    bool done = false;
};

struct UserMessage {
    MPI_Comm comm;
    std::uint64_t position;
    MPI_Message handle;
};

class Scenario {
  public:
    explicit Scenario(fuzz::Input& input) : input_(input), job_secret_(job_secret()) {
        start_shim();
        for (MPI_Comm comm : {MPI_COMM_WORLD, channel_handle, other_handle})
            job_.contexts[comm] = shim::find_communicator(comm)->context;
    }

    void run() {
        for (int step = 0; step < 300 && !input_.empty(); ++step) one_step();
        end();
    }

  private:
    std::size_t byte() { return input_.take<std::uint8_t>(); }
    MPI_Comm user_comm() { return byte() % 4 == 3 ? other_handle : MPI_COMM_WORLD; }
    int remote() { return byte() % 4 == 3 ? 3 : 1; }
    Sender& sender(int rank) { return rank == 1 ? one_ : three_; }

    void one_step() {
        switch (byte() % 16) {
            case 0:
            case 1:
                return send(byte() % (threshold + 1));
            case 2:
                return send(threshold + 1 + byte() * byte() % (longest - threshold));
            case 3:
                return send_from_node_peer();
            case 4:
            case 5:
                return deliver(0);
            case 6:
                return deliver(byte());
            case 7:
                return change();
            case 8:
                return repeat();
            case 9:
                return drop();
            case 10:
                return invent();
            case 11:
            case 12:
                return post();
            case 13:
                return test_all();
            case 14:
                return probe();
            default:
                return answer_or_cancel();
        }
    }

    void send(std::size_t n) {
        const int rank = remote();
        if (byte() % 8 == 7) sender(rank).next_epoch();
        const MPI_Comm comm = user_comm();
        for (Message& message : sender(rank).send(comm, static_cast<int>(byte() % tags), n))
            air_.push_back(std::move(message));
    }

    void send_from_node_peer() {
        const MPI_Comm comm = user_comm();
        const int tag = static_cast<int>(byte() % tags);
        std::vector<std::uint8_t> plaintext(byte(), static_cast<std::uint8_t>(1 + sent_.size() % 160));
        sent_.push_back({comm, node_peer, tag, 0, plaintext, {}, false, false});
        arrive({comm, node_peer, tag, std::move(plaintext)});
    }

    /// MPI keeps the order of the messages between two ranks on a communicator; who delivers another one
    /// first attacks. (On the channel every message has its own tag.)
    void deliver(std::size_t which) {
        if (air_.empty()) return;
        const auto chosen = air_.begin() + static_cast<std::ptrdiff_t>(which % air_.size());
        attacked_ = attacked_ || std::any_of(air_.begin(), chosen, [&](const Message& earlier) {
                        return earlier.peer == chosen->peer && earlier.comm == chosen->comm &&
                               (earlier.comm != channel_handle || earlier.tag == chosen->tag);
                    });
        if (history_.size() < 32) history_.push_back(*chosen);
        Message message = std::move(*chosen);
        air_.erase(chosen);
        arrive(std::move(message));
    }

    void change() {
        if (air_.empty()) return;
        attacked_ = true;
        Message& message = air_[byte() % air_.size()];
        std::vector<std::uint8_t>& bytes = message.bytes;
        switch (byte() % 8) {
            case 0:
                if (!bytes.empty()) bytes[byte() % bytes.size()] ^= static_cast<std::uint8_t>(byte());
                return;
            case 1:
                return bytes.resize(bytes.size() - std::min(bytes.size(), byte()));
            case 2:
                return bytes.resize(bytes.size() + byte(), 0x77);
            case 3:
                message.tag = static_cast<int>(input_.take<std::uint16_t>() % 32768);
                return;
            case 4:
                message.peer = message.peer == 1 ? 3 : 1;
                return;
            case 5:
                message.comm = byte() % 3 == 0 ? channel_handle : user_comm();
                return;
            case 6:
                bytes = air_[byte() % air_.size()].bytes;
                return;
            default:
                if (bytes.size() >= wire::small_overhead) store_le(bytes.data() + 4, std::uint64_t{byte()});
        }
    }

    void repeat() {
        const std::vector<Message>& from = byte() % 2 && !air_.empty() ? air_ : history_;
        if (from.empty()) return;
        attacked_ = true;
        arrive(Message(from[byte() % from.size()]));
    }

    void drop() {
        if (air_.empty()) return;
        attacked_ = true;
        air_.erase(air_.begin() + static_cast<std::ptrdiff_t>(byte() % air_.size()));
    }

    void invent() {
        attacked_ = true;
        Message message{
            byte() % 4 == 0 ? channel_handle : user_comm(), remote(), static_cast<int>(byte() % tags), {}};
        if (message.comm == channel_handle && byte() % 2) message.tag = 32765 + message.tag % 2;
        if (byte() % 4 == 0)
            message.bytes.resize(wire::large_first_wire_bytes(byte() % 2 ? threshold : short_first));
        const std::size_t n = byte();
        for (std::size_t i = 0; i < n; ++i) {
            const auto value = input_.take<std::uint8_t>();
            i < message.bytes.size() ? void(message.bytes[i] = value) : message.bytes.push_back(value);
        }
        arrive(std::move(message));
    }

    UserReceive& new_receive(MPI_Comm comm, std::uint64_t position) {
        const std::size_t choice = byte(), capacity = choice < 128 ? choice : choice * 3;
        UserReceive& receive = receives_.emplace_back(
            UserReceive{comm, capacity, std::make_unique<std::uint8_t[]>(capacity), position});
        std::fill_n(receive.buffer.get(), capacity, canary);
        return receive;
    }

    int any_source() {
        static constexpr int choices[] = {1, 1, 3, node_peer, MPI_ANY_SOURCE, MPI_ANY_SOURCE};
        return choices[byte() % std::size(choices)];
    }
    int any_tag() {
        const int tag = static_cast<int>(byte() % (tags + 1));
        return tag == tags ? MPI_ANY_TAG : tag;
    }

    void post() {
        if (receives_.size() >= 100) return;
        UserReceive& receive = new_receive(user_comm(), ++position_);
        const int source = any_source();
        FUZZ_CHECK(shim::Irecv(receive.buffer.get(), static_cast<MPI_Count>(receive.capacity), MPI_BYTE,
                               source, any_tag(), receive.comm, &receive.request) == MPI_SUCCESS);
    }

    void probe() {
        const MPI_Comm comm = user_comm();
        const int source = any_source(), tag = any_tag();
        int flag = 0;
        MPI_Status status;
        const std::size_t what = byte() % 3;
        if (what == 0) {
            FUZZ_CHECK(shim::Iprobe(source, tag, comm, &flag, &status) == MPI_SUCCESS);
        } else if (what == 1) {
            MPI_Message handle;
            FUZZ_CHECK(shim::Improbe(source, tag, comm, &flag, &handle, &status) == MPI_SUCCESS);
            if (flag) matched_.push_back({comm, ++position_, handle});
        } else {
            receive_matched();
        }
    }

    void receive_matched() {
        if (matched_.empty()) return;
        UserMessage message = matched_.front();
        matched_.erase(matched_.begin());
        UserReceive& receive = new_receive(message.comm, message.position);
        FUZZ_CHECK(shim::Imrecv(receive.buffer.get(), static_cast<MPI_Count>(receive.capacity), MPI_BYTE,
                                &message.handle, &receive.request) == MPI_SUCCESS);
    }

    /// Other ranks look at what this one has sent them, and their answers are on the way; or the user gives
    /// up a receive.
    void answer_or_cancel() {
        if (byte() % 4 == 0) {
            if (receives_.empty()) return;
            UserReceive& receive = receives_[byte() % receives_.size()];
            if (!receive.done) shim::Cancel(&receive.request);
            return;
        }
        for (const Message& notice : take_sent()) {
            FUZZ_CHECK(notice.peer == 1 || notice.peer == 3);
            if (auto answer = sender(notice.peer).answer(notice)) air_.push_back(std::move(*answer));
        }
    }

    void test_all() {
        for (UserReceive& receive : receives_) {
            if (receive.done) continue;
            int flag = 0;
            MPI_Status status{};
            const int code = shim::Test(&receive.request, &flag, &status);
            if (!flag && code == MPI_SUCCESS) continue;
            receive.done = true;
            check(receive, code, status);
        }
    }

    void check(const UserReceive& receive, int code, const MPI_Status& status) {
        if (!attacked_ && !ending_) FUZZ_CHECK(code == MPI_SUCCESS || code == MPI_ERR_TRUNCATE);
        if (code != MPI_SUCCESS || (status.count_hi_and_cancelled & 1)) return check_partial(receive);
        const auto n = static_cast<std::size_t>(status.count_lo);
        FUZZ_CHECK(n <= receive.capacity);
        const auto found = std::find_if(sent_.begin(), sent_.end(), [&](const Genuine& one) {
            return !one.accepted && one.comm == receive.comm && one.source == status.MPI_SOURCE &&
                   one.tag == status.MPI_TAG && one.plaintext.size() == n &&
                   std::equal(one.plaintext.begin(), one.plaintext.end(), receive.buffer.get());
        });
        FUZZ_CHECK(found != sent_.end());  // not genuine, or accepted before
        found->accepted = true;
        FUZZ_CHECK(std::all_of(receive.buffer.get() + n, receive.buffer.get() + receive.capacity,
                               [](std::uint8_t value) { return value == canary; }));
        if (n < 8 || found->source == node_peer) return;  // two short ones may be alike
        for (const Taken& other : taken_) {
            const Genuine& before = sent_[other.message];
            if (before.comm != found->comm || before.source != found->source || before.tag != found->tag)
                continue;
            FUZZ_CHECK((other.position < receive.position) == (before.counter < found->counter));  // swapped
        }
        taken_.push_back({receive.position, static_cast<std::size_t>(found - sent_.begin())});
    }

    /// No byte that was not there before or authenticated for this place.
    void check_partial(const UserReceive& receive) const {
        for (std::size_t i = 0; i < receive.capacity; ++i) {
            const std::uint8_t value = receive.buffer[i];
            FUZZ_CHECK(value == canary || value == 0 ||
                       std::any_of(sent_.begin(), sent_.end(), [&](const Genuine& one) {
                           return one.comm == receive.comm && i < one.plaintext.size() &&
                                  one.plaintext[i] == value;
                       }));
        }
    }

    void end() {
        test_all();
        ending_ = true;
        fail_receives();
        while (!matched_.empty()) receive_matched();
        for (int i = 0; i < 100; ++i) test_all();
        for (const UserReceive& receive : receives_) FUZZ_CHECK(receive.done);  // it would never end
        stop_shim();
    }

    struct Taken {
        std::uint64_t position;
        std::size_t message;
    };

    fuzz::Input& input_;
    keys::Secret job_secret_;
    Job job_{selection(), job_secret_, threshold, short_first, segment, 32767, {}};
    std::vector<Genuine> sent_;
    Sender one_{job_, 1, sent_}, three_{job_, 3, sent_};
    std::vector<Message> air_, history_;
    std::vector<UserReceive> receives_;
    std::vector<UserMessage> matched_;
    std::vector<Taken> taken_;
    std::uint64_t position_ = 0;
    bool attacked_ = false, ending_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input(data, size);
    Scenario(input).run();
    return 0;
}
