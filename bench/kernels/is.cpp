/* is: integer sort by buckets; the communication of NPB's IS (RNR-94-007, 2.3): in each iteration one
 * reduction of the buckets' counts, one all-to-all of 4 bytes per rank and one all-to-all of nearly all keys.
 * Any number of ranks.
 *
 * Keys are the mean of four uniform numbers, so that buckets are uneven. Ranks get consecutive buckets that
 * hold about as many keys for each, count what they were sent, and so know every key's place. Two keys change
 * in each iteration.
 *
 * Each iteration's keys are checked to be in the range of the rank that got them, and their sum to be that of
 * all keys; at the end keys are put in order and must be ascending across ranks and the same as at the
 * beginning (sums of two hashes of them: a permutation). */
#include "kernel.hpp"

#include <numeric>
#include <vector>

namespace {

struct Size {
    char letter;
    int keys, largest, iterations; /* powers of two, the first two */
};
constexpr std::array<Size, 4> kSizes{{{'S', 1 << 20, 1 << 16, 250},
                                      {'W', 1 << 22, 1 << 18, 200},
                                      {'A', 1 << 23, 1 << 19, 240},
                                      {'B', 1 << 25, 1 << 21, 250}}};
constexpr int kBuckets = 1024;

int make_key(const Size& size, int index) {
    std::uint64_t bits = kernel::mix(static_cast<std::uint64_t>(index)), sum = 0;
    for (int i = 0; i < 4; ++i) sum += (bits >> (16 * i)) & 0xFFFF;
    std::uint64_t low = kernel::mix(bits) & 3; /* else the last bits of 2^21 keys would be alike */
    return static_cast<int>((sum * 4 + low) * static_cast<std::uint64_t>(size.largest) >> 20);
}

/* What a permutation leaves alike; sums are modulo 2^64. */
struct Content {
    std::uint64_t count = 0, first = 0, second = 0;

    void add(int key) {
        std::uint64_t hash = kernel::mix(static_cast<std::uint64_t>(key));
        ++count, first += hash, second += kernel::mix(hash);
    }

    Content over_all() const {
        Content all;
        MPI_Allreduce(this, &all, 3, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
        return all;
    }

    bool operator==(const Content&) const = default;
};

class Sort {
  public:
    Sort(kernel::Job& job, const Size& size)
        : job_(job),
          size_(size),
          mine_(kernel::block(size.keys, job.ranks, job.rank)),
          width_(size.largest / kBuckets) {
        auto ranks = static_cast<std::size_t>(job.ranks);
        send_counts_.resize(ranks), send_at_.resize(ranks), counts_.resize(ranks), at_.resize(ranks);
        edges_.resize(ranks + 1);
        keys_.resize(static_cast<std::size_t>(mine_.count)), ordered_.resize(keys_.size());
        for (int i = 0; i < mine_.count; ++i)
            keys_[static_cast<std::size_t>(i)] = make_key(size, mine_.first + i);
    }

    void iterate(int iteration) {
        change_keys(iteration);
        count_buckets();
        deal_out_buckets();
        order_by_bucket();
        exchange();
        rank_keys();
    }

    void forget_checks() { sent_sum_ = 0, got_sum_ = 0, misplaced_ = 0; }

