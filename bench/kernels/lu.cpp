/* lu: symmetric successive over-relaxation as a wavefront; the communication of NPB's LU (RNR-94-007, 2.3):
 * plane by plane of z, a rank waits for its neighbours' edges of that plane, works, and hands its own edges
 * on, up through the grid of ranks and down again: blocking messages of a few hundred bytes to a few
 * kilobytes, two to a rank and plane each way. A field's faces are exchanged once in an iteration. Any number
 * of ranks.
 *
 * The problem is flow.hpp's. An iteration solves (D + ωL) D⁻¹ (D + ωU) v = ω (2 - ω) τ R(u), where D, L and U
 * are the diagonal, lower and upper blocks of I - τ R', and adds v to u. The sweeps compute what one rank
 * alone would compute, so error and last step must be those that one rank found (kSizes). */
#include <algorithm>

#include "flow.hpp"

namespace {

struct Size {
    char letter;
    int points, iterations;
    double error, step; /* afterwards, as root mean squares */
};
constexpr std::array<Size, 4> kSizes{{{'S', 32, 100, 1.547951502156e-02, 4.174805167467e-04},
                                      {'W', 48, 110, 5.706748118511e-02, 7.400363691684e-04},
                                      {'A', 64, 160, 7.167434663007e-02, 5.455274032040e-04},
                                      {'B', 96, 230, 1.089718452013e-01, 4.099648984759e-04}}};
constexpr double kOmega = 1.2, kTimeStep = 0.02; /* τ */
using flow::kUnknowns;
using flow::Matrix;
using flow::Vector;

class Sweeps {
  public:
    Sweeps(kernel::Job& job, flow::State& state) : job_(job), state_(state), box_(state.box) {
        edge_x_.resize(static_cast<std::size_t>(box_.ny) * kUnknowns);
        edge_y_.resize(static_cast<std::size_t>(box_.nx) * kUnknowns);
    }

    void iterate() {
        state_.residual(kTimeStep * kOmega * (2 - kOmega));
        for (int k = 1; k <= box_.nz; ++k) lower_plane(k);
        for (int k = box_.nz; k >= 1; --k) upper_plane(k);
        state_.add_step();
    }

  private:
    kernel::Job& job_;
    flow::State& state_;
    const flow::Box& box_;
    std::vector<double> edge_x_, edge_y_; /* one plane's points of one column, of one row */

    double* at(int i, int j, int k) { return &state_.step[box_.at(i, j, k)]; }

    /* Edges of plane k: the column of x index i, the row of y index j. */
    void receive_edges(int k, int from_x, int i, int from_y, int j) {
        if (from_x != MPI_PROC_NULL) {
            MPI_Recv(edge_x_.data(), static_cast<int>(edge_x_.size()), MPI_DOUBLE, from_x, k, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
            for (int free = 1; free <= box_.ny; ++free)
                std::copy_n(&edge_x_[static_cast<std::size_t>(free - 1) * kUnknowns], kUnknowns,
                            at(i, free, k));
        }
        if (from_y != MPI_PROC_NULL) /* a row lies together */
            MPI_Recv(at(1, j, k), static_cast<int>(edge_y_.size()), MPI_DOUBLE, from_y, k, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    }

    void send_edges(int k, int to_x, int i, int to_y, int j) {
        if (to_x != MPI_PROC_NULL) {
            for (int free = 1; free <= box_.ny; ++free)
                std::copy_n(at(i, free, k), kUnknowns,
                            &edge_x_[static_cast<std::size_t>(free - 1) * kUnknowns]);
            MPI_Send(edge_x_.data(), static_cast<int>(edge_x_.size()), MPI_DOUBLE, to_x, k, MPI_COMM_WORLD);
            job_.sent(edge_x_.size() * sizeof(double));
        }
        if (to_y != MPI_PROC_NULL) {
            MPI_Send(at(1, j, k), static_cast<int>(edge_y_.size()), MPI_DOUBLE, to_y, k, MPI_COMM_WORLD);
            job_.sent(edge_y_.size() * sizeof(double));
        }
    }

    /* What the neighbours on one side (-1 below, 1 above) contribute: ω times their blocks of I - τ R'. */
    Vector from_neighbours(int i, int j, int k, int side) {
        const double* u = &state_.u[box_.at(i, j, k)];
        const double* near[3] = {at(i + side, j, k), at(i, j + side, k), at(i, j, k + side)};
        double over = -kTimeStep / (box_.h * box_.h), under = side * kTimeStep / (2 * box_.h);
        Vector sum{};
        for (int d = 0; d < 3; ++d) {
            Matrix block;
            state_.model.block(block, d, u, over, under);
            flow::add_product(sum, kOmega, block, near[d]);
        }
        return sum;
    }

    /* right = D⁻¹ right */
    void divide(int i, int j, int k, double* right) {
        Matrix diagonal;
        double factor =
            6 * kTimeStep / (box_.h * box_.h) * flow::Model::stiffness(&state_.u[box_.at(i, j, k)]);
        for (std::size_t e = 0; e < flow::kEntries; ++e) diagonal[e] = factor * state_.model.diffusion[e];
        for (std::size_t m = 0; m < kUnknowns; ++m) diagonal[m * (kUnknowns + 1)] += 1;
        flow::solve<1>(diagonal, right);
    }

    void lower_plane(int k) {
        receive_edges(k, box_.west, 0, box_.south, 0);
        for (int j = 1; j <= box_.ny; ++j)
            for (int i = 1; i <= box_.nx; ++i) {
                Vector sum = from_neighbours(i, j, k, -1);
                double* v = at(i, j, k);
                for (std::size_t m = 0; m < kUnknowns; ++m) v[m] -= sum[m];
                divide(i, j, k, v);
            }
        send_edges(k, box_.east, box_.nx, box_.north, box_.ny);
    }

    void upper_plane(int k) {
        receive_edges(k, box_.east, box_.nx + 1, box_.north, box_.ny + 1);
        for (int j = box_.ny; j >= 1; --j)
            for (int i = box_.nx; i >= 1; --i) {
                Vector sum = from_neighbours(i, j, k, 1);
                divide(i, j, k, sum.data());
                double* v = at(i, j, k);
                for (std::size_t m = 0; m < kUnknowns; ++m) v[m] -= sum[m];
            }
        send_edges(k, box_.west, 1, box_.south, 1);
    }
};

}  // namespace

int main(int argc, char** argv) {
    const Size& size = kernel::choose(argc, argv, "lu", kSizes);
    kernel::Job job(argc, argv, "lu", size.letter);
    flow::State state(job, size.points);
    if (!state.box.fits()) return job.refuse("there are more ranks along a side of the box than points");
    Sweeps sweeps(job, state);
    state.begin();
    sweeps.iterate();
    state.begin();
    job.start();
    for (int iteration = 0; iteration < size.iterations; ++iteration) sweeps.iterate();
    job.stop();
    std::string wrong = kernel::check_equal("the error", state.error(), size.error, 1e-8);
    if (wrong.empty()) wrong = kernel::check_equal("the last step", state.step_size(), size.step, 1e-8);
    return job.finish(size.iterations, wrong);
}
