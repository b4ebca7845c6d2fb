#include "cli/bench_crypto.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "aead/aead.hpp"
#include "cli/median.hpp"
#include "cli/size_text.hpp"

namespace mpisec::cli {
namespace {

using Clock = std::chrono::steady_clock;
using aead::Cipher;
using aead::Key;
using aead::Library;

constexpr std::size_t ad_bytes = 40;                          // as every message has (wire/frame.hpp)
constexpr auto block_time = std::chrono::microseconds(1000);  // of one contestant in one round
/// Keys here are constants and protect nothing.
constexpr std::array<std::uint8_t, aead::nonce_bytes> one_nonce{};

/// Something that is timed: memcpy, or one library's seal or open.
struct Contestant {
    const Library* library = nullptr;  ///< null: memcpy
    bool opens = false;
    std::vector<double> ns;  ///< per call, a value per round
    std::size_t calls = 1;   ///< per block
};

/// One thread's keys (one per library, in the order of `libraries`) and buffers.
struct Lane {
    std::vector<Key> keys;
    std::vector<std::uint8_t> plain, sealed, to;
    std::array<std::uint8_t, ad_bytes> ad{};
    Clock::time_point begin, end;
    bool good = true;
};

void run_calls(Lane& lane, const Contestant& one, const Key* key, std::size_t n) {
    std::uint64_t counter = 0;
    std::array<std::uint8_t, aead::nonce_bytes> nonce{};
    lane.begin = Clock::now();
    for (std::size_t call = 0; call < one.calls; ++call) {
        if (!key) {
            std::memcpy(lane.to.data(), lane.plain.data(), n);
            asm volatile("" : : "r"(lane.to.data()) : "memory");
        } else if (one.opens) {
            lane.good &=
                key->open(lane.to.data(), lane.sealed.data(), n, one_nonce.data(), lane.ad.data(), ad_bytes);
        } else {
            std::memcpy(nonce.data() + 4, &++counter, sizeof counter);
            lane.good &=
                key->seal(lane.to.data(), lane.plain.data(), n, nonce.data(), lane.ad.data(), ad_bytes);
        }
    }
    lane.end = Clock::now();
}

/// The measurement of one cipher, message size and thread count.
class Race {
  public:
    Race(Cipher cipher, std::vector<const Library*> libraries, std::size_t n, unsigned threads)
        : libraries_(std::move(libraries)), n_(n), lanes_(threads), gate_(threads) {
        std::array<std::uint8_t, aead::max_key_bytes> key_bytes{};
        for (Lane& lane : lanes_) {
            lane.plain.assign(n, 0x5a);
            lane.sealed.resize(n + aead::tag_bytes);
            lane.to.resize(n + aead::tag_bytes);
            for (const Library* library : libraries_) {
                Result<Key> key = library->make_key(cipher, key_bytes.data());
                lane.keys.push_back(key ? std::move(*key) : Key());
            }
            // The result is the same for all libraries, as the tests in tests/unit/aead check.
            lane.good = lane.keys.front().seal(lane.sealed.data(), lane.plain.data(), n, one_nonce.data(),
                                               lane.ad.data(), ad_bytes);
        }
        contestants_.push_back({});
        for (const Library* library : libraries_)
            for (bool opens : {false, true}) contestants_.push_back({library, opens, {}, 1});
    }

    /// False when a library failed to seal or open.
    bool run(int rounds) {
        std::vector<std::thread> others;
        for (std::size_t i = 1; i < lanes_.size(); ++i)
            others.emplace_back([this, i, rounds] { race(lanes_[i], rounds); });
        race(lanes_[0], rounds);
        for (std::thread& other : others) other.join();
        return std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.good; });
    }

    const std::vector<Contestant>& contestants() const { return contestants_; }

  private:
    const Key* key_of(const Lane& lane, const Contestant& one) const {
        if (!one.library) return nullptr;
        const auto at = std::find(libraries_.begin(), libraries_.end(), one.library) - libraries_.begin();
        return &lane.keys[static_cast<std::size_t>(at)];
    }

