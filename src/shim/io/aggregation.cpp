// The two phases. In each round an aggregator has a window of its part of the file. Every rank tells it where in that
// window its own data lies and, for a write, sends the data. For a read, the aggregator sends back what it has read
// there.
#include "shim/io/aggregation.hpp"

#include <algorithm>
#include <cstring>

#include "base/bytes.hpp"
#include "shim/collective/collectives.hpp"
#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"

namespace mpisec::shim::io {
namespace {

/// Where the ranks' data lies in runs of at least this many bytes, nothing is gained by sending it to aggregators.
constexpr std::int64_t long_run = 64 << 10;
/// Where less than one byte in this many is accessed, most windows would have nothing in them.
constexpr std::int64_t most_sparse = 64;
/// An aggregator's part of the file has at least this many bytes, and a multiple of that.
constexpr std::int64_t least_domain = 64 << 10;
/// Gaps up to this are read over, which costs less than another read.
constexpr std::int64_t short_gap = 64 << 10;
constexpr std::int64_t entry_bytes = 16;  ///< offset and bytes of a run, in a message

/// What goes to, or comes from, each rank in one exchange.
struct Blocks {
    std::vector<MPI_Count> bytes;
    std::vector<MPI_Aint> places;
    std::vector<std::uint8_t> data;

    explicit Blocks(std::size_t ranks) : bytes(ranks), places(ranks) {}
    /// Makes room for as much as `bytes` says.
    void arrange() {
        MPI_Aint sum = 0;
        for (std::size_t i = 0; i < bytes.size(); ++i) {
            places[i] = sum;
            sum += bytes[i];
        }
        data.resize(static_cast<std::size_t>(sum));
    }
    std::uint8_t* block(std::size_t of) { return data.data() + places[of]; }
};

struct Span {
    std::int64_t first, end;
    std::int64_t bytes() const { return end - first; }
};

Span window_of(const Division& division, int aggregator, std::int64_t round) {
    const std::int64_t begin = division.first + aggregator * division.domain;
    const std::int64_t domain_end = std::min(begin + division.domain, division.end);
    const std::int64_t first = std::min(begin + round * division.window, domain_end);
    return {first, std::min(first + division.window, domain_end)};
}

/// Calls each(piece) for the parts that lie in the span of a rank's pieces, which ascend.
template <class Each>
void for_each_inside(const std::vector<Piece>& pieces, const Span& span, Each each) {
    auto piece = std::ranges::upper_bound(pieces, span.first, {},
                                          [](const Piece& one) { return one.offset + one.bytes; });
    for (; piece != pieces.end() && piece->offset < span.end; ++piece) {
        const std::int64_t skip = std::max<std::int64_t>(span.first - piece->offset, 0);
        const std::int64_t end = std::min(piece->offset + piece->bytes, span.end);
        each(Piece{piece->offset + skip, end - piece->offset - skip, piece->place + skip});
    }
}

/// What each aggregator is told of this rank's data in its window of the round.
struct Telling {
    std::vector<std::vector<Piece>> of;  ///< by aggregator
    Blocks message;

    /// `data` null: without data.
    Telling(const Division& division, std::int64_t round, const std::vector<Piece>& pieces, std::size_t ranks,
            const std::uint8_t* data)
        : of(static_cast<std::size_t>(division.aggregators)), message(ranks) {
        for (std::size_t to = 0; to < of.size(); ++to) {
            MPI_Count bytes = 0;
            for_each_inside(pieces, window_of(division, static_cast<int>(to), round),
                            [&](const Piece& piece) {
                                of[to].push_back(piece);
                                bytes += data ? piece.bytes : 0;
                            });
            if (!of[to].empty())
                message.bytes[to] = 8 + static_cast<MPI_Count>(of[to].size()) * entry_bytes + bytes;
        }
        message.arrange();
        for (std::size_t to = 0; to < of.size(); ++to)
            if (!of[to].empty()) write(of[to], data, message.block(to));
    }

  private:
    static void write(const std::vector<Piece>& pieces, const std::uint8_t* data, std::uint8_t* to) {
        store_le(to, static_cast<std::uint64_t>(pieces.size()));
        to += 8;
        for (const Piece& piece : pieces) {
            store_le(to, piece.offset);
            store_le(to + 8, piece.bytes);
            to += entry_bytes;
        }
        if (!data) return;
        for (const Piece& piece : pieces) {
            std::memcpy(to, data + piece.place, static_cast<std::size_t>(piece.bytes));
            to += piece.bytes;
        }
    }
};

/// What an aggregator was told by one rank. read() returns false when it is not about data in the window.
struct Told {
    std::vector<Piece> pieces;
    std::int64_t bytes = 0;
    const std::uint8_t* data = nullptr;

