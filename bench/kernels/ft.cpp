/* ft: the diffusion equation on a periodic box by a three-dimensional FFT; the communication of NPB's FT
 * (RNR-94-007, 2.3) with slabs: one all-to-all of the whole field for each transform, and a reduction of a
 * checksum. Any number of ranks up to the number of planes; where it divides them the exchange is
 * MPI_Alltoall, else MPI_Alltoallv.
 *
 * The field is transformed once, then in each iteration its spectrum is brought one step on in time and
 * transformed back. It begins as a product of three random functions of one coordinate each, and stays one:
 * so all its values are known at any time, while its spectrum is dense. In each iteration the values at 1024
 * places and the field's energy must be right, and after the last one all values. */
#include "kernel.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

namespace {

struct Size {
    char letter;
    int nx, ny, nz; /* powers of two, 8 and more */
    int iterations;
};
constexpr std::array<Size, 4> kSizes{
    {{'S', 64, 64, 64, 150}, {'W', 128, 128, 32, 250}, {'A', 256, 128, 64, 200}, {'B', 256, 256, 128, 200}}};
constexpr double kAlpha = 1e-7;
constexpr int kPlaces = 1024;
constexpr int kLanes = 4; /* pencils that are transformed together: two arrays of 256 of them fill 32 KiB */
using Complex = std::complex<double>;
using Field = std::vector<Complex>;

/* One-dimensional transforms of kLanes pencils at a time (Stockham's radix-2 algorithm, in order without
 * reversal). */
class Pencils {
  public:
    explicit Pencils(int length)
        : length_(static_cast<std::size_t>(length)), cosine_(length_), sine_(length_) {
        for (std::size_t i = 0; i < length_; ++i) {
            double angle = 2 * std::numbers::pi * static_cast<double>(i) / length;
            cosine_[i] = std::cos(angle), sine_[i] = std::sin(angle);
        }
        for (auto* buffer : {&re_, &im_, &re2_, &im2_}) buffer->resize(length_ * kLanes);
    }

    /* Pencil p's element i is at data[i * along + p * across]. direction: -1 forward, 1 back; nothing is
     * scaled. */
    void transform(Complex* data, std::size_t along, std::size_t across, int direction) {
        for (std::size_t i = 0; i < length_; ++i)
            for (std::size_t p = 0; p < kLanes; ++p) {
                Complex value = data[i * along + p * across];
                re_[i * kLanes + p] = value.real(), im_[i * kLanes + p] = value.imag();
            }
        for (std::size_t half = length_ / 2, stride = 1; half > 0; half /= 2, stride *= 2) {
            stage(half, stride, direction);
            std::swap(re_, re2_), std::swap(im_, im2_);
        }
        for (std::size_t i = 0; i < length_; ++i)
            for (std::size_t p = 0; p < kLanes; ++p)
                data[i * along + p * across] = {re_[i * kLanes + p], im_[i * kLanes + p]};
    }

  private:
    std::size_t length_;
    std::vector<double> cosine_, sine_, re_, im_, re2_, im2_;