    // Every lane runs this; lane 0 also keeps the records. Round -1 warms up and determines how many calls fill a
    // block.
    void race(Lane& lane, int rounds) {
        for (int round = -1; round < rounds; ++round)
            for (Contestant& one : contestants_) {
                gate_.arrive_and_wait();
                run_calls(lane, one, key_of(lane, one), n_);
                gate_.arrive_and_wait();
                if (&lane == &lanes_[0]) record(one, round);
            }
    }

    void record(Contestant& one, int round) {
        auto begin = lanes_[0].begin, end = lanes_[0].end;
        for (const Lane& lane : lanes_) begin = std::min(begin, lane.begin), end = std::max(end, lane.end);
        std::chrono::duration<double, std::nano> spent = end - begin;
        if (round >= 0) {
            one.ns.push_back(spent.count() / static_cast<double>(one.calls));
            return;
        }
        std::chrono::duration<double, std::nano> single = lanes_[0].end - lanes_[0].begin, block = block_time;
        one.calls = std::max<std::size_t>(1, static_cast<std::size_t>(block / single));
    }

    std::vector<const Library*> libraries_;
    std::size_t n_;
    std::vector<Lane> lanes_;
    std::barrier<> gate_;
    std::vector<Contestant> contestants_;
};

/// One line of the result: a library's seal or open, or memcpy (no library), of n bytes in each of `threads`
/// threads.
struct Timing {
    std::string library, version, cipher;
    std::size_t n;
    unsigned threads;
    double seal_ns, open_ns, memcpy_ns;
    bool chosen;  ///< MPISEC_AEAD=auto:CIPHER takes it for this size

    double gb_per_s(double ns) const { return static_cast<double>(n) * threads / ns; }
};

std::vector<Timing> rows_of(const Race& race, Cipher cipher, std::size_t n, unsigned threads,
                            const Library* chosen) {
    const auto& all = race.contestants();
    double memcpy_ns = median(all[0].ns);
    std::vector<Timing> rows;
    for (std::size_t i = 1; i + 1 < all.size(); i += 2)
        rows.push_back({std::string(all[i].library->name()), all[i].library->version(),
                        std::string(aead::info(cipher).name), n, threads, median(all[i].ns),
                        median(all[i + 1].ns), memcpy_ns, all[i].library == chosen});
    return rows;
}

void print_heading(std::string_view cipher, unsigned threads) {
    fmt::print(
        "\n{}, {} thread{} (time over memcpy's of the same size; ns per message; GB/s of all threads; * "
        "auto's choice)\n",
        cipher, threads, threads == 1 ? "" : "s");
    fmt::print("{:>8}  {:<10} {:>11} {:>11} {:>11} {:>11} {:>9} {:>9}\n", "size", "library", "seal/memcpy",
               "open/memcpy", "seal ns", "open ns", "seal GB/s", "open GB/s");
}

void print_rows(const std::vector<Timing>& rows) {
    const Timing& first = rows.front();
    fmt::print("{:>8}  {:<10} {:>11} {:>11} {:>11.1f} {:>11} {:>9.2f}\n", size_text(first.n), "memcpy",
               "1.00", "", first.memcpy_ns, "", first.gb_per_s(first.memcpy_ns));
    for (const Timing& row : rows)
        fmt::print("{:>8}  {:<10} {:>11.2f} {:>11.2f} {:>11.1f} {:>11.1f} {:>9.2f} {:>9.2f}\n", "",
                   row.library + (row.chosen ? " *" : ""), row.seal_ns / row.memcpy_ns,
                   row.open_ns / row.memcpy_ns, row.seal_ns, row.open_ns, row.gb_per_s(row.seal_ns),
                   row.gb_per_s(row.open_ns));
    std::fflush(stdout);
}

nlohmann::json to_json(const Timing& row) {
    return {{"library", row.library},
            {"version", row.version},
            {"cipher", row.cipher},
            {"bytes", row.n},
            {"threads", row.threads},
            {"chosen", row.chosen},
            {"seal_over_memcpy", row.seal_ns / row.memcpy_ns},
            {"open_over_memcpy", row.open_ns / row.memcpy_ns},
            {"seal_ns", row.seal_ns},
            {"open_ns", row.open_ns},
            {"memcpy_ns", row.memcpy_ns},
            {"seal_gb_per_s", row.gb_per_s(row.seal_ns)},
            {"open_gb_per_s", row.gb_per_s(row.open_ns)},
            {"memcpy_gb_per_s", row.gb_per_s(row.memcpy_ns)}};
}

