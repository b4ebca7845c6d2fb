/* bt: an alternating direction implicit method with block-tridiagonal systems of 5 × 5 blocks, as NPB's BT
 * and SP (RNR-94-007, 2.3). Lines of x and of y go through several ranks: each eliminates its part of a few
 * planes' lines from what the rank before handed on (the last block row of every line) and hands on its own,
 * so that ranks work on different planes at a time; solutions come back the same way. Messages of several
 * kilobytes to a hundred. NPB deals out several cells to each rank so that none waits (multi-partition),
 * which needs a square number of ranks; here the pipeline does it for any number. A field's faces are
 * exchanged once in an iteration.
 *
 * The problem is flow.hpp's. An iteration solves (I - τ X) (I - τ Y) (I - τ Z) v = τ R(u), X, Y and Z the
 * parts of R' along one direction, and adds v to u. Lines are solved as one rank alone would solve them, so
 * error and last step must be those that one rank found (kSizes). */
#include <algorithm>

#include "flow.hpp"

namespace {

struct Size {
    char letter;
    int points, iterations;
    double error, step; /* afterwards, as root mean squares */
};
constexpr std::array<Size, 4> kSizes{{{'S', 24, 100, 1.790385254115e-04, 1.260376849726e-05},
                                      {'W', 48, 45, 8.017313772532e-03, 6.005636805288e-04},
                                      {'A', 64, 60, 2.729373433087e-03, 2.008901652854e-04},
                                      {'B', 96, 90, 3.354382031955e-04, 2.389690931770e-05}}};
constexpr double kTimeStep = 0.002; /* τ */
constexpr int kPlanes = 4;          /* whose lines go in one message */
using flow::kEntries;
using flow::kUnknowns;
using flow::Matrix;
using flow::Vector;

/* One direction's lines: where they begin, how long they are here, who has what comes before and after. */
struct Lines {
    int direction, length, count; /* count: lines of one plane of z; for z, of one row of y */
    std::size_t along, across;    /* distances of points on a line, of lines */
    int before, after;
};

class Solver {
  public:
    Solver(kernel::Job& job, flow::State& state)
        : job_(job), state_(state), box_(state.box), upper_(box_.size() / kUnknowns) {}

    void iterate() {
        state_.residual(kTimeStep);
        Lines along_x{0, box_.nx, box_.ny, box_.stride_x(), box_.stride_y(), box_.west, box_.east};
        Lines along_y{1, box_.ny, box_.nx, box_.stride_y(), box_.stride_x(), box_.south, box_.north};
        Lines along_z{2, box_.nz, box_.nx, box_.stride_z(), box_.stride_x(), MPI_PROC_NULL, MPI_PROC_NULL};
        sweep(along_x, box_.nz, box_.stride_z());
        sweep(along_y, box_.nz, box_.stride_z());
        sweep(along_z, box_.ny, box_.stride_y());
        state_.add_step();
    }

  private:
    kernel::Job& job_;
    flow::State& state_;
    const flow::Box& box_;
    std::vector<Matrix> upper_; /* of each point, after elimination: v = step - upper · the next point's v */
    std::vector<double> message_;

    /* All lines of one direction. `planes` of them, `apart` in the field, each with lines.count lines. */
    void sweep(const Lines& lines, int planes, std::size_t apart) {
        for (int first = 0; first < planes; first += kPlanes) {
            int last = std::min(first + kPlanes, planes);
            receive<true>(lines, first, last, apart, lines.before, 0);
            for_lines(lines, first, last, apart, [&](std::size_t start) { eliminate(lines, start); });
            send<true>(lines, first, last, apart, lines.after, lines.length);
        }
        for (int first = 0; first < planes; first += kPlanes) {
            int last = std::min(first + kPlanes, planes);
            receive<false>(lines, first, last, apart, lines.after, lines.length + 1);
            for_lines(lines, first, last, apart, [&](std::size_t start) { substitute(lines, start); });
            send<false>(lines, first, last, apart, lines.before, 1);
        }
    }

    /* visit(where a line's point of index 0 is in the field) */
    template <class Visit>
    void for_lines(const Lines& lines, int first, int last, std::size_t apart, Visit visit) {
        for (int plane = first; plane < last; ++plane)
            for (int line = 1; line <= lines.count; ++line)
                visit(static_cast<std::size_t>(plane + 1) * apart +
                      static_cast<std::size_t>(line) * lines.across);
    }

