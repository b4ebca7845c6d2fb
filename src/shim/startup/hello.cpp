#include "shim/startup/hello.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>

#include "base/version.hpp"
#include "config/values.hpp"
#include "keys/secret.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/startup/cores.hpp"
#include "shim/startup/node_id.hpp"
#include "wire/frame.hpp"

namespace mpisec::shim {
namespace {

template <std::size_t n>
void put(std::array<char, n>& to, std::string_view text) {
    std::memcpy(to.data(), text.data(), std::min(n - 1, text.size()));
}

/// A received string: up to its zero, and nothing that would upset a terminal.
template <std::size_t n>
std::string get(const std::array<char, n>& from) {
    std::string text(from.data(), strnlen(from.data(), n));
    for (char& c : text) {
        if (c < ' ' || c > '~') c = '?';
    }
    return text;
}

/// Collects in what one rank differs from the first.
class Comparison {
  public:
    void values(const char* what, const std::string& theirs, const std::string& firsts) {
        if (theirs == firsts) return;
        if (!text_.empty()) text_ += ", ";
        text_ += std::string(what) + " " + theirs + " instead of " + firsts;
    }
    void values(const char* what, std::uint64_t theirs, std::uint64_t firsts) {
        values(what, std::to_string(theirs), std::to_string(firsts));
    }
    /// For what is too long to be printed, of which only a digest is known.
    void others(const char* what, bool differ) {
        if (!differ) return;
        if (!text_.empty()) text_ += ", ";
        text_ += what;
    }
    const std::string& text() const { return text_; }

