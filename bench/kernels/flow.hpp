/* The problem of bt and lu: five quantities in a box, each step of which solves for all five at every point
 * together.
 *
 * In the interior of the unit cube, on n³ points of spacing h, with values of u given on the boundary,
 *     R(u) = Σ over x, y, z of [ s(u) N δ²u / h² - J_d(u) δu / 2h ] + f = 0
 * where δ² and δ are the second and the central difference, N a symmetric positive matrix (diffusion that
 * couples the five), s = 1 + u₀ / 10, and J_d = B_d + u wᵀ_d / 10 a matrix for each direction that depends on
 * u, as a flux's Jacobian does. f is chosen so that a smooth field that is known makes R zero exactly, in
 * these differences: each rank computes it from the known field alone. The steps (bt, lu) come close to it;
 * how close is the same for any number of ranks but for rounding.
 *
 * Ranks form a grid over x and y; z is whole on each. That is LU's decomposition in NPB (RNR-94-007,
 * NAS-95-020). */
#pragma once

#include "kernel.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace flow {

constexpr int kUnknowns = 5, kEntries = kUnknowns * kUnknowns;
using Vector = std::array<double, kUnknowns>;
using Matrix = std::array<double, kEntries>; /* by rows */

/* y += factor * A x */
inline void add_product(Vector& y, double factor, const Matrix& a, const double* x) {
    for (int i = 0; i < kUnknowns; ++i) {
        double sum = 0;
        for (int j = 0; j < kUnknowns; ++j) sum += a[i * kUnknowns + j] * x[j];
        y[i] += factor * sum;
    }
}

/* Gaussian elimination without pivots, in place: matrices here have a strong diagonal. `right` has `columns`
 * right sides side by side and becomes the solution. */
template <int columns>
inline void solve(Matrix& a, double* right) {
    for (int pivot = 0; pivot < kUnknowns; ++pivot) {
        double inverse = 1 / a[pivot * kUnknowns + pivot];
        for (int j = pivot + 1; j < kUnknowns; ++j) a[pivot * kUnknowns + j] *= inverse;
        for (int c = 0; c < columns; ++c) right[pivot * columns + c] *= inverse;
        for (int i = 0; i < kUnknowns; ++i) {
            if (i == pivot) continue;
            double factor = a[i * kUnknowns + pivot];
            for (int j = pivot + 1; j < kUnknowns; ++j)
                a[i * kUnknowns + j] -= factor * a[pivot * kUnknowns + j];
            for (int c = 0; c < columns; ++c) right[i * columns + c] -= factor * right[pivot * columns + c];
        }
    }
}

/* The equations' constants and the known solution. */
struct Model {
    Matrix diffusion{};            /* N */
    std::array<Matrix, 3> base{};  /* B_d */
    std::array<Vector, 3> slope{}; /* w_d */

    Model() {
        for (int i = 0; i < kUnknowns; ++i)
            for (int j = 0; j < kUnknowns; ++j) {
                diffusion[i * kUnknowns + j] = i == j ? 1.0 + 0.1 * i : 0.2 / (1 + std::abs(i - j));
                for (int d = 0; d < 3; ++d) base[d][i * kUnknowns + j] = std::sin(1.0 + d + 2 * i + 3 * j);
            }
        for (int d = 0; d < 3; ++d)
            for (int j = 0; j < kUnknowns; ++j) slope[d][j] = std::cos(2.0 * d + j);
    }

    static double exact(int m, double x, double y, double z) {
        return 1 + 0.1 * m + 0.5 * std::sin(2 * x + m) * std::cos(3 * y - m) +
               0.3 * std::sin(4 * z + 0.5 * m) * (x + y);
    }

    static double stiffness(const double* u) { return 1 + 0.1 * u[0]; }

    /* a = over * s N + under * J_d */
    void block(Matrix& a, int direction, const double* u, double over, double under) const {
        double s = over * stiffness(u);
        const Matrix& b = base[direction];
        const Vector& w = slope[direction];
        for (int i = 0; i < kUnknowns; ++i)
            for (int j = 0; j < kUnknowns; ++j)
                a[i * kUnknowns + j] =
                    s * diffusion[i * kUnknowns + j] + under * (b[i * kUnknowns + j] + 0.1 * u[i] * w[j]);
    }

