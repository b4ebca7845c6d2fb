//! run as-built |  | holds
//! run taken-early | -DEAGER | holds
//! run any-order | -DANY_ORDER | holds
//! run told-at-once | -DANY_ORDER -DTOLD_AT_ONCE | invalid end state
//! run completes | ltl | holds
//! run counters-left | -DANY_ORDER -DCOUNTERS_LEFT -DBOUND=0 | holds
//! run never-told | -DNEVER_TOLD | invalid end state
//! run not-asked-again | -DNOT_ASKED_AGAIN | invalid end state
//! run misnamed-not-told | -DMISNAMED_NOT_TOLD | invalid end state
//! run next-not-told | -DNEXT_NOT_TOLD | invalid end state
//! run named-again | ltl -DNAMED_AGAIN | acceptance cycle
//! run counter-not-marked | -DCOUNTER_NOT_MARKED | assertion violated !(received_twice)
//! run counters-left-at-once | -DANY_ORDER -DTOLD_AT_ONCE -DCOUNTERS_LEFT -DBOUND=0 | holds
//! run counter-ignored | -DANY_ORDER -DTOLD_AT_ONCE -DCOUNTERS_LEFT -DBOUND=0 -DCOUNTER_IGNORED | assertion violated !(damage_unbounded)
//! run one-lost-per-attack | -DBOUND=attacks | assertion violated !(damage_unbounded)
// Refused large messages: what the two ranks say to each other when the first part of a large message was not accepted, so that
// its sender is not left waiting with segments that nobody receives (src/shim/p2p/rejected_messages.cpp, src/shim/p2p/verify.cpp).
//
// One sender, one receiver, N large messages in flight at once (MPI_Isend); message i has counter i. The attacker changes, forges
// and replays first parts, ATTACKS times in all. It does not drop them, nor the notices: what never arrives leaves the sender to
// the stall report, as docs/protocol.md says. The receiving program goes on receiving whatever arrives.
//
// One of the runs finds what the protocol does not keep, `one-lost-per-attack`: README.md, "What the models found".
//
// Hanging shows as an invalid end state: the sender has no end label before all its sends are complete.

#ifndef N
#define N 3
#endif
#ifndef ATTACKS
#define ATTACKS 2
#endif
#ifndef MOST_UNANSWERED
#define MOST_UNANSWERED 1
#endif
#ifndef BOUND
#define BOUND (2 * attacks)
#endif
#define NONE N
#define LENGTH 8

chan net = [N] of { byte, byte };            // sealed message (NONE: forged), counter that its nonce claims; from the sender
chan first = [N + ATTACKS] of { byte, byte, byte };  // the same and its place, as MPI matched it to a receive
chan rejections = [LENGTH] of { byte };        // claimed counter
chan rests = [LENGTH] of { byte };           // true counter; NONE: a header of zeros

// Sender
byte next_to_send = 0;
bool sent[N], complete[N], settled[N];
// Receiver
bool used[N];                                // the replay set
chan untold = [LENGTH] of { byte };
chan unanswered = [LENGTH] of { byte };
bool named[N];                               // Told::named
// Network: segments of message i were received, by its pipeline or to be thrown away
bool segments_taken[N];
// Ghosts
bool delivered[N], thrown_away[N], attacked[N];
byte attacks = 0, innocent = 0, places = 0;
// What must never be
bool received_twice, accepted_twice, damage_unbounded;

inline throw_away(i) {
    thrown_away[i] = true;
    if
    :: attacked[i]
    :: else ->
        innocent++;
        damage_unbounded = innocent > BOUND;
        assert(!damage_unbounded)
    fi;
    take_segments(i)
}

inline take_segments(i) {
    received_twice = segments_taken[i];
    assert(!received_twice);  // two receives for one message's segments: the second would wait for ever
    segments_taken[i] = true;
    complete[i] = true;
}

// A rejection is held back until the receives before the rejected message's have completed: tell_held().
#ifdef TOLD_AT_ONCE
#define before(place) true
#else
#define before(place) ((place == 0 || completed[0]) && (place <= 1 || completed[1]) && (place <= 2 || completed[2]) && (place <= 3 || completed[3]))
#endif
bool completed[N + ATTACKS];
chan held = [LENGTH] of { byte, byte };      // claimed counter, place of the rejected message

inline tell_next() {
    if
    :: (len(untold) > 0 && len(unanswered) < MOST_UNANSWERED) -> untold?told; rejections!told; unanswered!told
    :: !(len(untold) > 0 && len(unanswered) < MOST_UNANSWERED)
    fi
}

inline tell_held() {
    do
    :: held??[_, 0] -> held??told, 0; untold!told; tell_next()
    :: held??[_, 1] && before(1) -> held??told, 1; untold!told; tell_next()
    :: held??[_, 2] && before(2) -> held??told, 2; untold!told; tell_next()
    :: held??[_, 3] && before(3) -> held??told, 3; untold!told; tell_next()
    :: held??[_, 4] && before(4) -> held??told, 4; untold!told; tell_next()
    :: !(held??[_, 0] || (held??[_, 1] && before(1)) || (held??[_, 2] && before(2)) || (held??[_, 3] && before(3)) || (held??[_, 4] && before(4))) -> break
    od
}

