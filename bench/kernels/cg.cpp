/* cg: conjugate gradients on a sparse matrix with a random pattern; the communication of NPB's CG
 * (RNR-94-007, 2.3).
 *
 * Ranks form a grid of rows × columns, each with one block of the matrix. A product with the matrix: the
 * vector's parts are exchanged with the transposed rank, collected down the grid's columns, multiplied, and
 * partial sums are exchanged along its rows: messages of tens to hundreds of kilobytes. Dot products are
 * reductions of 8 bytes. Any number of ranks.
 *
 * The matrix is S L S + I, where L is the Laplacian of a random graph with weights and S diagonal: symmetric,
 * positive definite, well conditioned. Right sides are multiples of A u for a u that is known; each rank
 * works its part of A u out from the list of edges, without the product that is measured. An iteration is a
 * solution with 25 steps; after each the true residual and the error are looked at. */
#include "kernel.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace {

struct Size {
    char letter;
    int n, edges; /* unknowns, edges that each begins (a row has twice as many entries) */
    int iterations;
};
constexpr std::array<Size, 4> kSizes{
    {{'S', 14000, 30, 40}, {'W', 14000, 60, 80}, {'A', 30000, 70, 80}, {'B', 75000, 70, 150}}};
constexpr int kSteps = 25;
using Vector = std::vector<double>;

struct Edge {
    int from, to;
    double weight;
};

Edge edge(const Size& size, int from, int which) {
    std::uint64_t id =
        kernel::mix(static_cast<std::uint64_t>(from) * 1024 + static_cast<std::uint64_t>(which));
    int to = static_cast<int>((id >> 32) * static_cast<std::uint64_t>(size.n) >> 32);
    return {from, to, 0.5 + kernel::uniform(id)};
}

template <class Visit>
void for_each_edge(const Size& size, Visit visit) {
    for (int from = 0; from < size.n; ++from)
        for (int which = 0; which < size.edges; ++which) {
            Edge e = edge(size, from, which);
            if (e.from != e.to) visit(e.from, e.to, e.weight), visit(e.to, e.from, e.weight);
        }
}

double scale(int i) {
    return 0.7 + 0.3 * kernel::uniform(0x5CA1Eu + (static_cast<std::uint64_t>(i) << 20));
}
double solution(int i) {
    return 2 * kernel::uniform(0x501u + (static_cast<std::uint64_t>(i) << 20)) - 1;
}

/* Where this rank is in the grid, and which parts of vectors it has when. Rank r owns part r of every vector.
 * The parts of one grid row's ranks, and those of one grid column's after the transposition, lie side by
 * side. */
struct Grid {
    int rows, columns, row, column;
    int source,
        target; /* of the transposition: this rank gets part `source`, rank `target` gets this one's */

    explicit Grid(const kernel::Job& job) {
        int sides[2] = {0, 0};
        MPI_Dims_create(job.ranks, 2, sides); /* the longer first */
        columns = sides[0], rows = sides[1];
        row = job.rank / columns, column = job.rank % columns;
        source = column * rows + row;
        target = (job.rank % rows) * columns + job.rank / rows;
    }
};

class Matrix {
  public:
    Matrix(kernel::Job& job, const Size& size) : job_(job), size_(size), grid_(job) {
        rows_ = {part(grid_.row * grid_.columns).first, 0};
        columns_ = {part(grid_.column * grid_.rows).first, 0};
        for (int i = 0; i < grid_.columns; ++i) rows_.count += part(grid_.row * grid_.columns + i).count;
        for (int i = 0; i < grid_.rows; ++i) columns_.count += part(grid_.column * grid_.rows + i).count;
        fill();
        whole_.resize(static_cast<std::size_t>(columns_.count));
        partial_.resize(static_cast<std::size_t>(rows_.count));
        arrived_.resize(static_cast<std::size_t>(mine().count) * static_cast<std::size_t>(grid_.columns));
    }

    kernel::Block part(int which) const { return kernel::block(size_.n, job_.ranks, which); }
    kernel::Block mine() const { return part(job_.rank); }

