/* A model of gossip/commit*.c for Spin: three voters decide the record of one slot. It knows no bytes, no signatures and no
 * clock; what a host may answer or a timer may do is a free choice here.
 *
 * Messages are sets that only grow, so every message may be lost (nobody takes it), late, repeated or overtaken, by as much
 * as the search likes. A voter takes one step at a time: it takes a message, starts a write, hears of a write, bids, or
 * crashes and is back with its vote row. A write that a crash interrupts may be on the disk or not; a write may also fail.
 * Nothing bounds the number of crashes, only the number of ballots (BALLOTS).
 *
 * Where the model is wider than the code: a bidder may choose any own ballot above its promise, not only the least above all
 * seen (so NACK, a hint that only raises dp_commit.seen, has nothing to carry and is not modelled); a decision is made of
 * any votes ever sent, not of the latest of each voter; a crash also forgets the outcome, which the ledger would keep.
 * Where it is narrower: both records are valid to everybody, though perhaps late; the proof in a PROPOSE is what its owner
 * took, since voters do not lie (but see LIAR); the fork, the slot before and the vote key stay what they are.
 *
 * MUTATION is the number of a rule that is broken, its row in docs/MUTATIONS.md. LIAR: the owner of ballot 0 also
 * proposes the other record. AGREEMENT_ONLY: no assertion but the one about two decisions, to show that the broken rule leads
 * there. CANARY is a ballot: deciding there the record of ballot 0, against that of ballot 1, is called an error, to show that
 * the search comes so far. */
#ifndef BALLOTS
#define BALLOTS 3
#endif
#ifndef MUTATION
#define MUTATION 0
#endif
#if BALLOTS > 4
#error "PROMISES, a short, has room for what may be accepted in four ballots"
#endif

#define VOTERS 3
#define NONE (-1) /* no ballot, no record */
#define X 0
#define Y 1
#define me _pid /* 0, 1, 2; also the order of the owners */

mtype = {
    DP_COMMIT_IDLE,
    DP_COMMIT_PROMISING,
    DP_COMMIT_PREPARING,
    DP_COMMIT_CHOOSING,
    DP_COMMIT_ACCEPTING,
    DP_COMMIT_PROPOSING
}

/* ---- Messages ever sent. Of a sender: bit 1 << voter. Of what is accepted: bit 0 for nothing, else see ACCEPT_BIT. ---- */

#define AT(ballot, record) (2 * (ballot) + (record))
#define ACCEPT_BIT(ballot, record) (1 << (1 + AT(ballot, record)))
#define OF_ANOTHER(senders) (((senders) & ~(1 << me)) != 0)
#define MAJORITY(senders) ((senders) == 3 || (senders) >= 5)
#define IN(ballot, record) MAJORITY(ACCEPTED[AT(ballot, record)])
#if BALLOTS == 1
#define CERTIFIED(record) IN(0, record)
#elif BALLOTS == 2
#define CERTIFIED(record) (IN(0, record) || IN(1, record))
#elif BALLOTS == 3
#define CERTIFIED(record) (IN(0, record) || IN(1, record) || IN(2, record))
#else
#define CERTIFIED(record) (IN(0, record) || IN(1, record) || IN(2, record) || IN(3, record))
#endif

byte PREPARE[BALLOTS];            /* senders */
short PROMISE[VOTERS * BALLOTS];  /* by VOTERS * ballot + voter: what is accepted; to the sender of the PREPARE */
byte PROPOSE[2 * BALLOTS];        /* by AT: senders */
byte ACCEPTED[2 * BALLOTS];       /* by AT: senders */
byte DECIDE;                      /* bit 1 << record */

/* ---- What nobody knows and the assertions need. Functions of the sets, so they add no states. ---- */

short chosen = NONE; /* the record with a majority of ACCEPTED in one ballot */
short chosen_in = NONE;