    /* The sum over directions in R. near: the six neighbours, below and above in x, y, z. */
    Vector differences(const double* u, const std::array<const double*, 6>& near, double h) const {
        Vector second, result{};
        for (int m = 0; m < kUnknowns; ++m) second[m] = -6 * u[m];
        for (int d = 0; d < 3; ++d) {
            Vector first;
            double along = 0;
            for (int m = 0; m < kUnknowns; ++m) {
                second[m] += near[2 * d][m] + near[2 * d + 1][m];
                first[m] = (near[2 * d + 1][m] - near[2 * d][m]) / (2 * h);
                along += slope[d][m] * first[m];
            }
            add_product(result, -1, base[d], first.data());
            for (int m = 0; m < kUnknowns; ++m) result[m] -= 0.1 * u[m] * along;
        }
        add_product(result, stiffness(u) / (h * h), diffusion, second.data());
        return result;
    }
};

/* This rank's box of the grid with one layer of neighbours' points (or of the boundary) around it: indices 0
 * and count + 1. x is the fastest index but for the five quantities. */
struct Box {
    int n, nx, ny, nz, first_x, first_y; /* first_x: the point of index 1 is first_x + 1 of 1 … n */
    int columns, rows, column, row;      /* of the grid of ranks: columns along x */
    int west, east, south, north;        /* MPI_PROC_NULL at the boundary */
    double h;

    Box(const kernel::Job& job, int points) : n(points), nz(points), h(1.0 / (points + 1)) {
        int sides[2] = {0, 0};
        MPI_Dims_create(job.ranks, 2, sides);
        rows = sides[0], columns = sides[1]; /* halves along y first: lines of x stay long */
        column = job.rank % columns, row = job.rank / columns;
        kernel::Block x = kernel::block(n, columns, column), y = kernel::block(n, rows, row);
        nx = x.count, first_x = x.first, ny = y.count, first_y = y.first;
        west = column > 0 ? job.rank - 1 : MPI_PROC_NULL;
        east = column + 1 < columns ? job.rank + 1 : MPI_PROC_NULL;
        south = row > 0 ? job.rank - columns : MPI_PROC_NULL;
        north = row + 1 < rows ? job.rank + columns : MPI_PROC_NULL;
    }

    bool fits() const { return columns <= n && rows <= n; }
    std::size_t stride_x() const { return kUnknowns; }
    std::size_t stride_y() const { return static_cast<std::size_t>(nx + 2) * kUnknowns; }
    std::size_t stride_z() const { return static_cast<std::size_t>(ny + 2) * stride_y(); }
    std::size_t size() const { return static_cast<std::size_t>(nz + 2) * stride_z(); }
    std::size_t at(int i, int j, int k) const {
        return static_cast<std::size_t>(k) * stride_z() + static_cast<std::size_t>(j) * stride_y() +
               static_cast<std::size_t>(i) * kUnknowns;
    }

    template <class Visit>
    void for_each(Visit visit) const {
        for (int k = 1; k <= nz; ++k)
            for (int j = 1; j <= ny; ++j)
                for (int i = 1; i <= nx; ++i) visit(i, j, k);
    }
};

/* The field, its right side f, and what steps have in common. */
class State {
  public:
    const Box box;
    const Model model;
    std::vector<double> u, step; /* step: R(u) times the time step, then what is added to u */

    State(kernel::Job& job, int points)
        : box(job, points), u(box.size()), step(box.size()), job_(job), f_(box.size()) {
        exact_ = u;
        for (int k = 0; k <= box.nz + 1; ++k)
            for (int j = 0; j <= box.ny + 1; ++j)
                for (int i = 0; i <= box.nx + 1; ++i)
                    for (int m = 0; m < kUnknowns; ++m)
                        exact_[box.at(i, j, k) + static_cast<std::size_t>(m)] =
                            Model::exact(m, (box.first_x + i) * box.h, (box.first_y + j) * box.h, k * box.h);
        box.for_each([&](int i, int j, int k) {
            Vector d = differences(exact_, i, j, k);
            for (std::size_t m = 0; m < kUnknowns; ++m) f_[box.at(i, j, k) + m] = -d[m];
        });
    }