Result<std::vector<const Library*>> wanted_libraries(const BenchCryptoOptions& options) {
    std::vector<const Library*> libraries;
    const std::vector<std::string> there = aead::available();
    for (const std::string& name : options.libraries)
        if (std::ranges::find(there, name) == there.end())
            return fail(fmt::format("--libraries: there is no crypto library \"{}\" in {}; choose among: {}.",
                                    name, aead::plugin_directory(), fmt::join(there, ", ")));
    for (const std::string& name : options.libraries.empty() ? there : options.libraries) {
        Result<const Library*> library = aead::load(name);
        if (!library) return tl::unexpected(library.error());
        libraries.push_back(*library);
    }
    if (libraries.empty()) return fail("There is no crypto library in " + aead::plugin_directory() + ".");
    return libraries;
}

Result<std::vector<Cipher>> wanted_ciphers(const BenchCryptoOptions& options) {
    std::vector<Cipher> ciphers;
    if (options.ciphers.empty())
        for (const aead::CipherInfo& entry : aead::ciphers()) ciphers.push_back(entry.id);
    for (const std::string& name : options.ciphers) {
        auto cipher = aead::cipher_by_name(name);
        if (!cipher) {
            std::string names;
            for (const aead::CipherInfo& entry : aead::ciphers()) names += " " + std::string(entry.name);
            return fail("There is no cipher \"" + name + "\"; choose among:" + names + ".");
        }
        ciphers.push_back(*cipher);
    }
    return ciphers;
}

Result<std::vector<Timing>> measure(const BenchCryptoOptions& options,
                                    const std::vector<const Library*>& libraries,
                                    const std::vector<Cipher>& ciphers) {
    std::vector<Timing> all;
    for (Cipher cipher : ciphers) {
        std::vector<const Library*> able;
        std::copy_if(libraries.begin(), libraries.end(), std::back_inserter(able),
                     [&](const Library* library) { return library->has(cipher); });
        if (able.empty()) continue;
        const std::string automatic = "auto:" + std::string(aead::info(cipher).name);
        const Result<aead::Selection> selection = aead::select(automatic, "");  // calibrates now
        for (unsigned threads : options.threads) {
            if (!options.json) print_heading(aead::info(cipher).name, threads);
            for (std::size_t n : options.sizes) {
                Race race(cipher, able, n, std::max(1u, threads));
                if (!race.run(std::max(1, options.repetitions)))
                    return fail("A crypto library failed to seal or open " + std::to_string(n) +
                                " bytes with " + std::string(aead::info(cipher).name) + ".");
                const Library* chosen = selection ? selection->library[aead::size_class(n)] : nullptr;
                std::vector<Timing> rows = rows_of(race, cipher, n, std::max(1u, threads), chosen);
                if (!options.json) print_rows(rows);
                all.insert(all.end(), rows.begin(), rows.end());
            }
        }
    }
    if (all.empty()) return fail("None of these libraries offers any of these ciphers on this machine.");
    return all;
}

}  // namespace

int bench_crypto(const BenchCryptoOptions& options) {
    auto refuse = [](const Error& error) {
        fmt::print(stderr, "mpisec bench crypto: {}\n", error.message);
        return 2;
    };
    Result<std::vector<const Library*>> libraries = wanted_libraries(options);
    if (!libraries) return refuse(libraries.error());
    Result<std::vector<Cipher>> ciphers = wanted_ciphers(options);
    if (!ciphers) return refuse(ciphers.error());
    if (!options.json)
        for (const Library* library : *libraries) fmt::print("{} {}\n", library->name(), library->version());
    Result<std::vector<Timing>> rows = measure(options, *libraries, *ciphers);
    if (!rows) return refuse(rows.error());
    if (options.json) {
        nlohmann::json list = nlohmann::json::array();
        for (const Timing& row : *rows) list.push_back(to_json(row));
        fmt::print("{}\n", list.dump(1));
    }
    return 0;
}

}  // namespace mpisec::cli
