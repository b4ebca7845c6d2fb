#include "shim/sockets/connections.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "keys/key_file.hpp"
#include "shim/pmpi/real.hpp"
#include "shim/process/system_calls.hpp"
#include "shim/runtime/errors.hpp"
#include "shim/runtime/pool.hpp"
#include "shim/runtime/state.hpp"
#include "shim/sockets/addresses.hpp"
#include "shim/sockets/callers.hpp"
#include "shim/sockets/failed_connections.hpp"
#include "transport/authenticated_stream.hpp"

namespace mpisec::shim {

using transport::AuthenticatedStream;

/// What the settings say about connections; read for the first connection of a transport.
struct ConnectionSettings {
    ConnectionSettings();
    config::Settings settings;
};

/// What the keys of this process's connections are derived from; made for the first connection that is authenticated.
struct ConnectionCredentials {
    ConnectionCredentials();
    std::string wrong;  ///< what is wrong with the key file; then the rest is unset
    const aead::Library* library = nullptr;
    keys::Secret secret;
};

/// Serves one connection after another, and exists until the process ends: a thread may have found it in the table just before another one closed the
/// connection. Such a thread sees, under the lock, that the table has it no more for that descriptor.
struct Connection {
    std::mutex lock;
    std::string peer;  ///< for sentences
    std::atomic<pid_t> process_id{0};
    Connection* next = nullptr;  ///< in the list of closed connections
    std::optional<AuthenticatedStream> stream;
};

/// An epoll(7) set, and the value by which it refers to a connection.
using WatchName = std::pair<int, std::uint64_t>;

/// The connections that epoll sets watch.
struct WatchedConnections {
    std::mutex lock;
    std::map<WatchName, int> descriptors;
};

namespace {

using transport::Destination;

/// The library that the user has asked for, where it has the cipher, else the one that takes the least time for short data.
const aead::Library& library_for_tags(std::string_view asked) {
    std::vector<std::string> names = aead::available();
    const auto pinned = std::find(names.begin(), names.end(), asked.substr(0, asked.find(':')));
    if (pinned != names.end()) std::rotate(names.begin(), pinned, pinned + 1);
    for (const std::string& name : names) {
        const auto selection = aead::select(name + ":" + std::string(aead::info(transport::cipher).name), "");
        if (selection) return *selection->library[0];
    }
    abort_job("No crypto library offers " + std::string(aead::info(transport::cipher).name) +
              ", with which the MPI library's connections are authenticated. Install one, or set "
              "MPISEC_CONNECTIONS=plain.");
}

std::atomic<Connection*>* place_of(int descriptor, bool make) {
    SocketTable& table = process.sockets;
    const auto number = static_cast<std::size_t>(descriptor);
    if (number / SocketTable::page_size >= table.pages.size()) return nullptr;
    auto& table_page = table.pages[number / SocketTable::page_size];
    auto* entries = table_page.load(std::memory_order_acquire);
    if (!entries && make) {
        auto* fresh = new std::atomic<Connection*>[SocketTable::page_size]();
        if (table_page.compare_exchange_strong(entries, fresh, std::memory_order_acq_rel))
            entries = fresh;
        else
            delete[] fresh;
    }
    return entries ? entries + number % SocketTable::page_size : nullptr;
}

void count_expecting(int change) {
    if (change != 0) process.connections_expecting.fetch_add(change, std::memory_order_acq_rel);
}

/// These, linked by `next`, may serve other connections.
void keep_for_others(Connection* first) {
    if (!first) return;
    Connection* others = nullptr;
    if (process.closed_connections.compare_exchange_strong(others, first)) return;
    Connection* last = first;
    while (last->next) last = last->next;
    do last->next = others;
    while (!process.closed_connections.compare_exchange_weak(others, first));
}

/// Null when there is none. Takes all for a moment: the first alone could be taken, used and closed by others while this thread looks at its `next`.
Connection* closed_connection() {
    Connection* first = process.closed_connections.exchange(nullptr);
    if (first) keep_for_others(std::exchange(first->next, nullptr));
    return first;
}

void retire(Connection* connection) {
    if (!connection) return;
    {
        const std::lock_guard guard(connection->lock);
        count_expecting(-static_cast<int>(connection->stream->expects_more()));
        connection->stream->end();
    }
    keep_for_others(connection);
}

/// In a buffer of MPIsec's, or copied from one behind a header of the MPI library's.
std::size_t sealed_from(const void* data, std::size_t n) {
    return in_pool(data, n) ? 0
                            : process.recently_sealed.sealed_from(static_cast<const std::uint8_t*>(data), n);
}

void remember(int descriptor, std::atomic<Connection*>* place, Connection* connection) {
    if (!place)
        abort_job("A connection of the MPI library has the file descriptor " + std::to_string(descriptor) +
                  ", and MPIsec authenticates none above " +
                  std::to_string(SocketTable::page_size * process.sockets.pages.size() - 1) +
                  ". Lower the limit of open files (ulimit -n), or set MPISEC_CONNECTIONS=plain.");
    process.connections_begun.store(true, std::memory_order_release);
    retire(place->exchange(connection));
}

/// MPISEC_CONNECTIONS is read when a transport of either kind connects.
bool is_wanted(const void* caller) {
    if (!called_by_transport(caller, true)) return false;
    using Connections = config::Settings::Connections;
    const Connections wanted = process.connection_settings->settings.connections;
    return wanted != Connections::plain && called_by_transport(caller, wanted == Connections::authenticate);
}

/// A copy: the structure is packed, and its data need not be aligned.
WatchName name_of(int set, const epoll_event& event) {
    const std::uint64_t data = event.data.u64;
    return {set, data};
}

/// Runs `action` on the stream. Reports when that makes the stream fail, but only after giving back the lock, because the MPI library may
/// use the connection then. `if_closed`: the answer, with errno ECONNRESET, when another thread has closed the connection.
template <class Answer, class Action>
Answer on_locked_stream(Connection& connection, int descriptor, Answer if_closed, Action action) {
    std::unique_lock guard(connection.lock);
    if (connection_on(descriptor) != &connection) {
        errno = ECONNRESET;
        return if_closed;
    }
    AuthenticatedStream& stream = *connection.stream;
    const bool failed_before = stream.failure() != AuthenticatedStream::Failure::none;
    const bool expected_more = stream.expects_more();
    const Answer answer = action(stream);
    const int error = errno;
    count_expecting(stream.expects_more() - expected_more);
    const AuthenticatedStream::Failure failure = stream.failure();
    if (!failed_before && failure != AuthenticatedStream::Failure::none) {
        const std::string peer = connection.peer;
        const AuthenticatedStream::Side side = stream.side();
        guard.unlock();
        say_what_failed(peer, side, failure);
    }
    errno = error;
    return answer;
}

/// The same for a call of the MPI library's.
template <class Answer, class Action>
Answer on_stream(Connection& connection, int descriptor, Answer if_closed, Action action) {
    return without_exceptions([&] { return on_locked_stream(connection, descriptor, if_closed, action); });
}

/// Whether anything was sent or received on the connection with this descriptor.
bool has_begun(int descriptor) {
    Connection* connection = connection_on(descriptor);
    return connection && on_locked_stream(*connection, descriptor, false,
                                          [](const AuthenticatedStream& stream) { return stream.begun(); });
}

/// From now on the descriptor's connection is authenticated, on the side that this process is of.
void begin(int descriptor, AuthenticatedStream::Side side, const sockaddr_storage& other,
           const Destination& destination) {
    Connection* connection = closed_connection();
    if (!connection) connection = new Connection;
    {
        const std::lock_guard guard(connection->lock);
        connection->peer = text_of(other);
        connection->process_id = getpid();
        const ConnectionCredentials& credentials = *process.connection_credentials;
        connection->stream.emplace(side, destination,
                                   transport::Credentials{*credentials.library, credentials.secret},
                                   system_calls().on_sockets, sealed_from);
    }
    remember(descriptor, place_of(descriptor, true), connection);
}

/// A descriptor of `caller`'s has been connected.
void examine_connected(int descriptor, const sockaddr& to, const void* caller) {
    sockaddr_storage peer{}, local{};
    Address there, here;
    if ((to.sa_family != AF_INET && to.sa_family != AF_INET6) || !is_wanted(caller) || !is_stream(descriptor))
        return;
    std::memcpy(&peer, &to, to.sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in));
    read_address(peer, there);
    const std::string& wrong = process.connection_credentials->wrong;
    if (!wrong.empty()) {  // a job on one node need not have a key
        const bool known = read_name(getsockname, descriptor, local) && read_address(local, here);
        if (known && there.bytes == here.bytes) return;
        abort_job(wrong);
    }
    if (has_begun(descriptor)) return;  // connect() may be called again to ask how far it is
    begin(descriptor, AuthenticatedStream::Side::client, peer, destination_of(there));
}

/// The same of one that `caller` has accepted. False: it must be closed.
bool examine_accepted(int descriptor, const void* caller) {
    sockaddr_storage peer{}, local{};
    Address there, here;
    if (!is_wanted(caller) || !is_stream(descriptor)) return true;
    if (!read_name(getsockname, descriptor, local)) return false;
    if (!read_address(local, here)) return true;
    const bool has_peer = read_name(getpeername, descriptor, peer) && read_address(peer, there);
    const std::string& wrong = process.connection_credentials->wrong;
    if (!wrong.empty() && has_peer && there.bytes == here.bytes) return true;
    if (!wrong.empty() || !has_peer) return false;
    begin(descriptor, AuthenticatedStream::Side::server, peer, destination_of(here));
    return true;
}

void note_watched(int set, int operation, int descriptor, const epoll_event* event, bool is_connection) {
    WatchedConnections& watched = *process.watched_connections;
    const std::lock_guard guard(watched.lock);
    if (operation == EPOLL_CTL_DEL)
        std::erase_if(watched.descriptors,
                      [&](const auto& each) { return each.first.first == set && each.second == descriptor; });
    else if (is_connection)
        watched.descriptors[name_of(set, *event)] = descriptor;
    else
        watched.descriptors.erase(name_of(set, *event));
}

}  // namespace

