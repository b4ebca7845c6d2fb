/* mg: multigrid for Poisson's equation on a periodic cube; the communication of NPB's MG (RNR-94-007, 2.3):
 * layers around a box are exchanged with six neighbours, one axis after the other, on every level, so
 * messages go from a hundred bytes to hundreds of kilobytes; one reduction for a norm at the end of each
 * solution. Ranks form a grid over all three axes, each side of which must divide the coarsest level's 12
 * points: 1, 2, 3, 4, 6, 8, 9, 12, 16, 18, 24, …
 *
 * Operators are those that NPB's report gives: A with 27 points, S as the smoother, full weighting down and
 * linear interpolation up. The right side is A applied to a sum of waves, whose eigenvalues are known, so the
 * waves are the solution of the discrete problem. An iteration is a solution from zero with kCycles V-cycles:
 * the norm of what is left and the error must be those that one rank found (kSizes). */
#include "kernel.hpp"

#include <cmath>
#include <memory>
#include <numbers>
#include <vector>

namespace {

struct Size {
    char letter;
    int points, iterations; /* points: 12 times a power of two */
    double residual, error; /* afterwards, as root mean squares */
};
constexpr std::array<Size, 4> kSizes{{{'S', 96, 15, 4.431342831582e-04, 2.102473415655e-03},
                                      {'W', 96, 70, 4.431342831582e-04, 2.102473415655e-03},
                                      {'A', 192, 30, 1.272775284480e-04, 2.092203593318e-03},
                                      {'B', 192, 160, 1.272775284480e-04, 2.092203593318e-03}}};
constexpr int kCoarsest = 12, kCycles = 4, kSweepsCoarsest = 8;

/* Weights of the point itself, of the 6 next ones, of the 12 across an edge and the 8 across a corner. */
using Stencil = std::array<double, 4>;
constexpr Stencil kOperator{-8.0 / 3, 0, 1.0 / 6, 1.0 / 12}, kSmoother{-3.0 / 8, 1.0 / 32, -1.0 / 64, 0};

using Values = std::vector<double>;

/* The grid of ranks: a rank's place in it and its neighbours, below and above on each axis (0: x, the fastest
 * index). */
struct Ranks {
    int sides[3] = {0, 0, 0}, place[3], below[3], above[3];

    explicit Ranks(const kernel::Job& job) {
        int found[3] = {0, 0, 0};
        MPI_Dims_create(job.ranks, 3, found);
        for (int axis = 0; axis < 3; ++axis) sides[axis] = found[2 - axis]; /* lines of x stay long */
        place[0] = job.rank % sides[0], place[1] = job.rank / sides[0] % sides[1],
        place[2] = job.rank / (sides[0] * sides[1]);
        for (int axis = 0; axis < 3; ++axis) below[axis] = moved(axis, -1), above[axis] = moved(axis, 1);
    }

    bool fit() const {
        return kCoarsest % sides[0] == 0 && kCoarsest % sides[1] == 0 && kCoarsest % sides[2] == 0;
    }

  private:
    int moved(int axis, int by) const {
        int to[3] = {place[0], place[1], place[2]};
        to[axis] = (to[axis] + by + sides[axis]) % sides[axis];
        return to[0] + sides[0] * (to[1] + sides[1] * to[2]);
    }
};

/* This rank's box of a level: indices 1 … count of each axis, and around it the neighbours' layer. */
class Level {
  public:
    int points, count[3], first[3];
    Values u, r, v; /* correction or solution, what is left, right side */

    Level(kernel::Job& job, const Ranks& ranks, int n) : points(n), job_(job), ranks_(ranks) {
        for (int axis = 0; axis < 3; ++axis) {
            count[axis] = n / ranks.sides[axis], first[axis] = ranks.place[axis] * count[axis];
            along_[axis] = axis == 0 ? 1 : along_[axis - 1] * static_cast<std::size_t>(count[axis - 1] + 2);
        }
        std::size_t size = along_[2] * static_cast<std::size_t>(count[2] + 2);
        u.assign(size, 0), r.assign(size, 0), v.assign(size, 0);
    }

    std::size_t at(int i, int j, int k) const {
        return static_cast<std::size_t>(i) + static_cast<std::size_t>(j) * along_[1] +
               static_cast<std::size_t>(k) * along_[2];
    }