    void stage(std::size_t half, std::size_t stride, int direction) {
        std::size_t run = stride * kLanes;
        for (std::size_t j = 0; j < half; ++j) {
            double c = cosine_[j * stride], s = direction * sine_[j * stride];
            const double *ar = &re_[j * run], *ai = &im_[j * run];
            const double *br = &re_[(j + half) * run], *bi = &im_[(j + half) * run];
            double* __restrict outr = &re2_[2 * j * run];
            double* __restrict outi = &im2_[2 * j * run];
            for (std::size_t k = 0; k < run; ++k) {
                double dr = ar[k] - br[k], di = ai[k] - bi[k];
                outr[k] = ar[k] + br[k], outi[k] = ai[k] + bi[k];
                outr[k + run] = c * dr - s * di, outi[k + run] = c * di + s * dr;
            }
        }
    }
};

/* A wave number from an index of the transform: those above half are negative. */
int wave_number(int index, int n) {
    return index > n / 2 ? index - n : index;
}

double fading(int kx, int ky, int kz) {
    return 4 * kAlpha * std::numbers::pi * std::numbers::pi *
           (double(kx) * kx + double(ky) * ky + double(kz) * kz);
}

/* One factor of the field: a function of one coordinate, random at time 0, at all times. It is brought on in
 * time by plain sums over wave numbers, on every rank alike, without the transforms that are measured. */
class Factor {
  public:
    Factor(int n, std::uint64_t seed, int times) : n_(static_cast<std::size_t>(n)) {
        Field begin(n_), spectrum(n_);
        for (std::size_t i = 0; i < n_; ++i)
            begin[i] = {2 * kernel::uniform(seed + 2 * i) - 1, 2 * kernel::uniform(seed + 2 * i + 1) - 1};
        for (std::size_t i = 0; i < n_; ++i)
            turns_.push_back(std::polar(1.0, 2 * std::numbers::pi * double(i) / n));
        for (std::size_t k = 0; k < n_; ++k)
            for (std::size_t i = 0; i < n_; ++i)
                spectrum[k] += begin[i] * std::conj(turns_[k * i % n_]) / double(n);
        for (int time = 0; time <= times; ++time) add(spectrum, time);
    }

    Complex at(int i, int time) const {
        return values_[static_cast<std::size_t>(time) * n_ + static_cast<std::size_t>(i)];
    }

    double energy(int time) const {
        double sum = 0;
        for (std::size_t i = 0; i < n_; ++i) sum += std::norm(at(static_cast<int>(i), time));
        return sum;
    }

  private:
    std::size_t n_;
    Field turns_, values_; /* [time][i] */

    void add(const Field& spectrum, int time) {
        Field faded(n_);
        for (std::size_t k = 0; k < n_; ++k)
            faded[k] = spectrum[k] *
                       std::exp(-fading(wave_number(static_cast<int>(k), static_cast<int>(n_)), 0, 0) * time);
        for (std::size_t i = 0; i < n_; ++i) {
            Complex sum = 0;
            for (std::size_t k = 0; k < n_; ++k) sum += faded[k] * turns_[k * i % n_];
            values_.push_back(sum);
        }
    }
};

class Diffusion {
  public:
    Diffusion(kernel::Job& job, const Size& size)
        : job_(job),
          size_(size),
          along_x_(size.nx),
          along_y_(size.ny),
          along_z_(size.nz),
          of_x_(size.nx, 1u << 20, size.iterations),
          of_y_(size.ny, 2u << 20, size.iterations),
          of_z_(size.nz, 3u << 20, size.iterations) {
        plan();
        for (int x = 0; x < size.nx; ++x) fade_x_.push_back(std::exp(-fading(wave_number(x, size.nx), 0, 0)));
        for (int y = 0; y < size.ny; ++y) fade_y_.push_back(std::exp(-fading(0, wave_number(y, size.ny), 0)));
        for (int z = 0; z < size.nz; ++z) fade_z_.push_back(std::exp(-fading(0, 0, wave_number(z, size.nz))));
        choose_places();
    }

    /* The field at time 0. */
    void fill() {
        for (int z = 0; z < slab_.count; ++z)
            for (int y = 0; y < size_.ny; ++y)
                for (int x = 0; x < size_.nx; ++x) field_[at(x, y, z)] = exact(x, y, slab_.first + z, 0);
        time_ = 0;
    }

    void forward() {
        for_planes(-1);
        pack();
        exchange(work_, send_counts_, send_at_, spectrum_, counts_, at_);
        for_columns(spectrum_, -1);
    }

    /* One step in time, of the spectrum; then the field. */
    void iterate() {
        evolve();
        for_columns(work_, 1);
        exchange(work_, counts_, at_, field_, send_counts_, send_at_);
        unpack();
        for_planes(1);
        ++time_;
        look();
    }

    /* Of all iterations, relative. */
    double worst_place() const { return worst_place_; }
    double worst_energy() const { return worst_energy_; }

