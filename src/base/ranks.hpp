// Some ranks in an order: either a list that somebody keeps, or every `step`-th number, which nobody has to keep.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <iterator>
#include <utility>
#include <vector>

namespace mpisec {

/// A view: it must not outlive the list that it is of. To be passed by value.
class Ranks {
  public:
    Ranks() = default;
    Ranks(const std::vector<int>& list) : list_(list.data()), size_(static_cast<int>(list.size())) {}
    /// The numbers first, first + step, …: `size` of them.
    static Ranks every(int step, int first, int size) { return {first, step, size}; }
    static Ranks one(int rank) { return {rank, 0, 1}; }

    std::size_t size() const { return static_cast<std::size_t>(size_); }
    bool empty() const { return size_ == 0; }
    int operator[](std::size_t index) const {
        return list_ ? list_[index] : first_ + step_ * static_cast<int>(index);
    }
    int front() const { return (*this)[0]; }
    int back() const { return (*this)[size() - 1]; }
    std::vector<int> list() const { return {begin(), end()}; }

    class Iterator {
      public:
        using iterator_category = std::random_access_iterator_tag;
        using value_type = int;
        using difference_type = std::ptrdiff_t;
        using pointer = const int*;
        using reference = int;

        Iterator() = default;
        int operator*() const { return at(index_); }
        int operator[](difference_type n) const { return at(index_ + n); }
        Iterator& operator++() { return *this += 1; }
        Iterator& operator--() { return *this += -1; }
        Iterator operator++(int) { return std::exchange(*this, *this + 1); }
        Iterator operator--(int) { return std::exchange(*this, *this + -1); }
        Iterator& operator+=(difference_type n) {
            index_ += n;
            return *this;
        }
        Iterator& operator-=(difference_type n) { return *this += -n; }
        friend Iterator operator+(Iterator it, difference_type n) { return it += n; }
        friend Iterator operator+(difference_type n, Iterator it) { return it += n; }
        friend Iterator operator-(Iterator it, difference_type n) { return it -= n; }
        friend difference_type operator-(const Iterator& a, const Iterator& b) { return a.index_ - b.index_; }
        friend bool operator==(const Iterator& a, const Iterator& b) { return a.index_ == b.index_; }
        friend auto operator<=>(const Iterator& a, const Iterator& b) { return a.index_ <=> b.index_; }

      private:
        friend class Ranks;
        Iterator(const int* list, int first, int step, difference_type index)
            : list_(list), first_(first), step_(step), index_(index) {}
        int at(difference_type n) const { return list_ ? list_[n] : first_ + step_ * static_cast<int>(n); }

        const int* list_ = nullptr;
        int first_ = 0, step_ = 0;
        difference_type index_ = 0;
    };
    Iterator begin() const { return {list_, first_, step_, 0}; }
    Iterator end() const { return {list_, first_, step_, size_}; }
    friend bool operator==(Ranks a, Ranks b) {
        return a.size_ == b.size_ && std::equal(a.begin(), a.end(), b.begin());
    }

  private:
    Ranks(int first, int step, int size) : first_(first), step_(step), size_(size) {}

    const int* list_ = nullptr;  ///< null: they are computed
    int first_ = 0, step_ = 0, size_ = 0;
};

}  // namespace mpisec
