// S2 for large messages: STREAM segments that were swapped, cut, duplicated or altered do not open. With the
// OpenSSL plug-in.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "aead/aead.hpp"
#include "wire/stream.hpp"

namespace mpisec::wire {
namespace {

constexpr std::uint64_t random_seed = 20261121;
using Bytes = std::vector<std::uint8_t>;

class Stream : public testing::Test {
  protected:
    void SetUp() override {
        auto library = aead::load("openssl");
        ASSERT_TRUE(library) << library.error().message;
        key_ = make_key(*library, 1);
        other_key_ = make_key(*library, 2);
        message_.resize(plan_.total);
        for (std::uint8_t& byte : message_) byte = static_cast<std::uint8_t>(random_());
        for (std::uint64_t i = 0; i < plan_.count(); ++i) sealed_.push_back(seal(key_, i, plan_.is_last(i)));
    }

    static aead::Key make_key(const aead::Library* library, std::uint8_t first_byte) {
        std::uint8_t bytes[aead::max_key_bytes] = {first_byte};
        auto key = library->make_key(aead::Cipher::aes_256_gcm, bytes);
        EXPECT_TRUE(key);
        return std::move(*key);
    }

    Bytes seal(const aead::Key& key, std::uint64_t i, bool last) const {
        Bytes out(plan_.size(i) + aead::tag_bytes);
        EXPECT_TRUE(key.seal(out.data(), message_.data() + plan_.offset(i), plan_.size(i),
                             segment_nonce(i, last).data(), nullptr, 0));
        return out;
    }

    /// As a receiver does it: by its own plan, segment by segment; true when every one is authentic.
    bool opens(const std::vector<Bytes>& segments, const SegmentPlan& plan) {
        if (segments.size() != plan.count()) return false;
        opened_.assign(plan.total, 0);
        for (std::uint64_t i = 0; i < plan.count(); ++i) {
            if (segments[i].size() != plan.size(i) + aead::tag_bytes) return false;
            const Nonce nonce = segment_nonce(i, plan.is_last(i));
            std::uint8_t* to = opened_.data() + plan.offset(i);
            if (!key_.open(to, segments[i].data(), plan.size(i), nonce.data(), nullptr, 0)) return false;
        }
        return true;
    }

    /// All channel segments of one length, so that lengths give nothing away.
    SegmentPlan plan_{1000 + 4 * 300, 1000, 300};
    std::mt19937_64 random_{random_seed};
    aead::Key key_, other_key_;
    Bytes message_, opened_;
    std::vector<Bytes> sealed_;
};

TEST_F(Stream, Opens) {
    EXPECT_TRUE(opens(sealed_, plan_));
}

TEST_F(Stream, SwappedSegmentsDoNotOpen) {
    for (std::size_t i = 1; i < sealed_.size(); ++i)
        for (std::size_t j = i + 1; j < sealed_.size(); ++j) {
            auto segments = sealed_;
            std::swap(segments[i], segments[j]);
            EXPECT_FALSE(opens(segments, plan_)) << i << " and " << j;
        }
}

TEST_F(Stream, DuplicatedSegmentsDoNotOpen) {
    for (std::size_t i = 1; i < sealed_.size(); ++i)
        for (std::size_t j = 1; j < sealed_.size(); ++j) {
            if (i == j) continue;
            auto segments = sealed_;
            segments[i] = segments[j];
            EXPECT_FALSE(opens(segments, plan_)) << j << " in place of " << i;
        }
}

TEST_F(Stream, CutMessageDoesNotOpenEvenWhenTheReceiverExpectsTheShorterOne) {
    auto segments = sealed_;
    segments.pop_back();
    EXPECT_FALSE(opens(segments, {plan_.total - 300, plan_.first_bytes, 300}))
        << "the new last segment was not sealed as last";
}

TEST_F(Stream, ExtendedMessageDoesNotOpen) {
    auto segments = sealed_;
    segments.push_back(sealed_.back());
    EXPECT_FALSE(opens(segments, {plan_.total + 300, plan_.first_bytes, 300}));
}

TEST_F(Stream, SegmentsOfAnotherMessageDoNotOpen) {
    for (std::uint64_t i = 0; i < plan_.count(); ++i) {
        auto segments = sealed_;
        segments[i] = seal(other_key_, i, plan_.is_last(i));
        EXPECT_FALSE(opens(segments, plan_)) << i;
    }
}

TEST_F(Stream, EveryChangedByteIsSeen) {
    for (std::size_t i = 0; i < sealed_.size(); ++i)
        for (std::size_t at = 0; at < sealed_[i].size(); ++at) {
            auto segments = sealed_;
            segments[i][at] ^= static_cast<std::uint8_t>(1u << random_() % 8);
            ASSERT_FALSE(opens(segments, plan_)) << "segment " << i << ", byte " << at;
        }
}

TEST_F(Stream, ASmallMessageIsBoundToAllItsFields) {
    const ContextId context{1, 2, 3};
    const Nonce nonce = make_nonce({Kind::small, 0, 9});
    const AssociatedData ad = associated_data(Kind::small, context, 1, 2, 3, 16);
    Bytes sealed(16 + aead::tag_bytes), out(16);
    ASSERT_TRUE(key_.seal(sealed.data(), message_.data(), 16, nonce.data(), ad.data(), ad.size()));
    EXPECT_TRUE(key_.open(out.data(), sealed.data(), 16, nonce.data(), ad.data(), ad.size()));
    for (const AssociatedData& other : {associated_data(Kind::large_header, context, 1, 2, 3, 16),
                                        associated_data(Kind::small, {1, 2, 4}, 1, 2, 3, 16),
                                        associated_data(Kind::small, context, 2, 1, 3, 16),
                                        associated_data(Kind::small, context, 1, 2, 4, 16),
                                        associated_data(Kind::small, context, 1, 2, 3, 17)})
        EXPECT_FALSE(key_.open(out.data(), sealed.data(), 16, nonce.data(), other.data(), other.size()));
    const Nonce other_kind = make_nonce({Kind::large_header, 0, 9});
    EXPECT_FALSE(key_.open(out.data(), sealed.data(), 16, other_kind.data(), ad.data(), ad.size()));
}

}  // namespace
}  // namespace mpisec::wire