    /* The largest error of this rank's values. */
    double largest_error() const {
        double worst = 0;
        for (int z = 0; z < slab_.count; ++z)
            for (int y = 0; y < size_.ny; ++y)
                for (int x = 0; x < size_.nx; ++x) {
                    double off = std::abs(exact(x, y, slab_.first + z, time_) - field_[at(x, y, z)]);
                    if (!(off <= worst)) worst = off;
                }
        return worst;
    }

  private:
    struct Place {
        int x, y, z;
    };

    kernel::Job& job_;
    Size size_;
    Pencils along_x_, along_y_, along_z_;
    Factor of_x_, of_y_, of_z_;
    kernel::Block slab_{}, lines_{}; /* planes of z of the field, lines of y of the spectrum */
    std::vector<int> send_counts_, send_at_, counts_, at_; /* of the way there; the way back swaps them */
    bool even_ = false;
    Field field_;    /* [z of slab_][y][x] */
    Field spectrum_; /* [z][y of lines_][x]: blocks arrive in the order of ranks, which is that of z: no
                        unpacking */
    Field work_;
    std::vector<double> fade_x_, fade_y_, fade_z_; /* a step's factor is the product of three */
    std::vector<Place> places_;
    int time_ = 0;
    double worst_place_ = 0, worst_energy_ = 0;

    std::size_t nx() const { return static_cast<std::size_t>(size_.nx); }
    std::size_t ny() const { return static_cast<std::size_t>(size_.ny); }
    std::size_t at(int x, int y, int z) const {
        return (static_cast<std::size_t>(z) * ny() + static_cast<std::size_t>(y)) * nx() +
               static_cast<std::size_t>(x);
    }
    Complex exact(int x, int y, int z, int time) const {
        return of_x_.at(x, time) * of_y_.at(y, time) * of_z_.at(z, time);
    }
    kernel::Block lines_of(int rank) const { return kernel::block(size_.ny, job_.ranks, rank); }

    void plan() {
        slab_ = kernel::block(size_.nz, job_.ranks, job_.rank), lines_ = lines_of(job_.rank);
        even_ = size_.nz % job_.ranks == 0 && size_.ny % job_.ranks == 0;
        int sent = 0, got = 0;
        for (int other = 0; other < job_.ranks; ++other) {
            send_counts_.push_back(slab_.count * lines_of(other).count * size_.nx);
            counts_.push_back(kernel::block(size_.nz, job_.ranks, other).count * lines_.count * size_.nx);
            send_at_.push_back(sent), at_.push_back(got);
            sent += send_counts_.back(), got += counts_.back();
        }
        field_.resize(static_cast<std::size_t>(std::max(sent, got)));
        spectrum_.resize(static_cast<std::size_t>(got)), work_.resize(field_.size());
    }

    void choose_places() {
        for (int j = 1; j <= kPlaces; ++j) { /* as NPB's checksum: spread by different strides */
            int x = j % size_.nx, y = 3 * j % size_.ny, z = 5 * j % size_.nz;
            if (z >= slab_.first && z < slab_.first + slab_.count) places_.push_back({x, y, z});
        }
    }

    void for_planes(int direction) {
        for (int z = 0; z < slab_.count; ++z) {
            for (int y = 0; y < size_.ny; y += kLanes)
                along_x_.transform(&field_[at(0, y, z)], 1, nx(), direction);
            for (int x = 0; x < size_.nx; x += kLanes)
                along_y_.transform(&field_[at(x, 0, z)], nx(), 1, direction);
        }
    }

    void for_columns(Field& data, int direction) {
        std::size_t plane = static_cast<std::size_t>(lines_.count) * nx();
        for (std::size_t i = 0; i < plane; i += kLanes) along_z_.transform(&data[i], plane, 1, direction);
    }

    /* The lines of y of one plane that go to `rank` lie together, in the field and in the block. */
    template <class Copy>
    void for_each_run(Copy copy) {
        for (int rank = 0; rank < job_.ranks; ++rank) {
            kernel::Block lines = lines_of(rank);
            std::size_t run = static_cast<std::size_t>(lines.count) * nx();
            auto block = static_cast<std::size_t>(send_at_[static_cast<std::size_t>(rank)]);
            for (int z = 0; z < slab_.count; ++z, block += run) copy(at(0, lines.first, z), block, run);
        }
    }