    bool read(const std::uint8_t* from, std::int64_t length, const Span& window, bool with_data) {
        if (length == 0) return true;
        if (length < 8) return false;
        const auto count = load_le<std::uint64_t>(from);
        if (count > static_cast<std::uint64_t>((length - 8) / entry_bytes)) return false;
        pieces.resize(static_cast<std::size_t>(count));
        std::int64_t first = window.first;
        from += 8;
        for (Piece& piece : pieces) {
            piece = {load_le<std::int64_t>(from), load_le<std::int64_t>(from + 8), bytes};
            if (piece.offset < first || piece.bytes <= 0 || piece.bytes > window.end - piece.offset)
                return false;
            // They ascend, so together they are no longer than the window.
            first = piece.offset + piece.bytes;
            bytes += piece.bytes;
            from += entry_bytes;
        }
        data = from;
        return length == 8 + static_cast<std::int64_t>(count) * entry_bytes + (with_data ? bytes : 0);
    }
};

bool read_all(Blocks& in, const Span& window, bool with_data, std::vector<Told>& told) {
    told.resize(in.bytes.size());
    for (std::size_t from = 0; from < told.size(); ++from)
        if (!told[from].read(in.block(from), in.bytes[from], window, with_data)) return false;
    return true;
}

/// The parts of the window in which some rank's data lies; gaps of up to `gap` bytes count as data.
std::vector<Span> stretches(const std::vector<Told>& told, std::int64_t gap) {
    std::vector<Span> all, merged;
    for (const Told& each : told)
        for (const Piece& piece : each.pieces) all.push_back({piece.offset, piece.offset + piece.bytes});
    std::ranges::sort(all, {}, &Span::first);
    for (const Span& span : all) {
        if (!merged.empty() && span.first - merged.back().end <= gap)
            merged.back().end = std::max(merged.back().end, span.end);
        else
            merged.push_back(span);
    }
    return merged;
}

/// What travels in one round.
struct Round {
    Telling telling;
    Blocks in, answers, answered;
    std::vector<std::int64_t> sent, received;  ///< lengths

