// Messages, all on MPI_COMM_WORLD, before the program can send any; little-endian:
//
//   1  child to parent   digest of the cards (32) and cipher (4), both in clear | Noise message 1 (48)
//   2  parent to child   Noise message 2 (48)
//   3  parent to child   transport message: job secret (32), speed of the cipher: 0 slow, 1 medium, 2 fast (1), and tag
//   4  child to parent   transport message: nodes below and including the child (4) and tag
//
// Prologue of the handshake, the same on both sides:
//   "mpisec handshake" | protocol version (4) | cipher (4) | world size (4) | digest of the cards (32)
//   | child's rank (4) | parent's rank (4)
#include "shim/startup/key_exchange.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "aead/throughput.hpp"
#include "base/bytes.hpp"
#include "keys/key_file.hpp"
#include "keys/noise.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/startup/waiting.hpp"

namespace mpisec::shim {
namespace {

using keys::noise::HandshakeState;
using keys::noise::Role;
using keys::noise::Transport;

constexpr std::size_t clear_bytes = keys::digest_bytes + 4;
constexpr std::size_t initiation_bytes = clear_bytes + HandshakeState::message_bytes(0);
constexpr std::size_t answer_bytes = HandshakeState::message_bytes(0);
constexpr std::size_t agreement_bytes = keys::secret_bytes + 1;
constexpr std::size_t job_secret_bytes = agreement_bytes + keys::noise::tag_bytes;
constexpr std::size_t count_bytes = 4 + keys::noise::tag_bytes;

enum Tag : int { tag_initiation = 1, tag_answer, tag_job_secret, tag_count };

/// One node leader's part.
class Leader {
  public:
    explicit Leader(const Leadership& own) : own_(own), digest_(digest(own.cards)) { find_neighbours(); }

    JobAgreement run() {
        // While others get here.
        const aead::Speed speed = parent_ ? aead::Speed::slow : aead::speed_of(own_.selection);
        handshakes();
        JobAgreement agreement = parent_ ? receive_agreement() : JobAgreement{keys::Secret::random(), speed};
        for (Link& child : children_) send_agreement(child, agreement);
        count_nodes();
        return agreement;
    }

  private:
    struct Link {
        int rank;
        std::optional<HandshakeState> handshake;
        Transport transport;
    };

    /// The binomial tree: node n is below the node that is n without its lowest bit, and above n + 1, n + 2, n + 4 … as
    /// long as those bits are not set.
    void find_neighbours() {
        nodes_ = own_.cards.size();
        const auto leader = [&](std::size_t node) { return own_.cards[node].hello.rank; };
        const auto found =
            std::ranges::find(own_.cards, own_.rank, [](const NodeCard& card) { return card.hello.rank; });
        if (found == own_.cards.end()) abort_job("This rank leads no node; this is a fault of MPIsec.");
        const auto own = static_cast<std::size_t>(found - own_.cards.begin());
        if (own != 0) parent_ = Link{leader(own & (own - 1)), {}, {}};
        for (std::size_t bit = 1; own + bit < nodes_ && (own & bit) == 0; bit <<= 1) {
            children_.push_back(Link{leader(own + bit), {}, {}});
        }
    }

    std::vector<std::uint8_t> prologue(int child, int parent) const {
        std::vector<std::uint8_t> bytes;
        auto add = [&bytes](const void* data, std::size_t n) {
            bytes.insert(bytes.end(), static_cast<const std::uint8_t*>(data),
                         static_cast<const std::uint8_t*>(data) + n);
        };
        auto add_number = [&add](std::uint32_t number) { add(&number, sizeof number); };
        add("mpisec handshake", 16);
        add_number(protocol_version);
        add_number(static_cast<std::uint32_t>(own_.selection.cipher));
        add_number(static_cast<std::uint32_t>(own_.size));
        add(digest_.data(), digest_.size());
        add_number(static_cast<std::uint32_t>(child));
        add_number(static_cast<std::uint32_t>(parent));
        return bytes;
    }

    void handshakes() {
        if (parent_) send_initiation();
        for (Link& child : children_) answer(child);
        if (!parent_) return;
        auto message = receive(parent_->rank, tag_answer, answer_bytes, "the handshake's answer");
        // The parent accepted our first message, so it has our key and our cards: only its answer can be wrong.
        if (!parent_->handshake->read_message(message))
            abort_changed(parent_->rank, "The answer to the handshake");
        finish(*parent_);
    }

    void send_initiation() {
        parent_->handshake.emplace(Role::initiator, prologue(own_.rank, parent_->rank), own_.key);
        auto message = parent_->handshake->write_message({});
        if (!message) abort_job(message.error().message);
        std::vector<std::uint8_t> initiation(clear_bytes);
        std::memcpy(initiation.data(), digest_.data(), digest_.size());
        store_le(initiation.data() + digest_.size(), static_cast<std::uint32_t>(own_.selection.cipher));
        initiation.insert(initiation.end(), message->begin(), message->end());
        send(parent_->rank, tag_initiation, initiation);
    }

    void answer(Link& child) {
        child.handshake.emplace(Role::responder, prologue(child.rank, own_.rank), own_.key);
        auto initiation =
            receive(child.rank, tag_initiation, initiation_bytes, "the handshake's first message");
        if (std::memcmp(initiation.data(), digest_.data(), digest_.size()) != 0) {
            abort_changed(child.rank, "The node map and settings that each received");
        }
        const auto cipher = load_le<std::uint32_t>(initiation.data() + digest_.size());
        if (cipher != static_cast<std::uint32_t>(own_.selection.cipher)) abort_cipher(child.rank, cipher);
        if (!child.handshake->read_message(keys::Bytes(initiation).subspan(clear_bytes)))
            abort_wrong_key(child.rank);
        auto message = child.handshake->write_message({});
        if (!message) abort_job(message.error().message);
        finish(child);
        send(child.rank, tag_answer, *message);
    }

