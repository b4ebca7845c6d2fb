//! run sending | -DATTACKS=0 | holds
//! run attacked | -DATTACKS=2 -DN=3 -DTHREADS=1 -DMPI_REFUSES=0 | holds
//! run counter-race | -DATTACKS=0 -DCOUNTER_RACE | assertion violated !(nonce_reused)
//! run counter-given-back | -DATTACKS=0 -DCOUNTER_GIVEN_BACK | assertion violated !(nonce_reused)
//! run not-renewed | -DATTACKS=0 -DNOT_RENEWED | assertion violated !(key_worn_out)
//! run handed-over-unguarded | -DATTACKS=0 -DHANDED_OVER_UNGUARDED | assertion violated !(honest_refused)
//! run counter-per-epoch | -DATTACKS=0 -DCOUNTER_PER_EPOCH | assertion violated !(honest_refused)
//! run window | -DATTACKS=0 -DWINDOW | assertion violated !(new_refused)
//! run old-counters-forgotten | -DATTACKS=2 -DN=3 -DTHREADS=1 -DMPI_REFUSES=0 -DOLD_COUNTERS_FORGOTTEN | assertion violated !(accepted_twice)
//! run marked-unopened | -DATTACKS=2 -DN=3 -DTHREADS=1 -DMPI_REFUSES=0 -DMARKED_UNOPENED | assertion violated !(new_refused)
//! run epoch-believed-unopened | -DATTACKS=2 -DN=3 -DTHREADS=1 -DMPI_REFUSES=0 -DEPOCH_BELIEVED_UNOPENED | assertion violated !(late_refused)
//! run order-unchecked | -DATTACKS=2 -DN=3 -DTHREADS=1 -DMPI_REFUSES=0 -DORDER_UNCHECKED | assertion violated !(overtaken)
//! run pruned-too-early | -DATTACKS=2 -DN=3 -DTHREADS=1 -DMPI_REFUSES=0 -DPRUNED_TOO_EARLY | assertion violated !(overtaken)
//! run older-receives-forgotten | -DATTACKS=2 -DN=3 -DTHREADS=1 -DMPI_REFUSES=0 -DOLDER_RECEIVES_FORGOTTEN | assertion violated !(overtaken)
//! run predecessor-unchecked | -DATTACKS=2 -DN=3 -DTHREADS=1 -DMPI_REFUSES=0 -DPREDECESSOR_UNCHECKED | assertion violated !(place_taken)
//! run earlier-receives-ignored | -DATTACKS=0 -DEARLIER_RECEIVES_IGNORED | assertion violated !(honest_refused)
//! run refused-named | -DATTACKS=0 -DREFUSED_NAMED | assertion violated !(honest_refused)
// Counters, epochs, replay set and order of the messages from one rank to another on one communicator
// (src/shim/p2p/peer_state.hpp, peer_state.cpp, sending.cpp; src/shim/p2p/verify.cpp, src/wire/replay.cpp, order.cpp, predecessors.hpp).
//
// THREADS threads of the sender send N messages with tags 0 and 1; MPI may refuse one of them. An epoch lasts REKEY messages. The
// attacker drops, replays, reorders, changes and forges, ATTACKS times in all. The receiver posts RECEIVES receives; MPI matches
// them in order, but they complete in any order. Sealing is perfect: a message opens if and only if the claimed epoch and counter
// and the tag are those it was sealed with.

#ifndef N
#define N 4
#endif
#ifndef RECEIVES
#define RECEIVES 4
#endif
#ifndef REKEY
#define REKEY 2
#endif
#ifndef ATTACKS
#define ATTACKS 2
#endif
#ifndef MPI_REFUSES
#define MPI_REFUSES 1
#endif
#ifndef THREADS
#define THREADS 2
#endif
#define COUNTERS (N + 2)
#define EPOCHS 5
#define FORGED N     // in place of the number of a sealed message
#define EMPTY 255

// Sender: struct Outgoing
byte next_counter = 0, epoch = 0, epoch_messages = 0;
byte messages_sealed = 0;
// What was sealed, in the order of sending
byte sealed_epoch[N], sealed_counter[N], sealed_tag[N];
byte sealed_before[N];             // counter of the one before with the same tag, or EMPTY: the way back
byte last_of_tag[2] = EMPTY;       // Predecessors
// Ghost: pairs of key and nonce
bool nonce_used[EPOCHS * COUNTERS];

chan net = [N] of { byte, byte, byte, byte };  // sealed message, epoch, counter, tag; from the sender
chan rx0 = [N + ATTACKS] of { byte, byte, byte };  // the same by tag, as it reaches the receiver
chan rx1 = [N + ATTACKS] of { byte, byte, byte };
byte attacks = 0, mpi_refused = 0;

