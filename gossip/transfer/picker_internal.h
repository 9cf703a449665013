/* The inside of the chunk picker, shared by picker.c (wanted objects, messages), picker_ask.c (the
 * choice of a holder), picker_wait.c (how long to wait), picker_trust.c (holders to avoid) and
 * picker_serve.c (serving, checks). No other file includes it. */
#ifndef DP_GOSSIP_TRANSFER_PICKER_INTERNAL_H
#define DP_GOSSIP_TRANSFER_PICKER_INTERNAL_H

#include "base/rng.h"
#include "gossip/transfer/picker.h"

enum {
    HOLDER_WORDS = DP_MEMBERS_MAX / 64,
    FAULTS_MAX = 16, /* holders with a bad chunk that are remembered per object */
    CLASSES = 5      /* chunk sizes 256 KiB, 512 KiB .. 4 MiB */
};

typedef struct dp_fault {
    uint32_t member;
    uint32_t bad;
} dp_fault;

typedef struct dp_want {
    bool used;
    bool begun; /* size and leaves are known, the driver stores */
    bool all;   /* every linked member may hold it */
    dp_hash root;
    uint64_t size; /* 0: unknown */
    uint64_t told; /* the size that a holder tells; 0: none */
    uint64_t order;
    dp_object_use use;
    dp_priority priority;
    uint32_t n_chunks;
    uint32_t n_have;
    uint32_t failures;  /* waits in a row that ended in vain: the next ones are longer */
    uint32_t lacking;   /* answers that somebody lacks it */
    uint32_t asked_all; /* times that all were asked for size and leaves in vain */
    uint32_t info_from; /* the member that was asked; DP_MEMBER_NONE: none */
    uint32_t ahead;     /* chunks that may be under way with the answer */
    uint32_t info_next; /* where the search for the next one starts */
    dp_time info_deadline;
    dp_time pause_until; /* after an error of our own disk */
    dp_time forgive_at;  /* all possible holders said no: then they are asked again; zero: not so */
    uint32_t forgiven;   /* times: each wait is twice the one before */
    /* is a holder linked? else everybody is asked from then on; NEVER: they are */
    dp_time lonely_at;
    dp_time pardon_at; /* only liars hold it: then they are asked once more; zero: not needed */
    uint32_t pardons;  /* so far: each wait is twice the one before */
    uint64_t holders[HOLDER_WORDS];
    uint64_t banned[HOLDER_WORDS];
    uint64_t silent[HOLDER_WORDS]; /* asked for size and leaves, in vain; the others come first */
    uint32_t n_faults;
    dp_fault faults[FAULTS_MAX];
    uint8_t have[DP_CHUNKS_MAX];
} dp_want;

typedef struct dp_flight {
    bool used;
    bool hedge; /* the second request for this chunk */
    uint32_t wanted;
    uint32_t chunk;
    uint32_t member;
    dp_time sent;
    dp_time hedge_at;
    dp_time deadline;
} dp_flight;

typedef struct dp_serving {
    uint32_t tokens;
    dp_time filled;
} dp_serving;

struct dp_picker {
    const dp_members *members;
    uint32_t members_max;
    uint64_t update_bytes_max; /* as in the config */
    uint64_t state_bytes_max;
    dp_rng rng;
    uint64_t order;
    uint32_t n_wanted;
    dp_want wants[DP_WANTED_MAX];
    uint8_t queue[DP_WANTED_MAX]; /* n_wanted indexes of wants, by priority, then by order */
    uint32_t n_flights;
    dp_flight flights[DP_FLIGHTS_MAX];
    dp_span spans[CLASSES];
    uint32_t hedge_room; /* in DP_HEDGE_SHARE parts of a chunk that may be asked of two */
    uint64_t n_came;     /* chunks, ever; */
    uint64_t n_hedged;   /* ... asked of a second holder */
    dp_time rated;       /* until then bytes that came are in rate_bytes and rate_us */
    uint64_t rate_bytes; /* of the last seconds in which chunks were under way, */
    uint64_t rate_us;    /* ... and these */
    /* per member: twice the time of its chunks, or of a wait in vain; 0: unknown */
    uint32_t *patience_us;
    uint32_t *chunk_us; /* per member: smoothed chunk time, doubled by a time-out; 0: unknown */
    uint8_t *windows;   /* per member: chunks under way at once beyond DP_FLIGHTS_PER_HOLDER */
    dp_serving *servings;
    dp_serving guests;             /* all of them together */
    dp_hash leaves[DP_CHUNKS_MAX]; /* of the OBJECT_BEGIN of this step */
};

