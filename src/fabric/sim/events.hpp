// Future events in virtual time, in their order.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "fabric/sim/mix.hpp"

namespace mpisec::fabric::sim {

class Events {
  public:
    explicit Events(std::uint64_t seed) : seed_(seed) {}

    /// What one rank schedules for the same time happens in the order of scheduling, so that its messages do not overtake each other;
    /// between ranks the seed decides the order.
    void schedule(double at, int rank, std::function<void()> action) {
        const std::uint64_t turn =
            mix(seed_ ^ mix(static_cast<std::uint64_t>(rank) ^ std::bit_cast<std::uint64_t>(at)));
        heap_.push_back({at, turn, ++scheduled_, std::move(action)});
        std::push_heap(heap_.begin(), heap_.end());
    }
    bool empty() const { return heap_.empty(); }
    void run_next() {
        std::pop_heap(heap_.begin(), heap_.end());
        const std::function<void()> action = std::move(heap_.back().action);
        heap_.pop_back();
        action();
    }

  private:
    struct Event {
        double at;
        std::uint64_t turn, number;
        std::function<void()> action;
        bool operator<(const Event& other) const {  // heaps have their largest in front
            if (at != other.at) return at > other.at;
            return turn != other.turn ? turn > other.turn : number > other.number;
        }
    };
    std::vector<Event> heap_;
    std::uint64_t seed_, scheduled_ = 0;
};

}  // namespace mpisec::fabric::sim