inline tell_rejected(claim) {
#ifdef NEVER_TOLD
    skip
#else
    held!claim, place
#endif
}

// verify.cpp, verify(); the pipeline then receives the segments.
inline accept(message, claim) {
    if
    :: message == NONE || claim != message -> tell_rejected(claim)  // does not authenticate
    :: else ->
        if
        :: used[message] ->                                        // replayed
#ifndef MISNAMED_NOT_TOLD
            if
            :: named[message] -> named[message] = false; untold!NONE; tell_next()
            :: else
            fi
#else
            skip
#endif
        :: else ->
            used[message] = true;
            accepted_twice = delivered[message] || thrown_away[message];
            assert(!accepted_twice);
            delivered[message] = true;
            take_segments(message)
        fi
    fi
}

// Watch::step()
inline answered(counter) {
    unanswered?told;
    if
    :: counter == NONE
#ifdef COUNTER_NOT_MARKED
    :: counter != NONE -> throw_away(counter)
#else
    :: counter != NONE && !used[counter] ->
        used[counter] = true;
        if
        :: told == counter -> named[counter] = true
        :: else
        fi;
        throw_away(counter)
    :: counter != NONE && used[counter] ->
#ifndef NOT_ASKED_AGAIN
        untold!told  // first, in rejected_messages.cpp
#else
        skip
#endif
#endif
    fi;
    told = NONE;
#ifndef NEXT_NOT_TOLD
    tell_next()
#endif
}

active proctype Receiver() {
    byte message = NONE, claim = NONE, told = NONE, place = 0;
end:
    do
    :: atomic { first?message, claim, place -> completed[place] = true; accept(message, claim); tell_held(); place = 0; message = NONE; claim = NONE; told = NONE }
#ifdef ANY_ORDER
    // Receives complete in any order.
    :: atomic { len(first) > 1 -> first?message, claim, place; first!message, claim, place; place = 0; message = NONE; claim = NONE }
#endif
    :: atomic { rests?claim -> answered(claim); claim = NONE }
    od
}

// rejected_send(): the send with the counter, else the oldest; each is named once.
inline name_a_send(claim) {
    found = NONE; i = 0;
    if
#ifndef COUNTER_IGNORED
    :: claim != NONE && sent[claim] && !settled[claim] -> found = claim
#endif
    :: else ->
        do
        :: i == N -> break
        :: i < N && sent[i] && !settled[i] -> found = i; break
        :: else -> i++
        od
    fi;
    i = 0;
    if
    :: found != NONE ->
#ifndef NAMED_AGAIN
        settled[found] = true
#else
        skip
#endif
    :: else
    fi;
    rests!found; found = NONE
}

#define all_complete (complete[0] && complete[1] && complete[N - 1])

active proctype Sender() {
    byte claim, found, i;
    do
    :: atomic { next_to_send < N -> sent[next_to_send] = true; net!next_to_send, next_to_send; next_to_send++ }
    // It looks for rejections while a send stands still.
    :: atomic { !(all_complete) && len(rejections) > 0 && next_to_send > 0 -> rejections?claim; name_a_send(claim); claim = 0 }
    // MPI may take the segments of a message before its receiver is there: the send is complete, and remembered.
#ifdef EAGER
    :: atomic { next_to_send > 0 && !complete[0] -> complete[0] = true }
#endif
    :: next_to_send == N && all_complete -> break
    od
}

active proctype Attacker() {
    byte message, claim;
end:
    do
    :: atomic { net?message, claim -> first!message, claim, places; places++; message = 0; claim = 0 }
    // Changed: its ciphertext, or the counter in its nonce, which then may be that of any other message, or senseless.
    :: atomic { attacks < ATTACKS && nempty(net) ->
        attacks++; net?message, claim; attacked[message] = true;
#ifndef COUNTERS_LEFT
        if
        :: claim = 0
        :: claim = 1
        :: claim = N - 1
        :: claim = NONE
        fi;
#endif
        first!NONE, claim, places; places++; message = 0; claim = 0 }
#ifndef COUNTERS_LEFT
    // Forged, beside the genuine ones.
    :: atomic { attacks < ATTACKS && nfull(first) ->
        attacks++;
        if
        :: claim = 0
        :: claim = 1
        :: claim = N - 1
        :: claim = NONE
        fi;
        first!NONE, claim, places; places++; claim = 0 }
    // Replayed.
    :: atomic { attacks < ATTACKS && nfull(first) && sent[0] -> attacks++; first!0, 0, places; places++ }
    :: atomic { attacks < ATTACKS && nfull(first) && sent[1] -> attacks++; first!1, 1, places; places++ }
#endif
    od
}

ltl completes { <> (next_to_send == N && all_complete) }
