// Another rank of the job, as far as the receiver needs it: it seals genuine messages with the code that jobs
// use for layout and keys, and answers rejections as docs/protocol.md says.
#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "aead/aead.hpp"
#include "check.hpp"
#include "fake_mpi.hpp"
#include "keys/schedule.hpp"
#include "wire/stream.hpp"

namespace mpisec::fuzz {

inline constexpr std::uint8_t canary = 0xA5;

/// What was really sent, in plaintext, whose bytes are neither zero nor the canary.
struct Genuine {
    MPI_Comm comm{};
    int source = 0, tag = 0;
    std::uint64_t counter = 0;
    std::vector<std::uint8_t> plaintext;
    std::optional<wire::LargeHeader> header;
    bool accepted = false;  ///< by the user of the receiving rank
    bool named = false;     ///< to the receiving rank, when it had rejected a message
};

struct Job {
    const aead::Selection& selection;
    const keys::Secret& job_secret;
    std::size_t threshold, short_first;
    std::uint32_t segment;
    int tag_upper_bound;
    std::map<MPI_Comm, wire::ContextId> contexts;
};

class Sender {
  public:
    Sender(const Job& job, int rank, std::vector<Genuine>& sent) : job_(job), rank_(rank), sent_(sent) {}

    void next_epoch() { ++epoch_; }

    /// The MPI messages of a message of `n` bytes to rank 0.
    std::vector<Message> send(MPI_Comm comm, int tag, std::size_t n) {
        Genuine message{comm, rank_, tag, counter_++, {}, {}, false, false};
        for (std::size_t i = 0; i < n; ++i)
            message.plaintext.push_back(static_cast<std::uint8_t>(
                1 + (i * 31 + message.counter * 97 + static_cast<std::size_t>(rank_) * 13 + i / 7) % 160));
        std::vector<Message> wire;
        // Either length of a first part, in turns: a message between the two may travel in one part or in several.
        const std::size_t first = counter_ % 2 ? job_.short_first : job_.threshold;
        if (n <= first) {
            wire.push_back({comm, rank_, tag, seal_small(comm, tag, message.counter, message.plaintext)});
        } else {
            message.header = {n, static_cast<std::uint32_t>(first), job_.segment,
                              next_channel_++ % (job_.tag_upper_bound / 4)};
            wire = seal_large(message);
        }
        sent_.push_back(std::move(message));
        return wire;
    }

    /// A rejection that rank 0 has sent to this one: the answer, or nothing for what is none.
    std::optional<Message> answer(const Message& notice) {
        if (notice.comm != channel_handle || notice.tag != job_.tag_upper_bound - 1) return {};
        const std::vector<std::uint8_t> rejection = open_small(notice);
        FUZZ_CHECK(rejection.size() == 28);
        Genuine* meant = which(rejection);
        std::vector<std::uint8_t> rest(8 + wire::large_header_bytes);
        if (meant) {
            meant->named = true;
            store_le(rest.data(), meant->counter);
            wire::encode(*meant->header, rest.data() + 8);
        }
        const int tag = job_.tag_upper_bound - 2;
        return Message{channel_handle, rank_, tag, seal_small(channel_handle, tag, counter_++, rest)};
    }

  private:
    struct Keys {
        aead::KeySet aead;
        keys::Secret message;
    };
    Keys derive(int source, int destination, std::uint32_t epoch) const {
        keys::PairSecret secret = keys::pair_secret(job_.job_secret, source, destination, epoch);
        return {aead::KeySet(job_.selection, secret.aead.data()), std::move(secret.message)};
    }
    Keys& keys() {
        auto found = keys_.find(epoch_);
        if (found == keys_.end()) found = keys_.emplace(epoch_, derive(rank_, 0, epoch_)).first;
        return found->second;
    }

