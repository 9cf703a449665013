/* The transfer: which objects this node is fetching, which chunk it requests next, and from which
 * peer. The bytes pass through the driver, never here. A state machine without I/O.
 *
 * Per object: GET_INFO from a holder gives size and leaves (checked against the root by the
 * driver), OBJECT_BEGIN, then GET_CHUNK over all holders, rarest resources first: 4 chunks under
 * way per holder, on a line that is far and not full up to 16, and 16 in all, objects in order of
 * priority, then of arrival, with room for data and a state behind updates. Known holders go before
 * members that only may have the object; those are tried one at a time, and half as readily after
 * each that lacks it. A member that lacks it says so, and the next is asked at once, as after 250
 * ms of silence. If all lack it, they are asked again after 250 ms, then after ever longer waits,
 * or when they say that they have it. A chunk that does not come within twice the 95th percentile
 * of measured chunk times is asked of another; when all remaining chunks are under way, those later
 * than that percentile are asked of a second holder (hedge; Dean and Barroso 2013), of all chunks
 * at most one in 16. A holder with two bad chunks is left alone for this object. An object without
 * holders waits: a caller that learns of one calls dp_picker_holder. */
#ifndef DP_GOSSIP_TRANSFER_PICKER_H
#define DP_GOSSIP_TRANSFER_PICKER_H

#include "gossip/event/event.h"
#include "gossip/member/members.h"

enum {
    DP_WANTED_MAX = 64,        /* objects at once */
    DP_FLIGHTS_PER_HOLDER = 4, /* at first, and on a line that more would only wait on */
    DP_FLIGHTS_MAX = 16,       /* chunks under way in all */
    DP_BAD_CHUNKS_MAX = 2,     /* then a holder is left alone */
    DP_SERVES_PER_SECOND = 256 /* requests of one peer that are served, with a burst of as many */
};
/* One chunk in so many may be asked of a second holder, and so many before others have come.
 * Measured in virtual time (test_picker_hedge.c: four holders, one of which stalls): without this
 * limit 1.27 requests for each chunk, with it 1.07; an object takes 180 ms at the 99th percentile,
 * and 355 ms when nobody is asked a second time. */
enum { DP_HEDGE_SHARE = 16, DP_HEDGES_AT_ONCE = 8 };
#define DP_FLIGHT_BYTES_MAX                                                                        \
    (8ULL * 1024 * 1024) /* of one object under way from one holder, beyond the first four */
#define DP_CHUNK_WAIT_US_MIN (250 * DP_MS)
#define DP_CHUNK_WAIT_US_MAX (30 * DP_SECOND)

typedef enum dp_priority {
    DP_PRIORITY_ROUND = 0, /* blobs of the current round and of a pair exchange */
    DP_PRIORITY_REPLAY,    /* blobs of earlier rounds */
    DP_PRIORITY_DATA,      /* tokenizer and tokens */
    DP_PRIORITY_STATE,
    DP_PRIORITY_COUNT
} dp_priority;

typedef struct dp_picker dp_picker;

typedef struct dp_picker_config {
    const dp_members *members; /* must outlive this */
    uint32_t members_max;
    uint64_t seed;
    /* no update, no state is longer: a holder that gives a longer one is bad; 0: no bound */
    uint64_t update_bytes_max;
    uint64_t state_bytes_max;
} dp_picker_config;

DP_MUST dp_status dp_picker_open(dp_picker **picker, const dp_picker_config *config);
void dp_picker_close(dp_picker *picker);

/* Fetch this object unless it is wanted already; then only the priority may rise. size 0: not
 * known. A size that differs from what a holder tells makes that holder bad. DP_TOOBIG when
 * DP_WANTED_MAX are wanted. The caller knows its own objects: a whole object must not be wanted. */
DP_MUST dp_status dp_picker_want(dp_picker *picker, dp_time now, const dp_hash *root, uint64_t size,
                                 dp_object_use use, dp_priority priority, dp_out *out);
/* A message tells how large a wanted object is. That binds its author (dp_claim_sized) and no
 * holder. If only one member is known to have the object, as many of its first chunks can be asked
 * for together with size and leaves, which saves a round trip. Not for objects that their author
 * may refuse at first (relay.h). */