#ifdef AGREEMENT_ONLY
#define CLAIM(condition) skip
#else
#define CLAIM(condition) assert(condition)
#endif

/* dp_commit_owns */
#if MUTATION == 1
#define OWNS(ballot) ((ballot) == 0 || (ballot) % VOTERS == me)
#elif MUTATION == 2
#define OWNS(ballot) true
#else
#define OWNS(ballot) ((ballot) % VOTERS == me)
#endif

#define MAY_VOTE (!op && outcome == NONE)

/* ---- Speaking ---- */

inline say(ballot)
{
    spoken = (ballot > spoken -> ballot : spoken);
    CLAIM(durable_promised >= ballot);
}

inline send_promise()
{
    say(promised);
    CLAIM(durable_accepted == accepted);
    if
    :: accepted == NONE -> PROMISE[VOTERS * promised + me] = PROMISE[VOTERS * promised + me] | 1
    :: else ->
        PROMISE[VOTERS * promised + me] = PROMISE[VOTERS * promised + me] | ACCEPT_BIT(accepted, record)
    fi
}

inline send_accepted()
{
    say(accepted);
    CLAIM(durable_accepted == accepted && durable_record == record);
    CLAIM((ACCEPTED[AT(accepted, 1 - record)] & (1 << me)) == 0); /* one record per ballot */
    ACCEPTED[AT(accepted, record)] = ACCEPTED[AT(accepted, record)] | (1 << me);
    if
    :: MAJORITY(ACCEPTED[AT(accepted, record)]) ->
        assert(chosen == NONE || chosen == record); /* at most one record is decided */
        if
        :: chosen_in == NONE || accepted < chosen_in -> chosen_in = accepted
        :: else -> skip
        fi;
        chosen = record;
#ifdef CANARY
        assert(!(accepted == CANARY && PROPOSE[AT(0, record)] != 0 && PROPOSE[AT(1, 1 - record)] != 0));
#endif
    :: else -> skip
    fi
}

inline send_propose()
{
#if MUTATION != 6
    CLAIM(durable_accepted == ballot && durable_record == record);
#endif
    CLAIM(chosen == NONE || ballot <= chosen_in || record == chosen); /* what is decided stays decided */
    PROPOSE[AT(ballot, record)] = PROPOSE[AT(ballot, record)] | (1 << me)
}

/* dp_commit_write_row: the row is on its way; what it holds is the state, which does not change meanwhile. */
inline write_row()
{
    op = true
}

inline row_is_on_disk()
{
#if MUTATION == 3
    durable_promised = accepted;
#else
    durable_promised = promised;
#endif
#if MUTATION == 4
    durable_accepted = NONE;
    durable_record = NONE
#else
    durable_accepted = accepted;
    durable_record = record
#endif
}

/* ---- The acceptor ---- */

/* dp_commit_on_prepare, a PREPARE at or above the promise */
inline on_prepare(b)
{
    if
    :: b == accepted && durable_accepted == b -> send_accepted()
    :: !(b == accepted && durable_accepted == b) && b == durable_promised && durable_accepted == accepted ->
        send_promise()
    :: !(b == accepted && durable_accepted == b) && !(b == durable_promised && durable_accepted == accepted) ->
        if
        :: b == promised && phase != DP_COMMIT_IDLE -> skip
        :: else ->
            promised = b;
            phase = DP_COMMIT_IDLE;
            forced = NONE;
#if MUTATION == 3
            send_promise()
#else
            promise_to = true;
            write_row()
#endif
        fi
    fi
}

/* dp_commit_on_propose, a PROPOSE at or above the promise that the judge lets pass */
inline on_propose(b, r)
{
    if
    :: b == accepted && r == record && durable_accepted == b -> send_accepted()
#if MUTATION != 10
    :: b == accepted && r != record -> skip
    :: !(b == accepted && (r != record || durable_accepted == b)) ->
#else
    :: !(b == accepted && r == record && durable_accepted == b) ->
#endif
        promised = (b > promised -> b : promised);
        accepted = b;
        record = r;
        phase = DP_COMMIT_IDLE;
        forced = NONE;
        write_row();
#if MUTATION == 4
        send_accepted()
#else
        tell_accepted = true
#endif
    fi
}