    /* Visits the first point of each line of x in the box. */
    template <class Visit>
    void for_lines(Visit visit) const {
        for (int k = 1; k <= count[2]; ++k)
            for (int j = 1; j <= count[1]; ++j) visit(at(1, j, k), j, k);
    }

    /* The layer around the box; an axis at a time, each with what came before, so that edges and corners come
     * along. */
    void exchange(Values& values) {
        for (int axis = 0; axis < 3; ++axis) {
            if (ranks_.sides[axis] == 1) {
                copy_layer(values, axis, count[axis], 0), copy_layer(values, axis, 1, count[axis] + 1);
                continue;
            }
            std::size_t length = layer_length(axis);
            for (Values* buffer : {&to_[0], &to_[1], &from_[0], &from_[1]}) buffer->resize(length);
            MPI_Request requests[4];
            receive(from_[0], ranks_.below[axis], 2 * axis, &requests[0]);
            receive(from_[1], ranks_.above[axis], 2 * axis + 1, &requests[1]);
            take(values, axis, 1, to_[1]), take(values, axis, count[axis], to_[0]);
            send(to_[0], ranks_.above[axis], 2 * axis, &requests[2]);
            send(to_[1], ranks_.below[axis], 2 * axis + 1, &requests[3]);
            MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
            put(values, axis, 0, from_[0]), put(values, axis, count[axis] + 1, from_[1]);
        }
    }

    /* The stencil at the points of a line of x from `start`, given to take(index, value). Neighbours across
     * the line are added up for the whole line first: each sum serves three points. */
    template <class Take>
    void apply(const Stencil& stencil, const Values& in, std::size_t start, Take take) {
        auto n = static_cast<std::size_t>(count[0]);
        std::size_t y = along_[1], z = along_[2];
        next_.resize(n + 2), across_.resize(n + 2);
        const double* p = &in[start - 1];
        for (std::size_t i = 0; i < n + 2; ++i) {
            const double* q = p + i;
            next_[i] = *(q - y) + *(q + y) + *(q - z) + *(q + z);
            across_[i] = *(q - y - z) + *(q + y - z) + *(q - y + z) + *(q + y + z);
        }
        const double *next = next_.data(), *across = across_.data();
        for (std::size_t i = 1; i <= n; ++i)
            take(start - 1 + i, stencil[0] * p[i] + stencil[1] * (p[i - 1] + p[i + 1] + next[i]) +
                                    stencil[2] * (next[i - 1] + next[i + 1] + across[i]) +
                                    stencil[3] * (across[i - 1] + across[i + 1]));
    }

    /* r = right - A u. `right` may be r itself. */
    void find_rest(const Values& right) {
        double* to = r.data();
        const double* from = right.data();
        for_lines([&](std::size_t start, int, int) {
            apply(kOperator, u, start, [=](std::size_t at, double value) { to[at] = from[at] - value; });
        });
        exchange(r);
    }

    /* u += weight * S r */
    void smooth(double weight = 1) {
        double* to = u.data();
        for_lines([&](std::size_t start, int, int) {
            apply(kSmoother, r, start, [=](std::size_t at, double value) { to[at] += weight * value; });
        });
        exchange(u);
    }

    /* This level's r from the finer one's. Its point (i, j, k) is the finer one's (2i - 1, 2j - 1, 2k - 1).
     */
    void restrict_from(Level& finer) {
        constexpr Stencil kWeights{1.0 / 2, 1.0 / 4, 1.0 / 8, 1.0 / 16};
        Values line(static_cast<std::size_t>(finer.count[0]) + 1);
        for_lines([&](std::size_t start, int j, int k) {
            std::size_t from = finer.at(1, 2 * j - 1, 2 * k - 1);
            finer.apply(kWeights, finer.r, from,
                        [&](std::size_t at, double value) { line[at - from] = value; });
            for (int i = 0; i < count[0]; ++i)
                r[start + static_cast<std::size_t>(i)] = line[2 * static_cast<std::size_t>(i)];
        });
        exchange(r);
    }