void dp_picker_expect(dp_picker *picker, const dp_hash *root, uint64_t bytes);
/* member (an index) has this object, as it or a record says. Of one not wanted nothing is
 * remembered. */
void dp_picker_holder(dp_picker *picker, dp_time now, const dp_hash *root, uint32_t member,
                      dp_out *out);
/* Every linked member might have it (data that everybody needs): ask around. */
void dp_picker_holders_all(dp_picker *picker, dp_time now, const dp_hash *root, dp_out *out);
/* The object is no longer wanted. Chunks that came stay with the driver. */
void dp_picker_cancel(dp_picker *picker, dp_time now, const dp_hash *root, dp_out *out);
bool dp_picker_wants(const dp_picker *picker, const dp_hash *root);
/* Wanted with this priority or a higher one, and of every linked member. */
bool dp_picker_asks_all(const dp_picker *picker, const dp_hash *root, dp_priority priority);
/* The wanted objects for which that does not hold, for a priority of objects of rounds: their
 * number, and roots in no order. */
uint32_t dp_picker_hesitant(const dp_picker *picker, dp_priority priority,
                            dp_hash roots[DP_WANTED_MAX]);
/* Wanted, and how large it is is not known but by hearsay. */
bool dp_picker_unsure(const dp_picker *picker, const dp_hash *root);
/* Wanted, and nobody has given even its size and leaves. */
bool dp_picker_waits(const dp_picker *picker, const dp_hash *root);

/* Events of the driver. Those about objects that are not wanted are ignored. dp_picker_object ends
 * the want. A chunk that the driver has already is reported at once as DP_OK when asked for.
 * DP_NOTFOUND as the answer to GET_INFO: that member lacks the object. */
void dp_picker_info(dp_picker *picker, dp_time now, const dp_event *event, dp_out *out);
void dp_picker_chunk(dp_picker *picker, dp_time now, const dp_event *event, dp_out *out);
void dp_picker_object(dp_picker *picker, dp_time now, const dp_hash *root, dp_out *out);
void dp_picker_link_up(dp_picker *picker, dp_time now, uint32_t member, dp_out *out);
/* The row of this member, which is not linked, belongs to another peer from now on. */
void dp_picker_forget(dp_picker *picker, uint32_t member);
void dp_picker_link_down(dp_picker *picker, dp_time now, uint32_t member, dp_out *out);
void dp_picker_tick(dp_picker *picker, dp_time now, dp_out *out);
dp_time dp_picker_wake(const dp_picker *picker);

/* May one more request of this peer be served, of any kind? Takes it from the peer's rest of this
 * second. */
bool dp_picker_serve_allows(dp_picker *picker, dp_time now, uint32_t member);

/* A peer asks (INFO_GET, CHUNK_GET as decoded): becomes DP_DO_SERVE_* unless it asks too fast.
 * False: refused. */
bool dp_picker_serve_info(dp_picker *picker, dp_time now, uint32_t member, const dp_hash *root,
                          dp_out *out);
bool dp_picker_serve_chunk(dp_picker *picker, dp_time now, uint32_t member, const dp_hash *root,
                           uint32_t index, dp_out *out);

/* Sum of the known sizes of wanted objects, less the bytes that have come. */
uint64_t dp_picker_bytes_waiting(const dp_picker *picker);
/* Of one object: the bytes that have come while it is fetched; 0 of any other. */
uint64_t dp_picker_bytes_of(const dp_picker *picker, const dp_hash *root);
/* Bytes per second that came of late, while chunks were under way; 0: nothing was measured. */
uint64_t dp_picker_rate(const dp_picker *picker);
/* Chunks that came, ever, and those asked of a second holder because the first was late. */
uint64_t dp_picker_came(const dp_picker *picker);
uint64_t dp_picker_hedged(const dp_picker *picker);
/* Sum of the known sizes of wanted objects; the members from which chunks are under way. */
uint64_t dp_picker_bytes_wanted(const dp_picker *picker);
uint32_t dp_picker_sources(const dp_picker *picker);
uint32_t dp_picker_count(const dp_picker *picker);
/* 95th percentile of measured chunk times; 0 before the first. */
uint64_t dp_picker_chunk_p95(const dp_picker *picker);

DP_MUST dp_status dp_picker_check(const dp_picker *picker, dp_why *why);

#endif