    /* y = A x, this rank's parts of both. */
    void multiply(const Vector& x, Vector& y) {
        transpose(x);
        collect_column();
        multiply_block();
        sum_row(y);
    }

  private:
    kernel::Job& job_;
    Size size_;
    Grid grid_;
    kernel::Block rows_{}, columns_{};
    std::vector<int> start_, at_;
    Vector value_, whole_, partial_, arrived_;
    std::vector<MPI_Request> requests_;

    static bool inside(kernel::Block block, int i) {
        return i >= block.first && i < block.first + block.count;
    }

    void fill() {
        auto count = static_cast<std::size_t>(rows_.count);
        start_.assign(count + 1, 0);
        Vector degree(count, 0.0);
        for (std::size_t i = 0; i < count; ++i) /* the diagonal */
            start_[i + 1] = inside(columns_, rows_.first + static_cast<int>(i)) ? 1 : 0;
        for_each_edge(size_, [&](int i, int j, double weight) {
            if (!inside(rows_, i)) return;
            auto row = static_cast<std::size_t>(i - rows_.first);
            degree[row] += weight;
            if (inside(columns_, j)) ++start_[row + 1];
        });
        for (std::size_t i = 0; i < count; ++i) start_[i + 1] += start_[i];
        at_.assign(static_cast<std::size_t>(start_[count]), 0);
        value_.assign(at_.size(), 0.0);
        std::vector<int> next(start_);
        auto add = [&](int i, int j, double value) {
            if (!inside(rows_, i) || !inside(columns_, j)) return;
            auto slot = static_cast<std::size_t>(next[static_cast<std::size_t>(i - rows_.first)]++);
            at_[slot] = j - columns_.first, value_[slot] = value;
        };
        for (int i = rows_.first; i < rows_.first + rows_.count; ++i)
            add(i, i, 1 + scale(i) * scale(i) * degree[static_cast<std::size_t>(i - rows_.first)]);
        for_each_edge(size_, [&](int i, int j, double weight) { add(i, j, -weight * scale(i) * scale(j)); });
    }

    void send(const double* data, int count, int to) {
        requests_.emplace_back();
        MPI_Isend(data, count, MPI_DOUBLE, to, 0, MPI_COMM_WORLD, &requests_.back());
        if (to != job_.rank) job_.sent(static_cast<std::size_t>(count) * sizeof(double));
    }

    void receive(double* data, int count, int from) {
        requests_.emplace_back();
        MPI_Irecv(data, count, MPI_DOUBLE, from, 0, MPI_COMM_WORLD, &requests_.back());
    }

    void wait() {
        MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
        requests_.clear();
    }

    /* The place of a part in what this grid column multiplies with. */
    double* in_whole(int which) { return whole_.data() + (part(which).first - columns_.first); }

    void transpose(const Vector& x) {
        if (grid_.source == job_.rank) {
            std::copy(x.begin(), x.end(), in_whole(job_.rank));
            return;
        }
        receive(in_whole(grid_.source), part(grid_.source).count, grid_.source);
        send(x.data(), mine().count, grid_.target);
        wait();
    }

    void collect_column() {
        for (int other = 0; other < grid_.rows; ++other) {
            if (other == grid_.row) continue;
            int rank = other * grid_.columns + grid_.column, theirs = grid_.column * grid_.rows + other;
            receive(in_whole(theirs), part(theirs).count, rank);
            send(in_whole(grid_.source), part(grid_.source).count, rank);
        }
        wait();
    }

    void multiply_block() {
        for (std::size_t row = 0; row < partial_.size(); ++row) {
            double sum = 0;
            for (int slot = start_[row]; slot < start_[row + 1]; ++slot)
                sum += value_[static_cast<std::size_t>(slot)] *
                       whole_[static_cast<std::size_t>(at_[static_cast<std::size_t>(slot)])];
            partial_[row] = sum;
        }
    }