    /* Adds the coarser level's u, linear between its points. */
    void interpolate_from(const Level& coarser) {
        for_lines([&](std::size_t start, int j, int k) {
            /* Between two coarse lines, one, two or four of them weigh alike. */
            int low_j = (j + 1) / 2, low_k = (k + 1) / 2, high_j = low_j + (j + 1) % 2,
                high_k = low_k + (k + 1) % 2;
            const double* a = &coarser.u[coarser.at(1, low_j, low_k)];
            const double* b = &coarser.u[coarser.at(1, high_j, low_k)];
            const double* c = &coarser.u[coarser.at(1, low_j, high_k)];
            const double* d = &coarser.u[coarser.at(1, high_j, high_k)];
            double* to = &u[start];
            for (int i = 0; i < coarser.count[0]; ++i) {
                double here = a[i] + b[i] + c[i] + d[i], after = a[i + 1] + b[i + 1] + c[i + 1] + d[i + 1];
                to[2 * i] += here / 4, to[2 * i + 1] += (here + after) / 8;
            }
        });
        exchange(u);
    }

    /* The root of the mean of squares of value(index, i, j, k) over the whole level. */
    template <class Value>
    double mean(Value value) const {
        double sum = 0;
        for_lines([&](std::size_t start, int j, int k) {
            for (int i = 1; i <= count[0]; ++i) {
                double here = value(start + static_cast<std::size_t>(i) - 1, i, j, k);
                sum += here * here;
            }
        });
        return std::sqrt(job_.sum(sum) / (double(points) * points * points));
    }

  private:
    kernel::Job& job_;
    const Ranks& ranks_;
    std::size_t along_[3];
    Values to_[2], from_[2], next_, across_;

    void receive(Values& buffer, int rank, int tag, MPI_Request* request) {
        MPI_Irecv(buffer.data(), static_cast<int>(buffer.size()), MPI_DOUBLE, rank, tag, MPI_COMM_WORLD,
                  request);
    }

    void send(const Values& buffer, int rank, int tag, MPI_Request* request) {
        MPI_Isend(buffer.data(), static_cast<int>(buffer.size()), MPI_DOUBLE, rank, tag, MPI_COMM_WORLD,
                  request);
        job_.sent(buffer.size() * sizeof(double));
    }

    std::size_t layer_length(int axis) const {
        std::size_t length = 1;
        for (int other = 0; other < 3; ++other)
            if (other != axis) length *= static_cast<std::size_t>(count[other] + 2);
        return length;
    }

    /* Visits the points of index `which` on an axis, the layer's own edges included. */
    template <class Visit>
    void for_layer(int axis, int which, Visit visit) const {
        int slow = axis == 2 ? 1 : 2, fast = axis == 0 ? 1 : 0;
        std::size_t at = static_cast<std::size_t>(which) * along_[axis];
        for (int k = 0; k <= count[slow] + 1; ++k)
            for (int j = 0; j <= count[fast] + 1; ++j)
                visit(at + static_cast<std::size_t>(k) * along_[slow] +
                      static_cast<std::size_t>(j) * along_[fast]);
    }

    void take(const Values& values, int axis, int which, Values& buffer) const {
        double* next = buffer.data();
        for_layer(axis, which, [&](std::size_t at) { *next++ = values[at]; });
    }

    void put(Values& values, int axis, int which, const Values& buffer) const {
        const double* next = buffer.data();
        for_layer(axis, which, [&](std::size_t at) { values[at] = *next++; });
    }

    void copy_layer(Values& values, int axis, int from, int to) const {
        std::ptrdiff_t distance = static_cast<std::ptrdiff_t>(along_[axis]) * (from - to);
        for_layer(axis, to, [&](std::size_t at) {
            values[at] = values[static_cast<std::size_t>(static_cast<std::ptrdiff_t>(at) + distance)];
        });
    }
};

/* A sum of waves, the values and what A makes of them. */
class Waves {
  public:
    explicit Waves(int points) : points_(points) {}

    double value(int i, int j, int k) const { return sum(i, j, k, false); }
    double applied(int i, int j, int k) const { return sum(i, j, k, true); }

  private:
    struct Wave {
        int x, y, z;
        double phase, amplitude;
    };
    static constexpr std::array<Wave, 6> kWaves{{{1, 0, 0, 0.3, 1.0},
                                                 {1, 2, 1, 1.1, 1.0},
                                                 {0, 3, 5, 2.0, 0.7},
                                                 {7, 4, 2, 0.1, 0.5},
                                                 {11, 9, 13, 0.9, 0.3},
                                                 {17, 21, 19, 1.7, 0.2}}};
    int points_;