    std::vector<std::uint8_t> seal_small(MPI_Comm comm, int tag, std::uint64_t counter,
                                         const std::vector<std::uint8_t>& plaintext) {
        const wire::Nonce nonce = wire::make_nonce({wire::Kind::small, epoch_, counter});
        const auto ad =
            wire::associated_data(wire::Kind::small, job_.contexts.at(comm), rank_, 0, tag, plaintext.size());
        std::vector<std::uint8_t> bytes(plaintext.size() + wire::small_overhead);
        std::copy(nonce.begin(), nonce.end(), bytes.begin());
        FUZZ_CHECK(keys().aead.seal(bytes.data() + nonce.size(), plaintext.data(), plaintext.size(),
                                    nonce.data(), ad.data(), ad.size()));
        return bytes;
    }

    std::vector<Message> seal_large(const Genuine& message) {
        const std::size_t first_bytes = wire::large_first_wire_bytes(message.header->first_bytes);
        const wire::Nonce nonce = wire::make_nonce({wire::Kind::large_header, epoch_, message.counter});
        const auto ad = wire::associated_data(wire::Kind::large_header, job_.contexts.at(message.comm), rank_,
                                              0, message.tag, first_bytes);
        std::vector<std::uint8_t> first(first_bytes);
        std::copy(nonce.begin(), nonce.end(), first.begin());
        std::uint8_t header[wire::large_header_bytes], key[aead::max_key_bytes];
        wire::encode(*message.header, header);
        FUZZ_CHECK(keys().aead.seal(first.data() + nonce.size(), header, sizeof header, nonce.data(),
                                    ad.data(), ad.size()));
        keys::message_key(keys().message, message.counter, key);
        aead::KeySet segments(job_.selection, key);
        std::vector<Message> wire = {{message.comm, rank_, message.tag, {}}};
        const wire::SegmentPlan plan{message.plaintext.size(), message.header->first_bytes, job_.segment};
        for (std::uint64_t i = 0; i < plan.count(); ++i) {
            std::vector<std::uint8_t> sealed(plan.size(i) + aead::tag_bytes);
            const wire::Nonce its = wire::segment_nonce(i, plan.is_last(i));
            FUZZ_CHECK(segments.seal(sealed.data(), message.plaintext.data() + plan.offset(i), plan.size(i),
                                     its.data(), nullptr, 0));
            if (i == 0)
                std::copy(sealed.begin(), sealed.end(), first.begin() + wire::sealed_header_bytes);
            else
                wire.push_back({channel_handle, rank_, message.header->channel_tag, std::move(sealed)});
        }
        wire.front().bytes = std::move(first);
        return wire;
    }

    /// What rank 0 sends opens: it is the shim's own.
    std::vector<std::uint8_t> open_small(const Message& message) {
        wire::NonceFields nonce{};
        FUZZ_CHECK(message.bytes.size() >= wire::small_overhead &&
                   wire::parse_nonce(message.bytes.data(), nonce));
        std::vector<std::uint8_t> plaintext(message.bytes.size() - wire::small_overhead);
        const auto ad = wire::associated_data(wire::Kind::small, job_.contexts.at(message.comm), 0, rank_,
                                              message.tag, plaintext.size());
        FUZZ_CHECK(derive(0, rank_, nonce.epoch)
                       .aead.open(plaintext.data(), message.bytes.data() + aead::nonce_bytes,
                                  plaintext.size(), message.bytes.data(), ad.data(), ad.size()));
        return plaintext;
    }

    /// The send with the rejection's counter, else the oldest with its context and tag.
    Genuine* which(const std::vector<std::uint8_t>& rejection) {
        const auto counter = load_le<std::uint64_t>(rejection.data());
        const auto tag = load_le<std::int32_t>(rejection.data() + 8);
        Genuine* oldest = nullptr;
        for (Genuine& one : sent_) {
            if (one.source != rank_ || !one.header || one.named) continue;
            if (one.counter == counter) return &one;
            const bool same_place = one.tag == tag && std::memcmp(job_.contexts.at(one.comm).data(),
                                                                  rejection.data() + 12, 16) == 0;
            if (same_place && !oldest) oldest = &one;
        }
        return oldest;
    }

    const Job& job_;
    const int rank_;
    std::vector<Genuine>& sent_;
    std::uint32_t epoch_ = 0;
    std::uint64_t counter_ = 0;
    std::int32_t next_channel_ = 0;
    std::map<std::uint32_t, Keys> keys_;
};

}  // namespace mpisec::fuzz