ConnectionSettings::ConnectionSettings() {
    know_rank();
    auto loaded = config::load();
    if (!loaded) abort_job(loaded.error().message);
    settings = std::move(*loaded);
}

ConnectionCredentials::ConnectionCredentials() {
    const config::Settings& settings = process.connection_settings->settings;
    const auto key = keys::read_key_file(settings.key_file);
    if (!key) {
        wrong = key.error().message;
        return;
    }
    secret = keys::connection_secret(*key);
    library = &library_for_tags(settings.aead);
}

Connection* connection_on(int descriptor) {
    if (descriptor < 0) return nullptr;
    const std::atomic<Connection*>* place = place_of(descriptor, false);
    return place ? place->load(std::memory_order_acquire) : nullptr;
}

void connecting(int descriptor, const sockaddr* to, const void* caller) {
    if (to) without_exceptions([&] { examine_connected(descriptor, *to, caller); });
}

bool accepted(int descriptor, const void* caller) {
    return without_exceptions([&] { return examine_accepted(descriptor, caller); });
}

ssize_t send_on(Connection& connection, int descriptor, std::span<const iovec> pieces, int flags) {
    return on_stream(connection, descriptor, ssize_t{-1},
                     [&](AuthenticatedStream& stream) { return stream.send(descriptor, pieces, flags); });
}