/* ---- The owner of a ballot ---- */

/* accept_own in commit_owner.c */
inline accept_own(r)
{
    promised = ballot;
    accepted = ballot;
    record = r;
    forced = NONE;
    phase = DP_COMMIT_ACCEPTING;
    write_row();
#if MUTATION == 6
    send_propose()
#endif
}

/* take_promise in commit_owner.c: with the own promise, which came first, one more is a majority of three. */
inline take_promise(b, r)
{
    phase = DP_COMMIT_CHOOSING;
#if MUTATION == 7
    forced = NONE
#else
    if
#if MUTATION == 8
    :: b >= 0 && (accepted < 0 || b < accepted) -> forced = r
#else
    :: b > accepted -> forced = r
#endif
    :: else -> forced = record
    fi
#endif
}

/* dp_commit_stored and dp_commit_owner_stored */
inline on_stored()
{
    op = false;
    row_is_on_disk();
    if
    :: promise_to -> promise_to = false; send_promise()
    :: else -> skip
    fi;
    if
    :: tell_accepted -> tell_accepted = false; send_accepted()
    :: else -> skip
    fi;
    if
    :: phase == DP_COMMIT_PROMISING ->
        phase = DP_COMMIT_PREPARING;
        say(ballot);
        PREPARE[ballot] = PREPARE[ballot] | (1 << me)
    :: phase == DP_COMMIT_ACCEPTING ->
        phase = DP_COMMIT_PROPOSING;
#if MUTATION != 6
        send_propose();
#endif
        send_accepted()
    :: else -> skip
    fi
}

inline on_write_failed()
{
    op = false;
    promise_to = false;
    tell_accepted = false;
    if
    :: phase == DP_COMMIT_PROMISING || phase == DP_COMMIT_ACCEPTING -> phase = DP_COMMIT_IDLE; ballot = NONE
    :: else -> skip
    fi
}

/* The process is gone and back: dp_commit_restore, dp_commit_begin. */
inline crash()
{
    op = false;
    promise_to = false;
    tell_accepted = false;
    promised = durable_promised;
    accepted = durable_accepted;
    record = durable_record;
    phase = DP_COMMIT_IDLE;
    ballot = NONE;
    forced = NONE;
    outcome = NONE;
    CLAIM(promised >= spoken); /* a promise is never lowered, whatever was lost */
    CLAIM(accepted <= promised)
}

/* dp_commit_look, or a DECIDE: either is a majority of signed votes. */
inline learn(r)
{
    CLAIM(r == chosen);
    outcome = r;
    phase = DP_COMMIT_IDLE;
    ballot = NONE;
    forced = NONE;
    DECIDE = DECIDE | (1 << r);
    CLAIM(DECIDE != 3)
}

#define DECIDED(r) ((DECIDE & (1 << (r))) != 0 || CERTIFIED(r))

#if MUTATION == 9
#define ACCEPTABLE(b) true
#else
#define ACCEPTABLE(b) ((b) >= promised)
#endif

#define TAKES_PREPARE(b) \
    :: d_step { MAY_VOTE && OF_ANOTHER(PREPARE[b]) && (b) >= promised -> on_prepare(b) }
#define TAKES_PROPOSE(b, r) \
    :: d_step { MAY_VOTE && OF_ANOTHER(PROPOSE[AT(b, r)]) && ACCEPTABLE(b) -> on_propose(b, r) }
#define BIDS(b) \
    :: d_step { MAY_VOTE && OWNS(b) && (b) > promised -> \
           ballot = b; promised = b; forced = NONE; phase = DP_COMMIT_PROMISING; write_row() }
