#include "provider/pipes.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>

#include "base/locked_slab.hpp"
#include "provider/batches.hpp"
#include "provider/context.hpp"

namespace mpisec::provider {

namespace {

constexpr std::size_t most_pipes = 32;  // EVP_MAX_PIPES
static_assert(most_pipes <= most_together);

struct Pipe {
    std::uint8_t iv[block_bytes] = {};
    std::uint8_t buffer[block_bytes] = {};  ///< of a block that is not whole
    std::size_t buffered = 0;
};

}  // namespace

/// In locked memory, like the context.
struct Pipes {
    std::size_t count = 0;  ///< 0 when the messages have ended
    Pipe all[most_pipes];

    std::span<Pipe> in_use() { return {all, count}; }
};

namespace {

LockedSlab& slots() {
    static auto* const slab = [] {
        auto* made = new LockedSlab(sizeof(Pipes), LockedSlab::Fork::keep);
        made->reserve(32 * sizeof(Pipes));
        return made;
    }();
    return *slab;
}

/// What is encrypted at once: at most one run of blocks of each pipe.
class Round {
  public:
    explicit Round(Keyring& keys) : keys_(keys) {}
    void add(Pipe& pipe, std::uint8_t* to, const std::uint8_t* from, std::size_t n) {
        all_[count_] = {&keys_, {nullptr, to, from, n, pipe.iv}};
        members_[count_] = &all_[count_];
        ++count_;
    }
    bool run() {
        encrypt_together({members_, count_});
        return std::all_of(all_, all_ + count_, [](const Batched& one) { return one.good; });
    }

  private:
    Keyring& keys_;
    std::size_t count_ = 0;
    Batched all_[most_pipes];
    Batched* members_[most_pipes];
};

/// Some messages may be a block further than others: none goes on.
int give_up(Context& context) {
    *context.pipes = Pipes();
    return raise(context.instance, PROV_R_CIPHER_OPERATION_FAILED);
}

/// The pipes of a call that continues an initialized context; null with an error raised.
Pipes* pipes_of(Context& context, std::size_t count) {
    if (!context.keys.is_set()) {
        raise(context.instance, PROV_R_NO_KEY_SET);
    } else if (!context.pipes || context.pipes->count == 0 || context.pipes->count != count) {
        raise(context.instance, PROV_R_CIPHER_OPERATION_FAILED);
    } else {
        return context.pipes;
    }
    return nullptr;
}

}  // namespace

void reserve_pipes() {
    slots();
}

Pipes* copy_pipes(const Pipes* pipes) {
    void* slot = pipes ? slots().take() : nullptr;
    return slot ? new (slot) Pipes(*pipes) : nullptr;
}

void free_pipes(Pipes* pipes) {
    if (pipes) slots().give_back(pipes);  // wipes
}

int pipeline_encrypt_init(void* opaque, const unsigned char* key, std::size_t key_n, std::size_t count,
                          const unsigned char** ivs, std::size_t iv_n, const OSSL_PARAM parameters[]) {
    auto& context = *static_cast<Context*>(opaque);
    if (!init(context, true, key, key_n, nullptr, 0, parameters)) return 0;
    if (count == 0 || count > most_pipes) return raise(context.instance, PROV_R_CIPHER_OPERATION_FAILED);
    if (!ivs || iv_n != block_bytes) return raise(context.instance, PROV_R_INVALID_IV_LENGTH);
    void* slot = slots().take();
    if (!slot) return raise(context.instance, PROV_R_CIPHER_OPERATION_FAILED);
    context.pipes = new (slot) Pipes;
    for (std::size_t i = 0; i < count; ++i) {
        if (!ivs[i]) return raise(context.instance, PROV_R_INVALID_IV_LENGTH);
        std::memcpy(context.pipes->all[i].iv, ivs[i], block_bytes);
    }
    context.pipes->count = count;
    return 1;
}

int pipeline_update(void* opaque, std::size_t count, unsigned char** out, std::size_t* out_n,
                    const std::size_t* room, const unsigned char** in, const std::size_t* in_n) {
    auto& context = *static_cast<Context*>(opaque);
    Pipes* pipes = pipes_of(context, count);
    if (!pipes) return 0;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t whole = (pipes->all[i].buffered + in_n[i]) / block_bytes * block_bytes;
        if (whole > 0 && (!out[i] || room[i] < whole))
            return raise(context.instance, PROV_R_OUTPUT_BUFFER_TOO_SMALL);
    }
    // The blocks that were begun, then all that follow them: these need the vectors that those leave.
    Round begun(context.keys), following(context.keys);
    std::span<const std::uint8_t> rests[most_pipes];
    for (std::size_t i = 0; i < count; ++i) {
        Pipe& pipe = pipes->all[i];
        std::span<const std::uint8_t> text(in[i], in_n[i]);
        out_n[i] = 0;
        if (pipe.buffered > 0) {
            const std::size_t taken = std::min(block_bytes - pipe.buffered, text.size());
            if (taken > 0) std::memcpy(pipe.buffer + pipe.buffered, text.data(), taken);
            pipe.buffered += taken;
            text = text.subspan(taken);
            if (pipe.buffered < block_bytes) continue;
            begun.add(pipe, out[i], pipe.buffer, block_bytes);
            pipe.buffered = 0, out_n[i] = block_bytes;
        }
        const std::size_t whole = text.size() / block_bytes * block_bytes;
        if (whole > 0) following.add(pipe, out[i] + out_n[i], text.data(), whole);
        out_n[i] += whole;
        rests[i] = text.subspan(whole);
    }
    if (!begun.run() || !following.run()) return give_up(context);
    for (std::size_t i = 0; i < count; ++i) {
        if (rests[i].empty()) continue;
        std::memcpy(pipes->all[i].buffer, rests[i].data(), rests[i].size());
        pipes->all[i].buffered = rests[i].size();
    }
    return 1;
}

int pipeline_final(void* opaque, std::size_t count, unsigned char** out, std::size_t* out_n,
                   const std::size_t* room) {
    auto& context = *static_cast<Context*>(opaque);
    Pipes* pipes = pipes_of(context, count);
    if (!pipes) return 0;
    for (std::size_t i = 0; i < count; ++i) {
        out_n[i] = 0;
        if (!context.padding && pipes->all[i].buffered > 0)
            return raise(context.instance, PROV_R_WRONG_FINAL_BLOCK_LENGTH);
        if (context.padding && (!out[i] || room[i] < block_bytes))
            return raise(context.instance, PROV_R_OUTPUT_BUFFER_TOO_SMALL);
    }
    Round last(context.keys);
    for (std::size_t i = 0; i < count && context.padding; ++i) {
        Pipe& pipe = pipes->all[i];
        const auto missing = static_cast<std::uint8_t>(block_bytes - pipe.buffered);
        std::memset(pipe.buffer + pipe.buffered, missing, missing);
        last.add(pipe, out[i], pipe.buffer, block_bytes);
        out_n[i] = block_bytes;
    }
    if (!last.run()) return give_up(context);
    *pipes = Pipes();
    return 1;
}

}  // namespace mpisec::provider