ssize_t receive_on(Connection& connection, int descriptor, std::span<const iovec> pieces, int flags) {
    std::string silent;  // who has closed without an answer
    const ssize_t n = on_stream(connection, descriptor, ssize_t{-1}, [&](AuthenticatedStream& stream) {
        const ssize_t received = stream.receive(descriptor, pieces, flags);
        const bool ended = received == 0 || (received < 0 && errno == ECONNRESET);
        if (ended && stream.side() == AuthenticatedStream::Side::client && !stream.has_heard())
            silent = connection.peer;
        return received;
    });
    const int error = errno;
    if (!silent.empty()) count_unanswered(silent);
    if (n > 0 && process.unanswered.load(std::memory_order_relaxed) != 0) process.unanswered = 0;
    errno = error;
    return n;
}

void watch_connection(int set, int operation, int descriptor, const epoll_event* event) {
    if (!process.connections_begun.load(std::memory_order_acquire)) return;
    const bool is_connection = connection_on(descriptor) != nullptr;
    if (operation == EPOLL_CTL_DEL ? is_connection : event != nullptr)
        without_exceptions([&] { note_watched(set, operation, descriptor, event, is_connection); });
}

int leave_out_incomplete(int set, epoll_event* events, int n) {
    if (process.connections_expecting.load(std::memory_order_acquire) == 0) return n;
    WatchedConnections& watched = *process.watched_connections;
    const auto descriptor_of = [&](const epoll_event& event) {
        const std::lock_guard guard(watched.lock);
        const auto found = watched.descriptors.find(name_of(set, event));
        return found == watched.descriptors.end() ? -1 : found->second;
    };
    const auto is_empty = [&](epoll_event& event) {
        if (!(event.events & EPOLLIN)) return false;
        const int descriptor = descriptor_of(event);
        Connection* connection = connection_on(descriptor);
        if (!connection) return false;
        const bool has = on_stream(*connection, descriptor, true, [&](AuthenticatedStream& stream) {
            return stream.has_something(descriptor);
        });
        if (!has) event.events &= ~std::uint32_t{EPOLLIN};
        return event.events == 0;
    };
    return static_cast<int>(std::remove_if(events, events + n, is_empty) - events);
}

void forget_connection(int descriptor) {
    const Connection* connection = connection_on(descriptor);
    // A child of vfork() closes its own descriptors, but runs in this process's memory.
    if (!connection || connection->process_id != getpid()) return;
    {
        WatchedConnections& watched = *process.watched_connections;
        const std::lock_guard guard(watched.lock);
        std::erase_if(watched.descriptors, [&](const auto& each) { return each.second == descriptor; });
    }
    retire(place_of(descriptor, false)->exchange(nullptr));
}

}  // namespace mpisec::shim