    double sum(int i, int j, int k, bool times_eigenvalue) const {
        double total = 0, unit = 2 * std::numbers::pi / points_;
        for (const Wave& wave : kWaves) {
            double factor = wave.amplitude;
            if (times_eigenvalue) {
                double x = std::cos(unit * wave.x), y = std::cos(unit * wave.y), z = std::cos(unit * wave.z);
                factor *=
                    kOperator[0] + kOperator[2] * 4 * (x * y + y * z + z * x) + kOperator[3] * 8 * x * y * z;
            }
            total += factor * std::cos(unit * (wave.x * i + wave.y * j + wave.z * k) + wave.phase);
        }
        return total;
    }
};

class Solver {
  public:
    Solver(kernel::Job& job, const Ranks& ranks, int points) : waves_(points) {
        for (int n = points; n >= kCoarsest; n /= 2)
            levels_.push_back(std::make_unique<Level>(job, ranks, n));
        for_finest([&](std::size_t at, int i, int j, int k) { finest().v[at] = waves_.applied(i, j, k); });
    }

    /* A solution from zero; returns the norm of what is left. */
    double iterate() {
        std::fill(finest().u.begin(), finest().u.end(), 0.0);
        finest().find_rest(finest().v);
        for (int cycle = 0; cycle < kCycles; ++cycle) {
            correct();
            finest().find_rest(finest().v);
        }
        return finest().mean([&](std::size_t at, int, int, int) { return finest().r[at]; });
    }

    double error() {
        for_finest([&](std::size_t at, int i, int j, int k) {
            finest().r[at] = finest().u[at] - waves_.value(i, j, k);
        });
        return finest().mean([&](std::size_t at, int, int, int) { return finest().r[at]; });
    }

  private:
    Waves waves_;
    std::vector<std::unique_ptr<Level>> levels_; /* the finest first */

    Level& finest() { return *levels_.front(); }

    /* visit(index, and the point's place in the whole cube) */
    template <class Visit>
    void for_finest(Visit visit) {
        Level& level = finest();
        level.for_lines([&](std::size_t start, int j, int k) {
            for (int i = 0; i < level.count[0]; ++i)
                visit(start + static_cast<std::size_t>(i), level.first[0] + i, level.first[1] + j - 1,
                      level.first[2] + k - 1);
        });
    }

    /* One V-cycle. */
    void correct() {
        for (std::size_t i = 1; i < levels_.size(); ++i) levels_[i]->restrict_from(*levels_[i - 1]);
        solve_coarsest();
        for (std::size_t i = levels_.size() - 1; i-- > 0;) {
            Level& level = *levels_[i];
            if (i > 0) std::fill(level.u.begin(), level.u.end(), 0.0);
            level.interpolate_from(*levels_[i + 1]);
            level.find_rest(i > 0 ? level.r : level.v);
            level.smooth();
        }
    }

    /* Nearly exact: sweeps with Chebyshev's weights for S A, whose eigenvalues on 12³ points are 0.098 to 7/6
     * (and 0). They leave 1.7 % of any wave. */
    void solve_coarsest() {
        constexpr double kLow = 0.0982, kHigh = 7.0 / 6, kMiddle = (kHigh + kLow) / 2,
                         kRadius = (kHigh - kLow) / 2;
        Level& level = *levels_.back();
        level.v = level.r;
        std::fill(level.u.begin(), level.u.end(), 0.0);
        for (int sweep = 0; sweep < kSweepsCoarsest; ++sweep) {
            if (sweep > 0) level.find_rest(level.v);
            level.smooth(1 / (kMiddle + kRadius * std::cos(std::numbers::pi * (2 * sweep + 1) /
                                                           (2 * kSweepsCoarsest))));
        }
    }
};

}  // namespace

int main(int argc, char** argv) {
    const Size& size = kernel::choose(argc, argv, "mg", kSizes);
    kernel::Job job(argc, argv, "mg", size.letter);
    Ranks ranks(job);
    if (!ranks.fit())
        return job.refuse("ranks must form a grid whose sides divide 12, as those of 1, 2, 3, 4, 6 and 8 do");
    Solver solver(job, ranks, size.points);
    solver.iterate();
    std::string wrong;
    job.start();
    for (int iteration = 0; iteration < size.iterations; ++iteration) {
        double residual = solver.iterate();
        if (wrong.empty()) wrong = kernel::check_equal("what is left", residual, size.residual, 1e-8);
    }
    job.stop();
    if (wrong.empty()) wrong = kernel::check_equal("the error", solver.error(), size.error, 1e-8);
    return job.finish(size.iterations, wrong);
}