    void pack() {
        for_each_run([&](std::size_t in_field, std::size_t in_block, std::size_t run) {
            std::copy_n(&field_[in_field], run, &work_[in_block]);
        });
    }

    void unpack() {
        for_each_run([&](std::size_t in_field, std::size_t in_block, std::size_t run) {
            std::copy_n(&field_[in_block], run, &work_[in_field]);
        });
        std::swap(field_, work_);
    }

    void exchange(const Field& out, const std::vector<int>& out_counts, const std::vector<int>& out_at,
                  Field& in, const std::vector<int>& in_counts, const std::vector<int>& in_at) {
        auto own = static_cast<std::size_t>(out_counts[static_cast<std::size_t>(job_.rank)]);
        auto all = static_cast<std::size_t>(out_at.back() + out_counts.back());
        job_.sent((all - own) * sizeof(Complex));
        if (even_)
            MPI_Alltoall(out.data(), out_counts[0], MPI_C_DOUBLE_COMPLEX, in.data(), in_counts[0],
                         MPI_C_DOUBLE_COMPLEX, MPI_COMM_WORLD);
        else
            MPI_Alltoallv(out.data(), out_counts.data(), out_at.data(), MPI_C_DOUBLE_COMPLEX, in.data(),
                          in_counts.data(), in_at.data(), MPI_C_DOUBLE_COMPLEX, MPI_COMM_WORLD);
    }

    /* work_ gets the spectrum one step later, over the number of points: transforms there and back multiply
     * by it. */
    void evolve() {
        double scale = 1 / (double(size_.nx) * size_.ny * size_.nz);
        std::size_t i = 0;
        for (double fade_z : fade_z_)
            for (int y = 0; y < lines_.count; ++y) {
                double fade = fade_z * fade_y_[static_cast<std::size_t>(lines_.first + y)];
                for (std::size_t x = 0; x < nx(); ++x, ++i) {
                    spectrum_[i] *= fade * fade_x_[x];
                    work_[i] = scale * spectrum_[i];
                }
            }
    }

    void look() {
        double mine[2] = {0, 0}, all[2]; /* squares of errors at the places, energy */
        for (auto [x, y, z] : places_)
            mine[0] += std::norm(exact(x, y, z, time_) - field_[at(x, y, z - slab_.first)]);
        std::size_t count = at(0, 0, slab_.count);
        for (std::size_t i = 0; i < count; ++i) mine[1] += std::norm(field_[i]);
        MPI_Allreduce(mine, all, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        double expected = of_x_.energy(time_) * of_y_.energy(time_) * of_z_.energy(time_);
        double place = std::sqrt(all[0] / kPlaces), energy = std::abs(all[1] / expected - 1);
        if (!(place <= worst_place_)) worst_place_ = place;
        if (!(energy <= worst_energy_)) worst_energy_ = energy;
    }
};

}  // namespace

int main(int argc, char** argv) {
    const Size& size = kernel::choose(argc, argv, "ft", kSizes);
    kernel::Job job(argc, argv, "ft", size.letter);
    if (job.ranks > size.nz || job.ranks > size.ny)
        return job.refuse("there are fewer planes than ranks: at most " +
                          std::to_string(std::min(size.nz, size.ny)));
    Diffusion diffusion(job, size);
    diffusion.fill();
    diffusion.forward();
    diffusion.iterate();
    diffusion.fill();
    job.start();
    diffusion.forward();
    for (int iteration = 0; iteration < size.iterations; ++iteration) diffusion.iterate();
    job.stop();
    std::string wrong =
        kernel::check_below("the largest error at 1024 places", diffusion.worst_place(), 1e-10);
    if (wrong.empty())
        wrong =
            kernel::check_below("the largest relative error of the energy", diffusion.worst_energy(), 1e-11);
    if (wrong.empty())
        wrong = kernel::check_below("the largest error of the last field", diffusion.largest_error(), 1e-10);
    return job.finish(size.iterations, wrong);
}