// Receiver: struct Incoming, Communicator
bool used[COUNTERS];               // the replay set
byte newest_epoch = 0;             // pair.keys[0]
byte next_position = 0;
byte posted_tag[RECEIVES];
byte got_sealed[RECEIVES], got_epoch[RECEIVES], got_counter[RECEIVES];
bool matched[RECEIVES], finished[RECEIVES];
byte order[2 * RECEIVES];           // trackers of the two tags: position -> counter, or EMPTY
byte highest = 0;                  // used by broken variants alone
byte unaccounted = 0;              // rejected messages whose counters nobody knows
// Ghosts
bool accepted[N], consumed[N];
byte accepted_at[N];
bool error_raised;
// What must never be
bool nonce_reused, key_worn_out, accepted_twice, overtaken, place_taken, late_refused, new_refused, honest_refused, epoch_invented;

inline renew() {
    if
#ifndef NOT_RENEWED
    :: epoch_messages >= REKEY ->
        epoch++; epoch_messages = 0;
#ifdef COUNTER_PER_EPOCH
        next_counter = 0
#else
        skip
#endif
#endif
    :: else
    fi
}

inline seal() {
    nonce_reused = nonce_used[epoch * COUNTERS + my_counter];
    assert(!nonce_reused);
    nonce_used[epoch * COUNTERS + my_counter] = true;
    epoch_messages++;
    key_worn_out = epoch_messages > REKEY;
    assert(!key_worn_out)
}

inline hand_to_mpi() {
    if
    :: mpi_refused < MPI_REFUSES ->
        mpi_refused++;
#ifdef REFUSED_NAMED
        last_of_tag[my_tag] = my_counter;
#endif
#ifdef COUNTER_GIVEN_BACK
        next_counter--
#else
        skip
#endif
    :: messages_sealed < N ->
        sealed_epoch[messages_sealed] = my_epoch;
        sealed_counter[messages_sealed] = my_counter;
        sealed_tag[messages_sealed] = my_tag;
        sealed_before[messages_sealed] = last_of_tag[my_tag];
        last_of_tag[my_tag] = my_counter;
        net!messages_sealed, my_epoch, my_counter, my_tag;
        messages_sealed++
    fi
}

active [THREADS] proctype Thread() {
    byte my_counter, my_epoch, my_tag, my_sends = 0;
    do
    :: my_sends < N / THREADS ->
        my_sends++;
#if defined(COUNTER_RACE)
        atomic { renew(); my_counter = next_counter }
        atomic { next_counter = my_counter + 1; my_epoch = epoch; seal();
                 if :: my_tag = 0 :: my_tag = 1 fi; hand_to_mpi(); my_counter = 0; my_epoch = 0; my_tag = 0 }
#elif defined(HANDED_OVER_UNGUARDED)
        atomic { renew(); my_counter = next_counter; next_counter++; my_epoch = epoch; seal() }
        atomic { if :: my_tag = 0 :: my_tag = 1 fi; hand_to_mpi(); my_counter = 0; my_epoch = 0; my_tag = 0 }
#else
        atomic { renew(); my_counter = next_counter; next_counter++; my_epoch = epoch; seal();
                 if :: my_tag = 0 :: my_tag = 1 fi; hand_to_mpi(); my_counter = 0; my_epoch = 0; my_tag = 0 }
#endif
    :: else -> break
    od
}

inline deliver() {
    if
    :: tag == 0 -> rx0!sealed, claimed_epoch, claimed_counter
    :: else -> rx1!sealed, claimed_epoch, claimed_counter
    fi;
    sealed = 0; claimed_epoch = 0; claimed_counter = 0; tag = 0
}

inline any_sealed() {
    sealed = 0;
    do
    :: sealed + 1 < messages_sealed -> sealed++
    :: break
    od
}

active proctype Network() {
    byte sealed, claimed_epoch, claimed_counter, tag;
end:
    do
    :: atomic { net?sealed, claimed_epoch, claimed_counter, tag -> deliver() }
    :: atomic { attacks < ATTACKS && nempty(net) -> attacks++;
        net?sealed, claimed_epoch, claimed_counter, tag;
        if
        :: sealed = 0; claimed_epoch = 0; claimed_counter = 0; tag = 0                // dropped
        :: claimed_counter = (claimed_counter + 1) % COUNTERS; deliver()              // changed
        :: claimed_counter = 0; deliver()
        :: claimed_epoch = EPOCHS - 1; deliver()
        :: tag = 1 - tag; deliver()
        :: sealed = FORGED; deliver()
        fi }
    :: atomic { attacks < ATTACKS && len(net) > 1 -> attacks++;                       // overtaken by the next one
        net?sealed, claimed_epoch, claimed_counter, tag; net!sealed, claimed_epoch, claimed_counter, tag;
        net?sealed, claimed_epoch, claimed_counter, tag; deliver() }
    :: atomic { attacks < ATTACKS && messages_sealed > 0 -> attacks++;                // replayed, with its own tag
        any_sealed();
        claimed_epoch = sealed_epoch[sealed]; claimed_counter = sealed_counter[sealed]; tag = sealed_tag[sealed];
        deliver() }
    od
}

