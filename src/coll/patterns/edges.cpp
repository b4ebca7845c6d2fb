#include "coll/patterns/edges.hpp"

namespace mpisec::coll {

Edges::Sending Edges::send(int to, fabric::Plaintext bytes) {
    if (fabric_.topology().same_node(fabric_.rank(), to)) return {fabric_.send_here(to, bytes), {}};
    const fabric::CiphertextBuffer sealed_block = fabric_.ciphertext(fabric::sealed_bytes(bytes.size()));
    fabric_.seal(sealed_block, bytes, {fabric_.rank(), index(messages_[to].sent++, to)});
    return {fabric_.send(to, sealed_block), sealed_block};
}

Edges::Receiving Edges::receive(int from, fabric::PlaintextBuffer room) {
    if (fabric_.topology().same_node(fabric_.rank(), from))
        return {fabric_.receive_here(from, room), room, {}, {}};
    const fabric::CiphertextBuffer sealed_block = fabric_.ciphertext(fabric::sealed_bytes(room.size()));
    const fabric::SealedBlock name{from, index(messages_[from].received++, fabric_.rank())};
    return {fabric_.receive(from, sealed_block), room, sealed_block, name};
}

fabric::Task Edges::finish(Sending sending) {
    co_await sending.pending;
    fabric_.give_back(sending.sealed_block);
}

fabric::Task Edges::finish(Receiving receiving) {
    co_await receiving.pending;
    if (receiving.sealed_block.size() == 0) co_return;
    fabric_.open(receiving.room, receiving.sealed_block, receiving.name);
    fabric_.give_back(receiving.sealed_block);
}

fabric::Task Edges::exchange(int to, fabric::Plaintext bytes, int from, fabric::PlaintextBuffer room) {
    Receiving receiving = receive(from, room);
    Sending sending = send(to, bytes);
    co_await finish(receiving);
    co_await finish(sending);
}

}  // namespace mpisec::coll