  private:
    std::string text_;
};

/// Empty when `hello` agrees with the first.
std::string differences(const Hello& hello, const Hello& first) {
    Comparison comparison;
    comparison.values("MPIsec version", get(hello.version), get(first.version));
    comparison.values("protocol version", hello.protocol, first.protocol);
    if (hello.protocol != first.protocol) return comparison.text();  // the rest may mean something else
    comparison.values("wire version", hello.wire_version, first.wire_version);
    auto policy = [](const Hello& c) { return std::string(c.policy & 1 ? "allow" : "refuse"); };
    comparison.values("MPISEC_UNPROTECTED", policy(hello), policy(first));
    auto same_node = [](const Hello& c) {
        constexpr const char* modes[] = {"plain", "seal", "verify", "auto"};  // by Settings::SameNode
        return std::string(modes[c.policy >> 1 & 3]);
    };
    comparison.values("MPISEC_SAME_NODE", same_node(hello), same_node(first));
    auto pipeline = [](const Hello& c) {
        constexpr const char* modes[] = {"auto", "on", "off", "another"};  // by Settings::Pipeline
        return std::string(modes[c.policy >> 3 & 3]);
    };
    comparison.values("MPISEC_PIPELINE", pipeline(hello), pipeline(first));
    auto connections = [](const Hello& c) {
        constexpr const char* modes[] = {"auto", "authenticate", "plain",
                                         "another"};  // by Settings::Connections
        return std::string(modes[c.policy >> 5 & 3]);
    };
    comparison.values("MPISEC_CONNECTIONS", connections(hello), connections(first));
    comparison.values("further policy", hello.policy >> 7, first.policy >> 7);
    auto size = [](std::uint64_t bytes) { return bytes ? config::show_size(bytes) : std::string("auto"); };
    comparison.values("MPISEC_PIPELINE_THRESHOLD", size(hello.threshold), size(first.threshold));
    comparison.values("MPISEC_SEGMENT", size(hello.segment), size(first.segment));
    comparison.values("MPISEC_REKEY_MESSAGES", config::show_size(hello.rekey_messages),
                      config::show_size(first.rekey_messages));
    comparison.values("MPISEC_REKEY_BYTES", config::show_size(hello.rekey_bytes),
                      config::show_size(first.rekey_bytes));
    comparison.others("another call or other arguments", hello.purpose != first.purpose);
    comparison.others(
        "other algorithms of collectives or other rules for messages (MPISEC_TUNING, MPISEC_ALLGATHER, ...)",
        hello.selection != first.selection);
    return comparison.text();
}

}  // namespace

Hello make_hello(int rank, const config::Settings& settings, const std::array<std::uint8_t, 16>& selection) {
    Hello hello;
    hello.protocol = protocol_version;
    hello.wire_version = wire::version;
    put(hello.version, version);
    gethostname(hello.host.data(), hello.host.size() - 1);
    keys::random_bytes(hello.nonce.data(), hello.nonce.size());
    hello.node_id = node_id();
    hello.rank = rank;
    hello.policy = (settings.unprotected_allow ? 1u : 0u) |
                   static_cast<std::uint32_t>(settings.same_node) << 1 |
                   static_cast<std::uint32_t>(settings.pipeline) << 3 |
                   static_cast<std::uint32_t>(settings.connections) << 5;
    hello.threshold = settings.threshold;
    hello.segment = settings.segment;
    hello.rekey_messages = settings.rekey_messages;
    hello.rekey_bytes = settings.rekey_bytes;
    hello.selection = selection;
    hello.job = job_mark(settings.job);
    const Cores cores = cores_here();
    hello.kernel = cores.kernel;
    hello.cpu_set = cores.set;
    hello.cpus = cores.cpus;
    return hello;
}

std::string name_of(const Hello& hello) {
    return "rank " + std::to_string(hello.rank) + " (" + get(hello.host) + ")";
}

std::array<std::uint8_t, 16> purpose_mark(const std::string& call) {
    keys::Sha256 hash;
    hash.update(keys::as_bytes("mpisec start-up")).update(keys::as_bytes(call));
    keys::Digest digest;
    hash.finish(digest.data());
    std::array<std::uint8_t, 16> mark;
    std::copy_n(digest.begin(), mark.size(), mark.begin());
    return mark;
}

/// A rank of another job says so in its hello: then somebody leads the connections of one job to the other.
void require_one_job(const std::vector<Hello>& hellos, const Hello& own) {
    constexpr JobMark unknown{};
    if (own.job == unknown) return;
    const auto other = std::ranges::find_if(
        hellos, [&](const Hello& hello) { return hello.job != unknown && hello.job != own.job; });
    if (other == hellos.end()) return;
    abort_job(
        name_of(*other) +
        " is of another job than this rank: the launcher's name of the job, or MPISEC_JOB, differs. "
        "Something between the nodes redirects one job's connections to another; or the launcher gives a "
        "job's nodes different names: then set MPISEC_JOB to the same text on all of them, another for "
        "each job.");
}

void require_agreement(const std::vector<Hello>& hellos, const Hello& own) {
    constexpr int named = 5;
    std::string sentence;
    int differing = 0;
    bool one_version = true;
    for (const Hello& hello : hellos) {
        std::string difference = differences(hello, hellos[0]);
        if (difference.empty()) continue;
        one_version &= get(hello.version) == get(hellos[0].version) && hello.protocol == hellos[0].protocol;
        if (++differing <= named)
            sentence += (sentence.empty() ? "" : "; ") + name_of(hello) + " has " + difference;
    }
    if (differing == 0) return require_one_job(hellos, own);
    if (differing > named) sentence += "; and " + std::to_string(differing - named) + " more ranks differ";
    // One rank reports for all; the others report when it did not see what they see (messages were changed).
    if (own.rank != hellos[0].rank) std::this_thread::sleep_for(std::chrono::seconds(2));
    abort_job("The ranks' settings differ from those of " + name_of(hellos[0]) + ": " + sentence +
              (one_version
                   ? ". Make them alike on all nodes; `mpisec doctor` shows where a setting comes from."
                   : ". Install the same version of MPIsec on all nodes."));
}

}  // namespace mpisec::shim