    /* Of every line the point of index `which`: its right side and, on the way forward, its upper block. */
    template <bool forward>
    void receive(const Lines& lines, int first, int last, std::size_t apart, int from, int which) {
        if (from == MPI_PROC_NULL) return;
        message_.resize(message_length<forward>(lines, first, last));
        MPI_Recv(message_.data(), static_cast<int>(message_.size()), MPI_DOUBLE, from, lines.direction,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        const double* next = message_.data();
        for_lines(lines, first, last, apart, [&](std::size_t start) {
            std::size_t point = start + static_cast<std::size_t>(which) * lines.along;
            std::copy_n(next, kUnknowns, &state_.step[point]), next += kUnknowns;
            if constexpr (forward)
                std::copy_n(next, kEntries, upper_[point / kUnknowns].begin()), next += kEntries;
        });
    }

    template <bool forward>
    void send(const Lines& lines, int first, int last, std::size_t apart, int to, int which) {
        if (to == MPI_PROC_NULL) return;
        message_.resize(message_length<forward>(lines, first, last));
        double* next = message_.data();
        for_lines(lines, first, last, apart, [&](std::size_t start) {
            std::size_t point = start + static_cast<std::size_t>(which) * lines.along;
            next = std::copy_n(&state_.step[point], kUnknowns, next);
            if constexpr (forward) next = std::copy_n(upper_[point / kUnknowns].begin(), kEntries, next);
        });
        MPI_Send(message_.data(), static_cast<int>(message_.size()), MPI_DOUBLE, to, lines.direction,
                 MPI_COMM_WORLD);
        job_.sent(message_.size() * sizeof(double));
    }

    template <bool forward>
    static std::size_t message_length(const Lines& lines, int first, int last) {
        return static_cast<std::size_t>((last - first) * lines.count *
                                        (forward ? kUnknowns + kEntries : kUnknowns));
    }

    /* Forward along this rank's part of a line. The point before the first is another rank's last, or on the
     * boundary, where v is zero. */
    void eliminate(const Lines& lines, std::size_t start) {
        double h = box_.h, over = -kTimeStep / (h * h), under = kTimeStep / (2 * h);
        for (int i = 1; i <= lines.length; ++i) {
            std::size_t point = start + static_cast<std::size_t>(i) * lines.along,
                        previous = point - lines.along;
            const double* u = &state_.u[point];
            std::array<double, kUnknowns*(kUnknowns + 1)> right; /* the upper block and the right side */
            Matrix lower, diagonal, upper;
            state_.model.block(lower, lines.direction, u, over, -under);
            state_.model.block(upper, lines.direction, u, over, under);
            for (std::size_t e = 0; e < kEntries; ++e) diagonal[e] = -lower[e] - upper[e];
            for (std::size_t m = 0; m < kUnknowns; ++m) diagonal[m * (kUnknowns + 1)] += 1;
            Vector value;
            std::copy_n(&state_.step[point], kUnknowns, value.begin());
            if (i > 1 || lines.before != MPI_PROC_NULL) {
                flow::add_product(value, -1, lower, &state_.step[previous]);
                subtract_product(diagonal, lower, upper_[previous / kUnknowns]);
            }
            for (std::size_t m = 0; m < kUnknowns; ++m) {
                std::copy_n(&upper[m * kUnknowns], kUnknowns, &right[m * (kUnknowns + 1)]);
                right[m * (kUnknowns + 1) + kUnknowns] = value[m];
            }
            flow::solve<kUnknowns + 1>(diagonal, right.data());
            for (std::size_t m = 0; m < kUnknowns; ++m) {
                std::copy_n(&right[m * (kUnknowns + 1)], kUnknowns,
                            &upper_[point / kUnknowns][m * kUnknowns]);
                state_.step[point + m] = right[m * (kUnknowns + 1) + kUnknowns];
            }
        }
    }

    static void subtract_product(Matrix& c, const Matrix& a, const Matrix& b) {
        for (int i = 0; i < kUnknowns; ++i)
            for (int k = 0; k < kUnknowns; ++k)
                for (int j = 0; j < kUnknowns; ++j)
                    c[i * kUnknowns + j] -= a[i * kUnknowns + k] * b[k * kUnknowns + j];
    }

    void substitute(const Lines& lines, std::size_t start) {
        for (int i = lines.length; i >= 1; --i) {
            if (i == lines.length && lines.after == MPI_PROC_NULL) continue;
            std::size_t point = start + static_cast<std::size_t>(i) * lines.along;
            Vector value;
            std::copy_n(&state_.step[point], kUnknowns, value.begin());
            flow::add_product(value, -1, upper_[point / kUnknowns], &state_.step[point + lines.along]);
            std::copy_n(value.begin(), kUnknowns, &state_.step[point]);
        }
    }
};

}  // namespace

int main(int argc, char** argv) {
    const Size& size = kernel::choose(argc, argv, "bt", kSizes);
    kernel::Job job(argc, argv, "bt", size.letter);
    flow::State state(job, size.points);
    if (!state.box.fits()) return job.refuse("there are more ranks along a side of the box than points");
    Solver solver(job, state);
    state.begin();
    solver.iterate();
    state.begin();
    job.start();
    for (int iteration = 0; iteration < size.iterations; ++iteration) solver.iterate();
    job.stop();
    std::string wrong = kernel::check_equal("the error", state.error(), size.error, 1e-8);
    if (wrong.empty()) wrong = kernel::check_equal("the last step", state.step_size(), size.step, 1e-8);
    return job.finish(size.iterations, wrong);
}
