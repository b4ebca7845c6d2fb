#include "cli/engine_lane.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "base/relax.hpp"
#include "engine/engine.hpp"
#include "wire/stream.hpp"

namespace mpisec::cli {
namespace {

using Clock = std::chrono::steady_clock;
using engine::SegmentTask;

double since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Keeps the measuring thread off the workers' cores while this object lives, like a rank that has a core of its own.
class OwnCore {
  public:
    explicit OwnCore(const std::vector<unsigned>& workers) {
        known_ = sched_getaffinity(0, sizeof before_, &before_) == 0;
        cpu_set_t rest = before_;
        for (unsigned cpu : workers)
            if (cpu < CPU_SETSIZE) CPU_CLR(cpu, &rest);
        if (known_ && CPU_COUNT(&rest) > 0) sched_setaffinity(0, sizeof rest, &rest);
    }
    ~OwnCore() {
        if (known_) sched_setaffinity(0, sizeof before_, &before_);
    }

  private:
    cpu_set_t before_;
    bool known_ = false;
};

/// A TCP connection through the loopback device, whose other end takes what is sent, or sends the same bytes again and
/// again. Without a connection the bytes are handed over in place.
class Link {
  public:
    Link() = default;
    Link(const Link&) = delete;
    ~Link() {
        if (here_ < 0) return;
        shutdown(here_, SHUT_RDWR);
        close(here_);
        if (other_.joinable()) other_.join();
    }
    bool connect(const std::vector<std::uint8_t>* repeated) {
        const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t n = sizeof address;
        auto* general = reinterpret_cast<sockaddr*>(&address);
        here_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        int there = -1;
        if (bind(listener, general, n) == 0 && listen(listener, 1) == 0 &&
            getsockname(listener, general, &n) == 0 && ::connect(here_, general, n) == 0)
            there = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        close(listener);
        if (there < 0) return false;
        other_ = std::thread([there, repeated] { repeated ? give(there, *repeated) : take(there); });
        return true;
    }
    bool send(const std::uint8_t* from, std::size_t n) {
        for (std::size_t done = 0; here_ >= 0 && done < n;) {
            const ssize_t now = ::send(here_, from + done, n - done, MSG_NOSIGNAL);
            if (now <= 0) return false;
            done += static_cast<std::size_t>(now);
        }
        return true;
    }
    bool receive(std::uint8_t* to, std::size_t n) {
        for (std::size_t done = 0; here_ >= 0 && done < n;) {
            const ssize_t now = recv(here_, to + done, n - done, MSG_WAITALL);
            if (now <= 0) return false;
            done += static_cast<std::size_t>(now);
        }
        return true;
    }

  private:
    static void take(int there) {  // MSG_TRUNC: the bytes are not copied, as by a network card
        while (recv(there, nullptr, 1 << 20, MSG_TRUNC) > 0) {
        }
        close(there);
    }
    static void give(int there, const std::vector<std::uint8_t>& bytes) {
        while (::send(there, bytes.data(), bytes.size(), MSG_NOSIGNAL) > 0) {
        }
        close(there);
    }

    int here_ = -1;
    std::thread other_;
};

/// The ring of buffers, which limits how much is on its way at once.
class EngineLane {
  public:
    EngineLane(const EngineCase& one, const aead::Selection& selection, engine::Engine& engine)
        : case_(one),
          selection_(selection),
          engine_(engine),
          piece_(one.segment ? std::min(one.segment, one.bytes) : one.bytes),
          slots_(std::max<std::size_t>(
              4 * one.threads, one.segment ? 8 : std::clamp<std::size_t>((1 << 20) / one.bytes, 8, 64))) {
        new_key();
        plain_.assign(slots_ * piece_, 0x5a);
        sealed_.resize(slots_ * (piece_ + aead::tag_bytes));
        tasks_ = std::vector<SegmentTask>(slots_);
    }

    Result<EngineTime> run(double seconds) {
        if (case_.receives && !seal_all()) return fail("The crypto library failed to seal.");
        const std::vector<std::uint8_t> peers =
            case_.receives && case_.tcp ? sealed_ : std::vector<std::uint8_t>();
        if (case_.tcp && !link_.connect(case_.receives ? &peers : nullptr))
            return fail("There is no TCP connection through the loopback device.");
        for (const double warm : {seconds / 4, seconds}) {
            communicating_ = 0;
            bytes_ = 0;
            before_ = work();
            const auto begin = Clock::now();
            bool good = true;
            while (good && since(begin) < warm) good = stretch();
            good = drain() && good;
            spent_ = since(begin);
            if (!good) return fail("A crypto library failed to seal or open, or the connection broke.");
        }
        return result();
    }

  private:
    std::uint8_t* sealed(std::size_t slot) { return sealed_.data() + slot * (piece_ + aead::tag_bytes); }

