#include "coll/patterns/spread.hpp"

#include <algorithm>
#include <numeric>

namespace mpisec::coll {
namespace {

using fabric::CiphertextBuffer;
using fabric::Fabric;
using fabric::Pending;
using fabric::PlaintextBuffer;
using fabric::Task;

Pending send(Fabric& fabric, int to, CiphertextBuffer bytes) {
    return fabric.send(to, bytes);
}
Pending send(Fabric& fabric, int to, PlaintextBuffer bytes) {
    return fabric.send_here(to, bytes);
}
Pending receive(Fabric& fabric, int from, CiphertextBuffer room) {
    return fabric.receive(from, room);
}
Pending receive(Fabric& fabric, int from, PlaintextBuffer room) {
    return fabric.receive_here(from, room);
}
CiphertextBuffer part(CiphertextBuffer room, std::size_t offset, std::size_t n) {
    return room.part(offset, n);
}
PlaintextBuffer part(PlaintextBuffer room, std::size_t offset, std::size_t n) {
    return room.subspan(offset, n);
}

/// offset[k]: where the contribution k steps away (in direction `step`) from the caller begins.
std::vector<std::size_t> offsets(const Group& group, int step) {
    std::vector<std::size_t> offset{0};
    for (int k = 0; k < group.size(); ++k)
        offset.push_back(offset.back() +
                         group.bytes[static_cast<std::size_t>(group.wrap(group.me + step * k))]);
    return offset;
}

template <class Room>
Room steps(Room room, const std::vector<std::size_t>& offset, int first, int count) {
    const std::size_t begin = offset[static_cast<std::size_t>(first)];
    return part(room, begin, offset[static_cast<std::size_t>(first + count)] - begin);
}

template <class Room>
Task ring_of(Fabric& fabric, Group group, Room room, Arrived<Room> arrived) {
    const std::vector<std::size_t> offset = offsets(group, -1);
    const int next = group.ranks[static_cast<std::size_t>(group.wrap(group.me + 1))];
    const int previous = group.ranks[static_cast<std::size_t>(group.wrap(group.me - 1))];
    for (int step = 1; step < group.size(); ++step) {
        auto receiving = receive(fabric, previous, steps(room, offset, step, 1));
        auto sending = send(fabric, next, steps(room, offset, step - 1, 1));
        if (step > 1) arrived(group.wrap(group.me - step + 1), steps(room, offset, step - 1, 1));
        co_await receiving;
        co_await sending;
    }
    if (group.size() > 1) arrived(group.wrap(group.me + 1), steps(room, offset, group.size() - 1, 1));
}

template <class Room>
Task doubling_of(Fabric& fabric, Group group, Room room, Arrived<Room> arrived) {
    const std::vector<std::size_t> offset = offsets(group, 1);
    int told = 1;
    auto tell = [&](int until) {
        for (; told < until; ++told) arrived(group.wrap(group.me + told), steps(room, offset, told, 1));
    };
    for (int distance = 1; distance < group.size(); distance *= 2) {
        const int count = std::min(distance, group.size() - distance);
        auto receiving =
            receive(fabric, group.ranks[static_cast<std::size_t>(group.wrap(group.me + distance))],
                    steps(room, offset, distance, count));
        auto sending = send(fabric, group.ranks[static_cast<std::size_t>(group.wrap(group.me - distance))],
                            steps(room, offset, 0, count));
        tell(distance);
        co_await receiving;
        co_await sending;
    }
    tell(group.size());
}

}  // namespace

std::size_t Group::total() const {
    return std::accumulate(bytes.begin(), bytes.end(), std::size_t{0});
}

Task ring(Fabric& fabric, Group group, CiphertextBuffer room, Arrived<CiphertextBuffer> arrived) {
    return ring_of(fabric, std::move(group), room, std::move(arrived));
}
Task ring(Fabric& fabric, Group group, PlaintextBuffer room, Arrived<PlaintextBuffer> arrived) {
    return ring_of(fabric, std::move(group), room, std::move(arrived));
}
Task doubling(Fabric& fabric, Group group, CiphertextBuffer room, Arrived<CiphertextBuffer> arrived) {
    return doubling_of(fabric, std::move(group), room, std::move(arrived));
}
Task doubling(Fabric& fabric, Group group, PlaintextBuffer room, Arrived<PlaintextBuffer> arrived) {
    return doubling_of(fabric, std::move(group), room, std::move(arrived));
}

}  // namespace mpisec::coll