    static void finish(Link& link) {
        auto transport = link.handshake->split();
        if (!transport) abort_job(transport.error().message);
        link.transport = std::move(*transport);
        link.handshake.reset();
    }

    JobAgreement receive_agreement() {
        auto sealed = receive(parent_->rank, tag_job_secret, job_secret_bytes, "the job secret");
        std::array<std::uint8_t, agreement_bytes> plain;
        if (!parent_->transport.receive.decrypt({}, sealed, plain.data()))
            abort_changed(parent_->rank, "The message with the job secret");
        JobAgreement agreement{keys::Secret(keys::Bytes(plain).first<keys::secret_bytes>()),
                               static_cast<aead::Speed>(plain.back())};
        keys::wipe(plain.data(), plain.size());
        return agreement;
    }

    void send_agreement(Link& child, const JobAgreement& agreement) {
        std::array<std::uint8_t, agreement_bytes> plain;
        std::memcpy(plain.data(), agreement.secret.data(), keys::secret_bytes);
        plain.back() = static_cast<std::uint8_t>(agreement.cipher_speed);
        std::vector<std::uint8_t> sealed(job_secret_bytes);
        auto done = child.transport.send.encrypt({}, plain, sealed.data());
        keys::wipe(plain.data(), plain.size());
        if (!done) abort_job(done.error().message);
        send(child.rank, tag_job_secret, sealed);
    }

    /// Sums up how many nodes have the job secret: rank 0 must find all of them.
    void count_nodes() {
        std::uint32_t count = 1;
        std::uint8_t bytes[4];
        for (Link& child : children_) {
            auto sealed = receive(child.rank, tag_count, count_bytes, "the confirmation of the job secret");
            if (!child.transport.receive.decrypt({}, sealed, bytes))
                abort_changed(child.rank, "The confirmation of the job secret");
            count += load_le<std::uint32_t>(bytes);
        }
        if (!parent_) {
            if (count != nodes_) {
                abort_job("Only " + std::to_string(count) + " of " + std::to_string(nodes_) +
                          " nodes have the job secret.");
            }
            return;
        }
        store_le(bytes, count);
        std::vector<std::uint8_t> sealed(count_bytes);
        auto done = parent_->transport.send.encrypt({}, bytes, sealed.data());
        if (!done) abort_job(done.error().message);
        send(parent_->rank, tag_count, sealed);
    }

    void send(int to, Tag tag, const std::vector<std::uint8_t>& bytes) {
        check_mpi(real.Send(bytes.data(), static_cast<int>(bytes.size()), constants.byte, to, tag, own_.comm),
                  "MPI_Send");
    }

    /// A message of exactly `n` bytes; room for one more, so that a longer one shows.
    std::vector<std::uint8_t> receive(int from, Tag tag, std::size_t n, const char* what) {
        std::vector<std::uint8_t> bytes(n + 1);
        MPI_Request request;
        MPI_Status status;
        int count = 0;
        int code = real.Irecv(bytes.data(), static_cast<int>(bytes.size()), constants.byte, from, tag,
                              own_.comm, &request);
        const std::string waiting = std::string(what) + " from " + name_of(own_.cards, from);
        if (code == MPI_SUCCESS) code = complete(&request, waiting, own_.settings, &status);
        if (code == MPI_SUCCESS) code = real.Get_count(&status, constants.byte, &count);
        if (code != MPI_SUCCESS || count != static_cast<int>(n)) abort_changed(from, what);
        bytes.resize(n);
        return bytes;
    }

    [[noreturn]] void abort_cipher(int peer, std::uint32_t cipher) {
        std::string theirs = "number " + std::to_string(cipher);
        for (const aead::CipherInfo& known : aead::ciphers()) {
            if (static_cast<std::uint32_t>(known.id) == cipher) theirs = known.name;
        }
        abort_job(name_of(own_.cards, peer) + " uses the cipher " + theirs + ", this rank uses " +
                  std::string(aead::info(own_.selection.cipher).name) +
                  ": set MPISEC_AEAD alike on all nodes; `mpisec doctor` shows where a setting comes from.");
    }

    [[noreturn]] void abort_wrong_key(int peer) {
        abort_job("The handshake with " + name_of(own_.cards, peer) +
                  " failed: its node has another key than this one (" + own_.settings.key_file +
                  ", fingerprint " + keys::fingerprint(own_.key) +
                  "), or something between the nodes changed the message. Run `mpisec key show` on both "
                  "nodes, and copy the right file to "
                  "every node.");
    }

    [[noreturn]] void abort_changed(int peer, const std::string& what) {
        abort_job(what + ", between this rank and " + name_of(own_.cards, peer) +
                  ", is not what it should be: something between the nodes changes messages.");
    }

    const Leadership& own_;
    keys::Digest digest_;
    std::size_t nodes_ = 0;
    std::optional<Link> parent_;
    std::vector<Link> children_;
};

}  // namespace

JobAgreement agree_on_job_secret(const Leadership& own) {
    return Leader(own).run();
}

}  // namespace mpisec::shim