    void new_key() {
        std::uint8_t bytes[aead::max_key_bytes] = {};
        if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) bytes[0] = 1;  // it protects nothing
        key_ = std::make_unique<engine::MessageKey>(selection_, bytes, engine_.workers() + 1);
        next_nonce_ = 0;
    }

    bool seal_all() {
        for (std::size_t slot = 0; slot < slots_; ++slot)
            if (!key_->for_thread(0).seal(sealed(slot), plain_.data() + slot * piece_, piece_,
                                          wire::segment_nonce(slot, false).data(), nullptr, 0))
                return false;
        return true;
    }

    /// Runs one whole message, each under a key of its own, or some hundreds of packets.
    bool stretch() {
        const std::size_t pieces =
            case_.segment ? case_.bytes / piece_ : std::max<std::size_t>(slots_, (4 << 20) / piece_);
        if (case_.segment && !case_.receives) {
            if (!drain()) return false;
            new_key();
        }
        for (std::size_t i = 0; i < pieces; ++i) {
            if (submitted_ - retired_ == slots_ && !retire()) return false;
            if (!submit()) return false;
            while (retired_ < submitted_ && tasks_[retired_ % slots_].finished())
                if (!retire()) return false;
        }
        return true;
    }

    bool submit() {
        const std::size_t slot = submitted_ % slots_;
        SegmentTask& task = tasks_[slot];
        task.key = key_.get();
        task.n = piece_;
        task.direction = case_.receives ? SegmentTask::Direction::open : SegmentTask::Direction::seal;
        std::uint8_t* plain = plain_.data() + slot * piece_;
        task.to = case_.receives ? plain : sealed(slot);
        task.from = case_.receives ? sealed(slot) : plain;
        task.nonce = wire::segment_nonce(case_.receives ? slot : next_nonce_++, false);
        if (case_.receives && !timed([&] { return link_.receive(sealed(slot), piece_ + aead::tag_bytes); }))
            return false;
        ++submitted_;
        engine_.submit(task);
        return true;
    }

    /// Retires the oldest task once it is finished.
    bool retire() {
        const std::size_t slot = retired_ % slots_;
        while (!tasks_[slot].finished())
            if (case_.dedicated ? !engine_.wake_another() : !engine_.help()) relax();
        ++retired_;
        bytes_ += static_cast<double>(piece_);
        if (tasks_[slot].state == SegmentTask::State::failed) return false;
        return case_.receives || timed([&] { return link_.send(sealed(slot), piece_ + aead::tag_bytes); });
    }

    bool drain() {
        bool good = true;
        while (retired_ < submitted_) good = retire() && good;
        return good;
    }

    template <class Call>
    bool timed(Call call) {
        if (!case_.tcp) return call();
        const auto begin = Clock::now();
        const bool good = call();
        communicating_ += since(begin);
        return good;
    }

    std::vector<engine::ThreadWork> work() const {
        std::vector<engine::ThreadWork> all;
        for (unsigned thread = 0; thread <= engine_.workers(); ++thread)
            all.push_back(engine_.work_of(thread));
        return all;
    }

    EngineTime result() const {
        EngineTime time;
        time.gb_per_s = bytes_ / spent_ * 1e-9;
        time.communicating = communicating_ / bytes_ * 1e9;
        const std::vector<engine::ThreadWork> now = work();
        for (std::size_t i = 0; i < now.size(); ++i)
            time.thread_s_per_gb.push_back((now[i].seconds - before_[i].seconds) / bytes_ * 1e9);
        time.useful_threads = engine_.useful_threads();
        return time;
    }

    const EngineCase case_;
    const aead::Selection& selection_;
    engine::Engine& engine_;
    const std::size_t piece_, slots_;
    std::unique_ptr<engine::MessageKey> key_;
    std::uint64_t next_nonce_ = 0;
    std::size_t submitted_ = 0, retired_ = 0;
    std::vector<std::uint8_t> plain_, sealed_;
    std::vector<SegmentTask> tasks_;
    std::vector<engine::ThreadWork> before_;
    double bytes_ = 0, spent_ = 0, communicating_ = 0;
    Link link_;
};

}  // namespace

Result<EngineTime> time_engine(const EngineCase& one, const aead::Selection& selection, double seconds) {
    const unsigned workers = one.threads - (one.dedicated ? 0 : 1);
    const engine::Placement placement = engine::place_workers(static_cast<int>(workers), 1, 0);
    const OwnCore own(placement.cores);
    engine::Engine engine(workers, placement.cores);
    if (engine.workers() != workers)
        return fail("The system grants only " + std::to_string(engine.workers()) + " more threads.");
    return EngineLane(one, selection, engine).run(seconds);
}

}  // namespace mpisec::cli