    /* The solution on the boundary; inside it is off by what is zero on the boundary. */
    void begin() {
        u = exact_;
        box.for_each([&](int i, int j, int k) {
            double x = (box.first_x + i) * box.h, y = (box.first_y + j) * box.h, z = k * box.h;
            double bubble = 64 * x * (1 - x) * y * (1 - y) * z * (1 - z);
            for (int m = 0; m < kUnknowns; ++m)
                u[box.at(i, j, k) + static_cast<std::size_t>(m)] += bubble * std::cos(3 * x + 5 * y * z + m);
        });
    }

    /* step = factor * R(u); exchanges the layers around the box first. */
    void residual(double factor) {
        exchange_layers();
        box.for_each([&](int i, int j, int k) {
            Vector d = differences(u, i, j, k);
            for (std::size_t m = 0; m < kUnknowns; ++m)
                step[box.at(i, j, k) + m] = factor * (d[m] + f_[box.at(i, j, k) + m]);
        });
    }

    void add_step() {
        box.for_each([&](int i, int j, int k) {
            for (std::size_t m = 0; m < kUnknowns; ++m) u[box.at(i, j, k) + m] += step[box.at(i, j, k) + m];
        });
    }

    /* Root mean squares over all points and quantities. */
    double error() const {
        return mean([&](std::size_t at) { return u[at] - exact_[at]; });
    }
    double step_size() const {
        return mean([&](std::size_t at) { return step[at]; });
    }

  private:
    kernel::Job& job_;
    std::vector<double> f_, exact_, out_[4], in_[4];

    Vector differences(const std::vector<double>& field, int i, int j, int k) const {
        const double* p = &field[box.at(i, j, k)];
        return model.differences(p,
                                 {p - box.stride_x(), p + box.stride_x(), p - box.stride_y(),
                                  p + box.stride_y(), p - box.stride_z(), p + box.stride_z()},
                                 box.h);
    }

    template <class Value>
    double mean(Value value) const {
        double sum = 0;
        box.for_each([&](int i, int j, int k) {
            for (std::size_t m = 0; m < kUnknowns; ++m) {
                double v = value(box.at(i, j, k) + m);
                sum += v * v;
            }
        });
        return std::sqrt(job_.sum(sum) / (double(box.n) * box.n * box.n * kUnknowns));
    }

    /* Visits the face of the box, or the layer beyond it, towards side 0 … 3: west, east, south, north. */
    template <class Visit>
    void for_face(int side, bool beyond, Visit visit) {
        bool along_x = side < 2;
        int last = along_x ? box.nx : box.ny,
            fixed = side % 2 == 0 ? (beyond ? 0 : 1) : (beyond ? last + 1 : last);
        for (int k = 1; k <= box.nz; ++k)
            for (int free = 1; free <= (along_x ? box.ny : box.nx); ++free)
                visit(along_x ? box.at(fixed, free, k) : box.at(free, fixed, k));
    }

    void exchange_layers() {
        const int peers[4] = {box.west, box.east, box.south, box.north};
        MPI_Request requests[8];
        for (int side = 0; side < 4; ++side) {
            std::size_t length = static_cast<std::size_t>((side < 2 ? box.ny : box.nx) * box.nz) * kUnknowns;
            in_[side].resize(length), out_[side].clear();
            MPI_Irecv(in_[side].data(), static_cast<int>(length), MPI_DOUBLE, peers[side], 10 + (side ^ 1),
                      MPI_COMM_WORLD, &requests[side]);
        }
        for (int side = 0; side < 4; ++side) {
            if (peers[side] != MPI_PROC_NULL)
                for_face(side, false, [&](std::size_t at) {
                    out_[side].insert(out_[side].end(), &u[at], &u[at] + kUnknowns);
                });
            job_.sent(out_[side].size() * sizeof(double));
            MPI_Isend(out_[side].data(), static_cast<int>(out_[side].size()), MPI_DOUBLE, peers[side],
                      10 + side, MPI_COMM_WORLD, &requests[4 + side]);
        }
        MPI_Waitall(8, requests, MPI_STATUSES_IGNORE);
        for (int side = 0; side < 4; ++side) {
            if (peers[side] == MPI_PROC_NULL) continue;
            const double* from = in_[side].data();
            for_face(side, true,
                     [&](std::size_t at) { std::copy_n(from, kUnknowns, &u[at]), from += kUnknowns; });
        }
    }
};

}  // namespace flow
