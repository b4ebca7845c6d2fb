#include "shim/startup/hello_exchange.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "shim/pmpi/constants.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/startup/waiting.hpp"

namespace mpisec::shim {
namespace {

constexpr const char* the_hellos = "the other ranks' settings";
// The program's messages come after all of these, which MPI keeps in order.
constexpr int hellos_tag = 32767;

#ifdef OPEN_MPI

/// What a rank sends and receives in one round: `count` of the hellos that it has found so far, by place.
struct HelloRound {
    int to, from;
    int sent, received;
    int count;
    MPI_Request receiving;
};

/// After each round a rank has twice as many. With a power of two the rounds pair the ranks (recursive doubling); else
/// they are those of Bruck et al. (IEEE TPDS 8(11), 1997, doi:10.1109/71.642949). A first message between two ranks makes
/// Open MPI connect them, so few pairs count: recursive doubling has half as many.
class HelloRounds {
  public:
    HelloRounds(int rank, int size, MPI_Comm comm)
        : comm_(comm), rank_(rank), size_(size), found_(static_cast<std::size_t>(size)) {
        for (int have = 1; have < size; have *= 2) {
            const int count = std::min(have, size - have);
            if (pairs())
                rounds_.push_back(
                    {rank ^ have, rank ^ have, rank & ~(have - 1), (rank ^ have) & ~(have - 1), count, {}});
            else
                rounds_.push_back({(rank - have + size) % size, (rank + have) % size, 0, have, count, {}});
        }
    }

    std::vector<Hello> gather(const Hello& own, const config::Settings& settings) {
        at(own_place()) = own;
        // All at once: Open MPI looks at connections every 10 ms only while it knows of no peer elsewhere.
        for (HelloRound& round : rounds_)
            check_mpi(real.Irecv(&at(round.received), bytes(round), constants.byte, round.from, hellos_tag,
                                 comm_, &round.receiving),
                      "MPI_Irecv");
        for (HelloRound& round : rounds_) {
            MPI_Request sending;
            check_mpi(real.Isend(&at(round.sent), bytes(round), constants.byte, round.to, hellos_tag, comm_,
                                 &sending),
                      "MPI_Isend");
            complete(&round.receiving, the_hellos, settings);
            complete(&sending, the_hellos, settings);
        }
        std::rotate(found_.begin(), found_.end() - (rank_ - own_place()), found_.end());
        return std::move(found_);
    }

  private:
    bool pairs() const { return std::has_single_bit(static_cast<unsigned>(size_)); }
    /// Without pairs, places are counted from this rank on, round the end.
    int own_place() const { return pairs() ? rank_ : 0; }
    Hello& at(int place) { return found_[static_cast<std::size_t>(place)]; }
    static int bytes(const HelloRound& round) { return round.count * static_cast<int>(sizeof(Hello)); }

    const MPI_Comm comm_;
    const int rank_, size_;
    std::vector<Hello> found_;
    std::vector<HelloRound> rounds_;
};

std::vector<Hello> gather(const Hello& own, int size, MPI_Comm comm, const config::Settings& settings) {
    return HelloRounds(own.rank, size, comm).gather(own, settings);
}

#else

/// All hellos, by a binomial tree: a rank collects those of the ranks below it, which are the ranks after it, and the
/// root sends all of them down. MPI libraries connect two ranks at their first message, so few pairs count (n - 1 here,
/// n/2 log2(n) and more in exchanges among all), and one of two must speak first: when two ranks of MPICH 5 over
/// libfabric's TCP connect to each other at the same moment, both now and then wait for ever.
class HelloTree {
  public:
    HelloTree(const Hello& own, int size, MPI_Comm comm, const config::Settings& settings)
        : comm_(comm),
          settings_(settings),
          rank_(own.rank),
          size_(size),
          hellos_(static_cast<std::size_t>(size)) {
        at(rank_) = own;
        for (int bit = 1; rank_ + bit < size && (rank_ & bit) == 0; bit *= 2)
            children_.push_back(rank_ + bit);
    }

    std::vector<Hello> gather() {
        std::vector<MPI_Request> arriving;
        for (int child : children_) arriving.push_back(receive(child, child, end_below(child)));
        finish(arriving);
        if (rank_ != 0) {
            const int parent = rank_ & (rank_ - 1);
            std::vector<MPI_Request> both = {send(parent, rank_, end_below(rank_))};
            finish(both);
            both = {receive(parent, 0, size_)};
            finish(both);
        }
        std::vector<MPI_Request> leaving;
        for (auto child = children_.rbegin(); child != children_.rend(); ++child)
            leaving.push_back(send(*child, 0, size_));
        finish(leaving);
        return std::move(hellos_);
    }

  private:
    /// The ranks below `rank`, itself included, end here.
    int end_below(int rank) const { return rank == 0 ? size_ : std::min(rank + (rank & -rank), size_); }
    Hello& at(int rank) { return hellos_[static_cast<std::size_t>(rank)]; }
    static int bytes(int begin, int end) { return (end - begin) * static_cast<int>(sizeof(Hello)); }

    MPI_Request receive(int from, int begin, int end) {
        MPI_Request request;
        check_mpi(
            real.Irecv(&at(begin), bytes(begin, end), constants.byte, from, hellos_tag, comm_, &request),
            "MPI_Irecv");
        return request;
    }

    MPI_Request send(int to, int begin, int end) {
        MPI_Request request;
        check_mpi(real.Isend(&at(begin), bytes(begin, end), constants.byte, to, hellos_tag, comm_, &request),
                  "MPI_Isend");
        return request;
    }

    void finish(std::vector<MPI_Request>& requests) const {
        for (MPI_Request& request : requests) complete(&request, the_hellos, settings_);
    }

    const MPI_Comm comm_;
    const config::Settings& settings_;
    const int rank_, size_;
    std::vector<Hello> hellos_;
    std::vector<int> children_;
};

std::vector<Hello> gather(const Hello& own, int size, MPI_Comm comm, const config::Settings& settings) {
    return HelloTree(own, size, comm, settings).gather();
}

#endif

}  // namespace

std::vector<Hello> gather_hellos(const Hello& own, int size, MPI_Comm comm,
                                 const config::Settings& settings) {
    return gather(own, size, comm, settings);
}

}  // namespace mpisec::shim
