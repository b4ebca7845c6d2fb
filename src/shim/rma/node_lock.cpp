#include "shim/rma/node_lock.hpp"

#include <cerrno>
#include <new>

namespace mpisec::shim::rma {

NodeLock* NodeLock::make(void* memory) {
    auto* made = new (memory) NodeLock;
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&made->mutex_, &attributes);
    pthread_mutexattr_destroy(&attributes);
    return made;
}

void NodeLock::lock() {
    if (pthread_mutex_lock(&mutex_) == EOWNERDEAD) pthread_mutex_consistent(&mutex_);
}

}  // namespace mpisec::shim::rma