    /* After the last iteration; not timed. */
    std::string check() {
        std::uint64_t mine[2] = {sent_sum_, got_sum_}, all[2];
        MPI_Allreduce(mine, all, 2, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
        Content before, after;
        for (int key : keys_) before.add(key);
        std::vector<int> sorted = put_in_order();
        for (int key : sorted) after.add(key);
        bool same = before.over_all() == after.over_all(), ascending = ascends(sorted);
        if (job_.sum(static_cast<double>(misplaced_)) > 0)
            return "keys came to a rank that has other buckets";
        if (all[0] != all[1]) return "keys that were received do not add up to those that were sent";
        if (!ascending) return "the keys are not in order";
        return same ? "" : "the sorted keys are not those that there were";
    }

  private:
    kernel::Job& job_;
    Size size_;
    kernel::Block mine_;
    int width_; /* of a bucket */
    std::vector<int> keys_, ordered_, received_, places_;
    std::vector<int> local_ = std::vector<int>(kBuckets), global_ = std::vector<int>(kBuckets);
    std::vector<int> edges_; /* rank r has buckets edges_[r] … edges_[r + 1] - 1 */
    std::vector<int> send_counts_, send_at_, counts_, at_;
    std::uint64_t sent_sum_ = 0, got_sum_ = 0, misplaced_ = 0;

    int bucket(int key) const { return key / width_; }
    int low() const { return edges_[static_cast<std::size_t>(job_.rank)] * width_; }
    int range() const { return edges_[static_cast<std::size_t>(job_.rank) + 1] * width_ - low(); }

    void change_keys(int iteration) {
        if (job_.rank != 0) return;
        keys_[static_cast<std::size_t>(iteration)] = iteration;
        keys_[static_cast<std::size_t>(iteration + size_.iterations)] = size_.largest - 1 - iteration;
    }

    void count_buckets() {
        std::fill(local_.begin(), local_.end(), 0);
        int shift = __builtin_ctz(static_cast<unsigned>(width_));
        for (int key : keys_)
            ++local_[static_cast<std::size_t>(key >> shift)], sent_sum_ += static_cast<std::uint64_t>(key);
        MPI_Allreduce(local_.data(), global_.data(), kBuckets, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }

    /* Consecutive buckets, to each rank about its share of the keys. */
    void deal_out_buckets() {
        std::int64_t before = 0;
        int rank = 0;
        edges_[0] = 0;
        for (int i = 0; i < kBuckets; ++i) {
            before += global_[static_cast<std::size_t>(i)];
            while (rank + 1 < job_.ranks &&
                   before * job_.ranks >= static_cast<std::int64_t>(size_.keys) * (rank + 1))
                edges_[static_cast<std::size_t>(++rank)] = i + 1;
        }
        while (rank < job_.ranks) edges_[static_cast<std::size_t>(++rank)] = kBuckets;
    }

    void order_by_bucket() {
        std::vector<int> next(kBuckets);
        std::exclusive_scan(local_.begin(), local_.end(), next.begin(), 0);
        for (std::size_t rank = 0; rank < send_counts_.size(); ++rank) {
            auto from = static_cast<std::size_t>(edges_[rank]),
                 to = static_cast<std::size_t>(edges_[rank + 1]);
            send_at_[rank] = from < kBuckets ? next[from] : mine_.count;
            send_counts_[rank] = (to < kBuckets ? next[to] : mine_.count) - send_at_[rank];
        }
        int shift = __builtin_ctz(static_cast<unsigned>(width_));
        for (int key : keys_)
            ordered_[static_cast<std::size_t>(next[static_cast<std::size_t>(key >> shift)]++)] = key;
    }

    void exchange() {
        MPI_Alltoall(send_counts_.data(), 1, MPI_INT, counts_.data(), 1, MPI_INT, MPI_COMM_WORLD);
        std::exclusive_scan(counts_.begin(), counts_.end(), at_.begin(), 0);
        received_.resize(static_cast<std::size_t>(at_.back() + counts_.back()));
        MPI_Alltoallv(ordered_.data(), send_counts_.data(), send_at_.data(), MPI_INT, received_.data(),
                      counts_.data(), at_.data(), MPI_INT, MPI_COMM_WORLD);
        auto own = static_cast<std::size_t>(send_counts_[static_cast<std::size_t>(job_.rank)]);
        job_.sent((ordered_.size() - own + send_counts_.size() - 1) * sizeof(int));
    }

    /* places_[k]: how many of this rank's keys are below low() + k. */
    void rank_keys() {
        places_.assign(static_cast<std::size_t>(range()) + 1, 0);
        int first = low();
        auto most = static_cast<unsigned>(range());
        for (int key : received_) {
            auto place = static_cast<unsigned>(key - first);
            got_sum_ += static_cast<std::uint64_t>(key);
            if (place < most)
                ++places_[place + 1];
            else
                ++misplaced_;
        }
        std::inclusive_scan(places_.begin(), places_.end(), places_.begin());
    }

    std::vector<int> put_in_order() const {
        std::vector<int> next(places_), sorted(received_.size());
        auto most = static_cast<unsigned>(range());
        for (int key : received_) {
            auto place = static_cast<unsigned>(key - low());
            if (place < most) sorted[static_cast<std::size_t>(next[place]++)] = key;
        }
        return sorted;
    }

    /* Within this rank, and from the rank before that has any. */
    bool ascends(const std::vector<int>& sorted) const {
        int last = sorted.empty() ? -1 : sorted.back(), before = -1;
        MPI_Exscan(&last, &before, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (job_.rank == 0) before = -1;
        for (int key : sorted) {
            if (key < before) return false;
            before = key;
        }
        return true;
    }
};

}  // namespace

int main(int argc, char** argv) {
    const Size& size = kernel::choose(argc, argv, "is", kSizes);
    kernel::Job job(argc, argv, "is", size.letter);
    if (job.ranks > kBuckets) return job.refuse("there are 1024 buckets, so at most 1024 ranks");
    Sort sort(job, size);
    sort.iterate(0);
    sort.forget_checks();
    job.start();
    for (int iteration = 0; iteration < size.iterations; ++iteration) sort.iterate(iteration);
    job.stop();
    return job.finish(size.iterations, sort.check());
}