    void sum_row(Vector& y) {
        int base = grid_.row * grid_.columns, count = mine().count;
        auto arrived = [&](int column) {
            return arrived_.data() + static_cast<std::ptrdiff_t>(column) * count;
        };
        auto own = [&](int which) { return partial_.data() + (part(which).first - rows_.first); };
        for (int column = 0; column < grid_.columns; ++column) {
            if (column == grid_.column) continue;
            receive(arrived(column), count, base + column);
            send(own(base + column), part(base + column).count, base + column);
        }
        wait();
        y.assign(own(job_.rank), own(job_.rank) + count);
        for (int column = 0; column < grid_.columns; ++column) {
            if (column == grid_.column) continue;
            for (int i = 0; i < count; ++i) y[static_cast<std::size_t>(i)] += arrived(column)[i];
        }
    }
};

double dot(const kernel::Job& job, const Vector& a, const Vector& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return job.sum(sum);
}

/* This rank's part of A u, from the edges alone. */
Vector right_side(const Size& size, kernel::Block mine) {
    Vector u(static_cast<std::size_t>(size.n)), b(static_cast<std::size_t>(mine.count));
    for (int i = 0; i < size.n; ++i) u[static_cast<std::size_t>(i)] = solution(i);
    auto at = [&](int i) { return u[static_cast<std::size_t>(i)]; };
    for (int i = 0; i < mine.count; ++i) b[static_cast<std::size_t>(i)] = at(mine.first + i);
    for_each_edge(size, [&](int i, int j, double weight) {
        if (i < mine.first || i >= mine.first + mine.count) return;
        b[static_cast<std::size_t>(i - mine.first)] +=
            weight * scale(i) * (scale(i) * at(i) - scale(j) * at(j));
    });
    return b;
}

/* kSteps of the method from nothing; the rest of the right side as the recurrence has it is not kept. */
void solve(const kernel::Job& job, Matrix& matrix, const Vector& b, Vector& z) {
    Vector r(b), p(b), q;
    std::fill(z.begin(), z.end(), 0.0);
    double rho = dot(job, r, r);
    for (int step = 0; step < kSteps; ++step) {
        matrix.multiply(p, q);
        double alpha = rho / dot(job, p, q);
        for (std::size_t i = 0; i < z.size(); ++i) z[i] += alpha * p[i], r[i] -= alpha * q[i];
        double before = rho;
        rho = dot(job, r, r);
        double beta = rho / before;
        for (std::size_t i = 0; i < p.size(); ++i) p[i] = r[i] + beta * p[i];
    }
}

struct Worst {
    double residual = 0, error = 0; /* relative, of all iterations; a NaN stays */
};

void look(const kernel::Job& job, Matrix& matrix, const Vector& b, const Vector& z, double factor,
          Worst& worst) {
    Vector rest;
    matrix.multiply(z, rest);
    double error = 0;
    int first = matrix.mine().first;
    for (std::size_t i = 0; i < z.size(); ++i) {
        rest[i] -= b[i];
        double off = z[i] / factor - solution(first + static_cast<int>(i));
        error += off * off;
    }
    double residual = std::sqrt(dot(job, rest, rest) / dot(job, b, b));
    error = std::sqrt(job.sum(error));
    if (!(residual <= worst.residual)) worst.residual = residual;
    if (!(error <= worst.error)) worst.error = error;
}

}  // namespace

int main(int argc, char** argv) {
    const Size& size = kernel::choose(argc, argv, "cg", kSizes);
    kernel::Job job(argc, argv, "cg", size.letter);
    Matrix matrix(job, size);
    Vector unit = right_side(size, matrix.mine()), b(unit), z(unit.size());
    Worst worst;
    for (int iteration = 0; iteration <= size.iterations; ++iteration) {
        if (iteration == 1) job.start();
        double factor = 1 + 0.25 * iteration;
        for (std::size_t i = 0; i < b.size(); ++i) b[i] = factor * unit[i];
        solve(job, matrix, b, z);
        look(job, matrix, b, z, factor, worst);
    }
    job.stop();
    std::string wrong = kernel::check_below("the largest relative residual", worst.residual, 1e-10);
    if (wrong.empty()) wrong = kernel::check_below("the largest error", worst.error, 1e-8);
    return job.finish(size.iterations, wrong);
}