// Communicator::oldest_position()
inline find_oldest() {
    oldest = 0;
    do
    :: oldest < next_position && finished[oldest] -> oldest++
    :: else -> break
    od
}

inline find_base() {
    base = 0;
    do
    :: base < COUNTERS && used[base] -> base++
    :: else -> break
    od
}

// OrderTracker::prune(): from the front, as long as the first record is settled or the next one stands for it.
inline prune() {
    do
    :: true ->
        i = 0;
        do
        :: i < RECEIVES && order[o + i] == EMPTY -> i++
        :: else -> break
        od;
        if
        :: i == RECEIVES -> break
        :: else
        fi;
        j = i + 1;
        do
        :: j < RECEIVES && order[o + j] == EMPTY -> j++
        :: else -> break
        od;
        if
#ifdef PRUNED_TOO_EARLY
        :: i < oldest || order[o + i] < base
#else
        :: i < oldest && order[o + i] < base
#endif
        :: !(i < oldest && order[o + i] < base) && j < RECEIVES && (j < oldest || order[o + j] < base)
        :: else -> break
        fi;
        order[o + i] = EMPTY
    od
}

// OrderTracker::record()
inline record() {
    fits = true; i = 0;
    do
    :: i == RECEIVES -> break
    :: i < p && order[o + i] != EMPTY && order[o + i] >= got_counter[p] -> fits = false; break
    :: i > p && i < RECEIVES && order[o + i] != EMPTY && order[o + i] <= got_counter[p] -> fits = false; break
    :: else -> i++
    od;
    if
    :: fits -> order[o + p] = got_counter[p]; prune()
    :: else
    fi
}

inline trackers_empty() {
    fits = true; i = 0;
    do
    :: i == RECEIVES -> break
    :: i < RECEIVES && (order[i] != EMPTY || order[RECEIVES + i] != EMPTY) -> fits = false; break
    :: else -> i++
    od
}

// verify.cpp, in_order()
inline check_order() {
    find_oldest(); find_base(); trackers_empty();
#ifdef OLDER_RECEIVES_FORGOTTEN
    if
    :: fits && got_counter[p] + 1 == base
#else
    if
    :: fits && p < oldest && got_counter[p] + 1 == base
#endif
    :: else -> o = posted_tag[p] * RECEIVES; record(); o = 0
    fi
}

// verify.cpp, missing_before(), of the same tag. This receive counts as finished.
inline check_predecessor() {
    i = 0;
    do
    :: i < next_position && (finished[i] || posted_tag[i] != posted_tag[p]) -> i++
    :: else -> break
    od;
    if
    :: sealed_before[got_sealed[p]] == EMPTY || used[sealed_before[got_sealed[p]]]
#ifndef EARLIER_RECEIVES_IGNORED
    :: sealed_before[got_sealed[p]] != EMPTY && !used[sealed_before[got_sealed[p]]] && i < p
#endif
    :: else ->
        if
        :: unaccounted > 0 -> unaccounted--
        :: else -> fits = false
        fi
    fi
}

#define genuine (got_sealed[p] != FORGED && sealed_epoch[got_sealed[p]] == got_epoch[p] && sealed_counter[got_sealed[p]] == got_counter[p] && sealed_tag[got_sealed[p]] == posted_tag[p])

#if defined(WINDOW)
#define is_new (!used[got_counter[p]] && got_counter[p] + 2 > highest)
#elif defined(OLD_COUNTERS_FORGOTTEN)
#define is_new (!used[got_counter[p]] || got_counter[p] + 2 <= highest)
#else
#define is_new (!used[got_counter[p]])
#endif

#ifdef EPOCH_BELIEVED_UNOPENED
#define has_keys (got_epoch[p] >= newest_epoch)
#else
#define has_keys true
#endif