#define HEARS(bits) \
    (((PROMISE[VOTERS * ballot + (me + 1) % VOTERS] | PROMISE[VOTERS * ballot + (me + 2) % VOTERS]) & (bits)) != 0)
#define TAKES_PROMISE(bits, b, r) \
    :: d_step { MAY_VOTE && phase == DP_COMMIT_PREPARING && HEARS(bits) -> take_promise(b, r) }

active [VOTERS] proctype voter()
{
    short promised = NONE; /* dp_commit.state */
    short accepted = NONE;
    short record = NONE;
    short durable_promised = NONE; /* dp_commit.durable, and the row */
    short durable_accepted = NONE;
    short durable_record = NONE;
    mtype phase = DP_COMMIT_IDLE;
    short ballot = NONE;
    short forced = NONE; /* dp_commit.value, once promises force it */
    short outcome = NONE;
    short spoken = NONE; /* the highest ballot this voter has promised aloud */
    bool op;             /* a write is under way */
    bool promise_to;
    bool tell_accepted;

end: /* With the ballots used up there may be nothing left to do. */
    do
    TAKES_PROPOSE(0, X)
    TAKES_PROPOSE(0, Y)
    TAKES_PROMISE(1, NONE, NONE)
    TAKES_PROMISE(ACCEPT_BIT(0, X), 0, X)
    TAKES_PROMISE(ACCEPT_BIT(0, Y), 0, Y)
#if BALLOTS > 1
    TAKES_PREPARE(1)
    TAKES_PROPOSE(1, X)
    TAKES_PROPOSE(1, Y)
    TAKES_PROMISE(ACCEPT_BIT(1, X), 1, X)
    TAKES_PROMISE(ACCEPT_BIT(1, Y), 1, Y)
    BIDS(1)
#endif
#if BALLOTS > 2
    TAKES_PREPARE(2)
    TAKES_PROPOSE(2, X)
    TAKES_PROPOSE(2, Y)
    TAKES_PROMISE(ACCEPT_BIT(2, X), 2, X)
    TAKES_PROMISE(ACCEPT_BIT(2, Y), 2, Y)
    BIDS(2)
#endif
#if BALLOTS > 3
    TAKES_PREPARE(3)
    TAKES_PROPOSE(3, X)
    TAKES_PROPOSE(3, Y)
    BIDS(3)
#endif
    /* dp_commit_propose: ballot 0 needs no promises, and the host is asked for a record. */
    :: d_step { MAY_VOTE && OWNS(0) && promised == NONE ->
           ballot = 0; forced = NONE; phase = DP_COMMIT_CHOOSING }
    :: d_step { MAY_VOTE && phase == DP_COMMIT_CHOOSING && forced != Y -> accept_own(X) }
    :: d_step { MAY_VOTE && phase == DP_COMMIT_CHOOSING && forced != X -> accept_own(Y) }
#ifdef LIAR
    :: d_step { me == 0 && PROPOSE[AT(0, X)] != 0 -> PROPOSE[AT(0, Y)] = PROPOSE[AT(0, Y)] | 1 }
    :: d_step { me == 0 && PROPOSE[AT(0, Y)] != 0 -> PROPOSE[AT(0, X)] = PROPOSE[AT(0, X)] | 1 }
#endif
    :: d_step { op -> on_stored() }
#ifdef FAILED_WRITES
    :: d_step { op -> on_write_failed() }
#endif
    :: d_step { op -> row_is_on_disk(); crash() }
    :: d_step { op || phase != DP_COMMIT_IDLE || outcome != NONE || promised != durable_promised ||
                accepted != durable_accepted || record != durable_record -> crash() }
    :: d_step { outcome == NONE && DECIDED(X) -> learn(X) }
    :: d_step { outcome == NONE && DECIDED(Y) -> learn(Y) }
    od
}
