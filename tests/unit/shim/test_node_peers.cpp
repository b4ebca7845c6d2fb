// Whether a process has ended is never guessed: stopped, slow, and without its first thread, it runs.
#include "shim/runtime/node_peers.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <thread>

namespace mpisec::shim {
namespace {

constexpr std::int32_t own_rank = 4, peer_rank = 7;

NodePeers node_peers;

/// A child that runs `body`, known as a peer.
class Peer {
  public:
    explicit Peer(const std::function<void()>& body) {
        int ends[2];
        if (pipe(ends) != 0) abort();
        process_ = fork();
        if (process_ < 0) abort();
        if (process_ == 0) {
            const NodePeer self = this_process(peer_rank);
            if (write(ends[1], &self, sizeof self) != sizeof self) _exit(1);
            body();
            _exit(0);
        }
        NodePeer peer;
        if (read(ends[0], &peer, sizeof peer) != sizeof peer) abort();
        self_ = peer;
        close(ends[0]);
        close(ends[1]);
        node_peers.know({this_process(own_rank), self_}, own_rank);
    }
    ~Peer() {
        node_peers.forget();
        if (process_ > 0) kill(process_, SIGKILL);
        reap();
    }
    void signal(int number) const { kill(process_, number); }
    /// It has ended, and is a zombie still.
    void wait_for_end() const {
        siginfo_t end;
        waitid(P_PID, static_cast<id_t>(process_), &end, WEXITED | WNOWAIT);
    }
    void reap() {
        if (process_ > 0) waitpid(process_, nullptr, 0);
        process_ = 0;
    }
    const NodePeer& self() const { return self_; }

  private:
    pid_t process_ = 0;
    NodePeer self_;
};

void for_ever() {
    for (;;) pause();
}

TEST(NodePeers, OneThatRunsIsAlive) {
    const Peer peer(for_ever);
    EXPECT_EQ(node_peers.dead(), -1);
}

TEST(NodePeers, OneThatIsStoppedIsAlive) {
    const Peer peer(for_ever);
    peer.signal(SIGSTOP);
    usleep(100'000);
    EXPECT_EQ(node_peers.dead(), -1);
}

TEST(NodePeers, OneWhoseFirstThreadHasEndedIsAlive) {
    const Peer peer([] {
        std::thread(for_ever).detach();
        syscall(SYS_exit, 0);  // of this thread alone; pthread_exit() would unwind into the test framework
    });
    usleep(100'000);
    EXPECT_EQ(node_peers.dead(), -1);
}

TEST(NodePeers, OneThatIsKilledIsDeadBeforeAndAfterItsParentHasWaited) {
    Peer peer(for_ever);
    peer.signal(SIGKILL);
    peer.wait_for_end();
    EXPECT_EQ(node_peers.dead(), peer_rank);
    peer.reap();
    EXPECT_EQ(node_peers.dead(), peer_rank);
    node_peers.forget();
    EXPECT_EQ(node_peers.dead(), -1);
}

TEST(NodePeers, AnotherProcessUnderItsNumberIsNotThePeer) {
    const Peer peer(for_ever);
    NodePeer earlier = peer.self();
    --earlier.started;
    node_peers.know({earlier}, own_rank);
    EXPECT_EQ(node_peers.dead(), peer_rank);
}

TEST(NodePeers, OfOthersNumbersAndClocksNothingIsConcluded) {
    Peer peer(for_ever);
    peer.signal(SIGKILL);
    peer.reap();
    for (auto field : {&NodePeer::numbering, &NodePeer::clock}) {
        NodePeer elsewhere = peer.self();
        elsewhere.*field += 1;
        node_peers.know({elsewhere}, own_rank);
        EXPECT_EQ(node_peers.dead(), -1);
    }
    NodePeer unknown = peer.self();
    unknown.started = 0;
    node_peers.know({unknown}, own_rank);
    EXPECT_EQ(node_peers.dead(), -1);
}

}  // namespace
}  // namespace mpisec::shim