static inline bool dp_want_bit(const uint64_t *bits, uint32_t index)
{
    return (bits[index / 64] >> (index % 64) & 1U) != 0;
}

static inline void dp_want_set_bit(uint64_t *bits, uint32_t index, bool on)
{
    const uint64_t mask = 1ULL << (index % 64);

    bits[index / 64] = on ? bits[index / 64] | mask : bits[index / 64] & ~mask;
}

static inline uint32_t dp_want_index(const dp_picker *picker, const dp_want *want)
{
    return (uint32_t)(want - picker->wants);
}

/* picker_ask.c. Chunks under way from this member. */
uint32_t dp_picker_flights_of(const dp_picker *picker, uint32_t member);
/* member: linked. */
bool dp_picker_may_ask(const dp_picker *picker, const dp_want *want, uint32_t member);
/* Uses the free room, objects in order of priority, then of arrival. */
void dp_picker_fill(dp_picker *picker, dp_time now, dp_out *out);
/* Of this want, this chunk, this member; DP_MEMBER_NONE: of any. */
void dp_picker_end_flights(dp_picker *picker, uint32_t want, uint32_t chunk, uint32_t member);

/* picker_wait.c. Is somebody linked but this member known to have it? */
bool dp_picker_has_another(const dp_picker *picker, const dp_want *want, uint32_t member);
/* Twice the 95th percentile, doubled for each wait in vain before. Where no other holder is known,
 * at least the known time of this member: behind a thin line among fast ones each request that is
 * given up too soon is one more copy before the next answer. */
uint64_t dp_picker_chunk_wait(dp_picker *picker, const dp_want *want, uint32_t member);
/* When a last chunk is asked of a second holder: at the time by which most others had come. */
uint64_t dp_picker_hedge_wait(dp_picker *picker, const dp_want *want);
/* When one that nobody else could be asked for is looked at again. */
dp_time dp_picker_hedge_again(dp_picker *picker, const dp_want *want, dp_time now);
/* The wait for an answer to GET_INFO before the next member is asked. Short, since the answer is
 * small and the first one counts; doubled each time all were asked. */
uint64_t dp_picker_info_wait(const dp_picker *picker, const dp_want *want, uint32_t member);
/* A chunk has come from member; one has not come in time. */
void dp_picker_measure(dp_picker *picker, const dp_want *want, uint32_t chunk, uint32_t member,
                       dp_time now);
void dp_picker_chunk_late(dp_picker *picker, const dp_flight *f);
/* The first chunk is asked for while none is under way: from now on time counts. */
void dp_picker_rate_begin(dp_picker *picker, dp_time now);
/* So many chunks of this object may be under way from member at once. */
uint32_t dp_picker_window(const dp_picker *picker, const dp_want *want, uint32_t member);

/* picker_trust.c. May a linked member be asked for it? */
bool dp_picker_has_holder(const dp_picker *picker, const dp_want *want);
void dp_picker_note_holder(const dp_picker *picker, uint32_t member, const char *cause,
                           dp_out *out);
/* A holder says that it has it not, or is too busy. */
void dp_picker_lacks(const dp_picker *picker, dp_want *want, uint32_t member, dp_time now);
/* No member may be asked because all linked ones lacked it: the time at which they may be asked
 * again. */
void dp_picker_plan_forgiving(const dp_picker *picker, dp_want *want, dp_time now);
/* Members that lacked the object may be asked again, except liars. */
void dp_picker_ask_lacking(dp_want *want);
/* member says that it has it now: it is asked again, unless it lied. True: this is news. */
bool dp_picker_believe(dp_want *want, uint32_t member);
/* No holder was left for a while: those that lacked it may have it by now; liars stay out. */
void dp_picker_forgive(const dp_picker *picker, dp_want *want);
/* weight more bad answers of a holder. */
void dp_picker_blame(dp_picker *picker, dp_want *want, uint32_t member, uint32_t weight,
                     const char *cause, dp_out *out);
/* Only liars are left. Their disks may be well again, and an accepted record may need an object
 * that no other node holds: they are asked again, at growing intervals, and one more lie is
 * enough. */
void dp_picker_plan_pardon(const dp_picker *picker, dp_want *want, dp_time now);
void dp_picker_pardon(const dp_picker *picker, dp_want *want);

#endif