// Everything about the message is checked; it goes to the program.
inline hand_to_program() {
    accepted_twice = accepted[got_sealed[p]];
    assert(!accepted_twice);
    i = 0;
    do
    :: i == N -> break
    :: i < N && accepted[i] && posted_tag[accepted_at[i]] == posted_tag[p] ->
        overtaken = (accepted_at[i] < p) != (i < got_sealed[p]);
        assert(!overtaken);  // MPI 5.0, section 3.5
        i++
    :: else -> i++
    od;
    i = 0;
    do
    :: i < next_position && (finished[i] || posted_tag[i] != posted_tag[p]) -> i++
    :: else -> break
    od;
    if
    :: i < p                           // an earlier receive may yet have got what is missing
    :: else ->
        i = 0;
        do
        :: i == got_sealed[p] -> break
        :: i < got_sealed[p] && !(sealed_tag[i] == posted_tag[p] && !consumed[i]) -> i++
        :: i < got_sealed[p] && sealed_tag[i] == posted_tag[p] && !consumed[i] ->
            place_taken = !error_raised;
            assert(!place_taken);      // one that was held back, unless the program has had an error
            i++
        od
    fi;
    accepted[got_sealed[p]] = true;
    accepted_at[got_sealed[p]] = p;
    if
    :: got_epoch[p] > newest_epoch -> newest_epoch = got_epoch[p]
    :: else
    fi
}

// verify.cpp, verify()
inline accept() {
#ifdef EPOCH_BELIEVED_UNOPENED
    if
    :: got_epoch[p] > newest_epoch -> newest_epoch = got_epoch[p]
    :: else
    fi;
#endif
#ifdef MARKED_UNOPENED
    used[got_counter[p]] = true;
#endif
    if
    :: !(genuine && has_keys) ->
        late_refused = genuine;
        assert(!late_refused);     // of whatever epoch
        unaccounted++;
        error_raised = true
    :: genuine && has_keys && !is_new ->
        new_refused = !consumed[got_sealed[p]];
        assert(!new_refused);      // only what came before is refused as replayed
        error_raised = true
    :: else ->
        used[got_counter[p]] = true;
        consumed[got_sealed[p]] = true;
        if
        :: got_counter[p] > highest -> highest = got_counter[p]
        :: else
        fi;
#ifdef ORDER_UNCHECKED
        fits = true;
#else
        check_order();
#endif
#ifndef PREDECESSOR_UNCHECKED
        if
        :: fits -> check_predecessor()
        :: else
        fi;
#endif
        if
        :: fits -> hand_to_program()
        :: else ->
            error_raised = true;
            honest_refused = (attacks == 0);
            assert(!honest_refused)
        fi
    fi;
    epoch_invented = newest_epoch > epoch;
    assert(!epoch_invented);       // the receiver's newest epoch is one that the sender has reached
    got_sealed[p] = 0; got_epoch[p] = 0; got_counter[p] = 0;
    i = 0; j = 0; oldest = 0; base = 0; fits = false
}

inline match_oldest(wanted, rx) {
    p = 0;
    do
    :: p < next_position && (matched[p] || posted_tag[p] != wanted) -> p++
    :: else -> break
    od;
    if
    :: p < next_position -> rx?got_sealed[p], got_epoch[p], got_counter[p]; matched[p] = true
    :: else
    fi;
    p = 0
}

#define waits_for(t) ((next_position > 0 && posted_tag[0] == t && !matched[0]) || (next_position > 1 && posted_tag[1] == t && !matched[1]) || (next_position > 2 && posted_tag[2] == t && !matched[2]) || (next_position > 3 && posted_tag[3] == t && !matched[3]))

active proctype Receiver() {
    byte p, i, j, o, oldest, base;
    bool fits;
    atomic {
        do
        :: i < RECEIVES -> order[i] = EMPTY; order[RECEIVES + i] = EMPTY; i++
        :: else -> i = 0; break
        od
    }
end:
    do
    :: atomic { next_position < RECEIVES ->
        if
        :: posted_tag[next_position] = 0
        :: posted_tag[next_position] = 1
        fi;
        next_position++ }
    :: atomic { nempty(rx0) && waits_for(0) -> match_oldest(0, rx0) }
    :: atomic { nempty(rx1) && waits_for(1) -> match_oldest(1, rx1) }
    // Receives complete in any order.
    :: atomic { matched[0] && !finished[0] -> p = 0; finished[0] = true; accept(); p = 0 }
    :: atomic { matched[1] && !finished[1] -> p = 1; finished[1] = true; accept(); p = 0 }
    :: atomic { matched[2] && !finished[2] -> p = 2; finished[2] = true; accept(); p = 0 }
    :: atomic { matched[3] && !finished[3] -> p = 3; finished[3] = true; accept(); p = 0 }
    od
}