    Round(File& file, const Division& division, std::int64_t number, const std::vector<Piece>& pieces,
          const std::uint8_t* data)
        : telling(division, number, pieces, file.ranks(), data),
          in(file.ranks()),
          answers(file.ranks()),
          answered(file.ranks()),
          sent(telling.message.bytes.begin(), telling.message.bytes.end()),
          received(file.ranks()) {}
};
using RoundPointer = std::unique_ptr<Round>;

int exchange(const char* call, File& file, RoundPointer& round, Blocks& out, Blocks& in) {
    return collect(
        file, round,
        plan::Alltoallv(call, out.data.data(), Counts(out.bytes.data()), Displacements(out.places.data()),
                        constants.byte, in.data.data(), Counts(in.bytes.data()),
                        Displacements(in.places.data()), constants.byte, file.comm()));
}

/// First the ranks tell each other how much they send, then they send it.
int tell(const char* call, File& file, RoundPointer& round) {
    const int code = collect(file, round,
                             plan::Alltoall(call, round->sent.data(), 1, constants.int64,
                                            round->received.data(), 1, constants.int64, file.comm()));
    if (code != MPI_SUCCESS) return code;
    constexpr std::int64_t most = std::int64_t{1} << 40;
    for (std::int64_t bytes : round->received)
        if (bytes < 0 || bytes > most) {
            Guard guard;
            file.window->fail(MPI_ERR_INTERN);
            return MPI_ERR_INTERN;
        }
    std::ranges::copy(round->received, round->in.bytes.begin());
    round->in.arrange();
    return exchange(call, file, round, round->telling.message, round->in);
}

/// No write has more bytes than the library's count can say, because a window has fewer.
int write_window(File& file, const Span& window, const std::vector<Told>& told) {
    std::vector<std::uint8_t> room(static_cast<std::size_t>(window.bytes()));
    for (const Told& each : told) {
        const std::uint8_t* from = each.data;
        for (const Piece& piece : each.pieces) {
            std::memcpy(room.data() + (piece.offset - window.first), from,
                        static_cast<std::size_t>(piece.bytes));
            from += piece.bytes;
        }
    }
    int code = MPI_SUCCESS;
    for (const Span& span : stretches(told, 0)) {
        if (code != MPI_SUCCESS) break;
        MPI_Status status;
        code = real.File_write_at(file.bytes, span.first, room.data() + (span.first - window.first),
                                  static_cast<int>(span.bytes()), constants.byte, &status);
    }
    return code;
}

/// Reads what was asked for, and lays it out for the ranks that asked.
int read_window(File& file, const Span& window, const std::vector<Told>& told, Blocks& answers) {
    std::vector<std::uint8_t> room(static_cast<std::size_t>(window.bytes()));
    int code = MPI_SUCCESS;
    for (const Span& span : stretches(told, short_gap)) {
        if (code != MPI_SUCCESS) break;
        MPI_Status status;
        code = real.File_read_at(file.bytes, span.first, room.data() + (span.first - window.first),
                                 static_cast<int>(span.bytes()), constants.byte, &status);
    }
    for (std::size_t to = 0; to < told.size(); ++to)
        for (const Piece& piece : told[to].pieces)
            std::memcpy(answers.block(to) + piece.place, room.data() + (piece.offset - window.first),
                        static_cast<std::size_t>(piece.bytes));
    return code;
}

/// Takes what this rank asked for in the round from the answers.
void take_answers(const Telling& asked, Blocks& answers, std::uint8_t* data) {
    for (std::size_t from = 0; from < asked.of.size(); ++from) {
        const std::uint8_t* at = answers.block(from);
        for (const Piece& piece : asked.of[from]) {
            std::memcpy(data + piece.place, at, static_cast<std::size_t>(piece.bytes));
            at += piece.bytes;
        }
    }
}

/// Whether runs of different ranks may lie in between each other.
bool interleave(const std::vector<Offer>& offers) {
    std::vector<Span> spans;
    for (const Offer& offer : offers)
        if (offer.bytes > 0) spans.push_back({offer.first, offer.end});
    std::ranges::sort(spans, {}, &Span::first);
    for (std::size_t i = 1; i < spans.size(); ++i)
        if (spans[i].first < spans[i - 1].end) return true;
    return false;
}

}  // namespace

Division divide(const std::vector<Offer>& offers) {
    Division division;
    std::int64_t pieces = 0, bytes = 0, window = offers[0].window;
    bool enabled = true;
    for (const Offer& offer : offers) division.file_size = std::max(division.file_size, offer.file_size);
    for (const Offer& offer : offers) {
        window = std::min(window, offer.window);
        if (!offer.able || offer.hint < 0) return division;
        enabled = enabled && offer.hint > 0;
        if (offer.bytes == 0) continue;
        division.first = bytes == 0 ? offer.first : std::min(division.first, offer.first);
        division.end = std::max(division.end, offer.end);
        pieces += offer.pieces;
        bytes += offer.bytes;
    }
    if (bytes == 0) return division;
    const std::int64_t all = division.end - division.first;
    if (!enabled && (bytes / pieces >= long_run || all / most_sparse > bytes || !interleave(offers)))
        return division;
    const auto ranks = static_cast<std::int64_t>(offers.size());
    const std::int64_t share = (all + ranks - 1) / ranks;
    division.domain = (share + least_domain - 1) / least_domain * least_domain;
    division.aggregators = static_cast<int>((all + division.domain - 1) / division.domain);
    division.window = std::min(window, division.domain);
    return division;
}

int write_in_phases(const char* call, File& file, const Division& division, const std::vector<Piece>& pieces,
                    const std::uint8_t* data) {
    int result = MPI_SUCCESS;
    for (std::int64_t number = 0; number < division.rounds(); ++number) {
        auto round = std::make_unique<Round>(file, division, number, pieces, data);
        if (int code = tell(call, file, round); code != MPI_SUCCESS) return code;
        if (file.window->rank >= division.aggregators) continue;
        const Span window = window_of(division, file.window->rank, number);
        std::vector<Told> told;
        const int code =
            read_all(round->in, window, true, told) ? write_window(file, window, told) : MPI_ERR_INTERN;
        if (result == MPI_SUCCESS) result = code;
    }
    return result;
}

int read_in_phases(const char* call, File& file, const Division& division, const std::vector<Piece>& pieces,
                   std::uint8_t* data) {
    int result = MPI_SUCCESS;
    for (std::int64_t number = 0; number < division.rounds(); ++number) {
        auto round = std::make_unique<Round>(file, division, number, pieces, nullptr);
        if (int code = tell(call, file, round); code != MPI_SUCCESS) return code;
        Blocks &answers = round->answers, &answered = round->answered;
        if (file.window->rank < division.aggregators) {
            const Span window = window_of(division, file.window->rank, number);
            std::vector<Told> told;
            // If a message is not understood there are no answers, which the ranks notice.
            int code = read_all(round->in, window, false, told) ? MPI_SUCCESS : MPI_ERR_INTERN;
            if (code == MPI_SUCCESS) {
                for (std::size_t to = 0; to < told.size(); ++to) answers.bytes[to] = told[to].bytes;
                answers.arrange();
                code = read_window(file, window, told, answers);
            }
            if (result == MPI_SUCCESS) result = code;
        }
        const auto& asked = round->telling.of;
        for (std::size_t from = 0; from < asked.size(); ++from)
            for (const Piece& piece : asked[from]) answered.bytes[from] += piece.bytes;
        answered.arrange();
        if (int code = exchange(call, file, round, answers, answered); code != MPI_SUCCESS) return code;
        take_answers(round->telling, answered, data);
    }
    return result;
}

}  // namespace mpisec::shim::io
