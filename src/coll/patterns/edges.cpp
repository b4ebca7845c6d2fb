#include "coll/patterns/edges.hpp"

namespace mpisec::coll {

fabric::Pending Edges::send(int to, fabric::Plain bytes) {
    if (fabric_.topology().same_node(fabric_.rank(), to)) return fabric_.send_here(to, bytes);
    const fabric::Cipher box = fabric_.cipher(fabric::sealed_bytes(bytes.size()));
    fabric_.seal(box, bytes, {fabric_.rank(), index(sent_[static_cast<std::size_t>(to)]++, to)});
    return fabric_.send(to, box);
}

Edges::Receiving Edges::receive(int from, fabric::PlainRoom room) {
    if (fabric_.topology().same_node(fabric_.rank(), from))
        return {fabric_.receive_here(from, room), room, {}, {}};
    const fabric::Cipher box = fabric_.cipher(fabric::sealed_bytes(room.size()));
    const fabric::Box name{from, index(received_[static_cast<std::size_t>(from)]++, fabric_.rank())};
    return {fabric_.receive(from, box), room, box, name};
}

fabric::Task Edges::finish(Receiving receiving) {
    co_await receiving.pending;
    if (receiving.box.size() > 0) fabric_.open(receiving.room, receiving.box, receiving.name);
}

fabric::Task Edges::exchange(int to, fabric::Plain bytes, int from, fabric::PlainRoom room) {
    Receiving receiving = receive(from, room);
    auto sending = send(to, bytes);
    co_await finish(receiving);
    co_await sending;
}

}  // namespace mpisec::coll
