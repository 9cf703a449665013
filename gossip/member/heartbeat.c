#include "gossip/member/heartbeat.h"

#include <string.h>

#include "base/assert.h"
#include "base/mutation.h"
#include "gossip/core/msg.h"

/* A HEARTBEAT, little-endian:
 *     0  u8   type    1  u8 version
 *     2  32   voter
 *    34  u64  incarnation of its process
 *    42  u64  sequence within the incarnation, from 1
 *    50  u32  tag of the voter set
 *    54  u64  slot of its chain head
 *    62  u64  rounds decided
 *    70  u64  its wall clock, milliseconds since 1970
 *    78  u8   1 if it hears a majority of the voters, else 0
 *    79  u8   bit per voter that it hears on the voter's own link, in the order of the set
 *    80  64   signature by the voter's identity key over run id and bytes 0..79, domain
 *        "dpnode/beat/1" */
enum { BEAT_SIGNED_BYTES = DP_HEARTBEAT_BYTES - DP_SIGNATURE_BYTES };

_Static_assert(BEAT_SIGNED_BYTES == 80, "as drawn above");

static const char beat_domain[] = "dpnode/beat/1";

typedef struct beat_fields {
    dp_peer peer;
    uint64_t incarnation;
    uint64_t sequence;
    uint32_t tag;
    uint64_t slot;
    uint64_t round;
    uint64_t wall_ms;
    bool quorum;
    uint8_t heard;
} beat_fields;

static dp_status read_fields(dp_view bytes, beat_fields *fields)
{
    if (bytes.size != DP_HEARTBEAT_BYTES) {
        return DP_BADMSG;
    }
    dp_reader reader = dp_reader_of(bytes);
    const uint8_t type = dp_read_u8(&reader);
    const uint8_t version = dp_read_u8(&reader);
    if (type != DP_MSG_HEARTBEAT) {
        return DP_BADMSG;
    }
    if (version != DP_MSG_VERSION) {
        return DP_VERSION;
    }
    dp_read_bytes(&reader, fields->peer.bytes, sizeof fields->peer.bytes);
    fields->incarnation = dp_read_u64(&reader);
    fields->sequence = dp_read_u64(&reader);
    fields->tag = dp_read_u32(&reader);
    fields->slot = dp_read_u64(&reader);
    fields->round = dp_read_u64(&reader);
    fields->wall_ms = dp_read_u64(&reader);
    const uint8_t quorum = dp_read_u8(&reader);
    fields->quorum = quorum == 1;
    fields->heard = dp_read_u8(&reader);
    return quorum <= 1 && fields->sequence > 0 ? DP_OK : DP_BADMSG;
}

/* The signed bytes: the run id, then the message up to the signature. */
static dp_view signed_part(const dp_heartbeat *beat, const uint8_t *message,
                           uint8_t scratch[DP_HASH_BYTES + BEAT_SIGNED_BYTES])
{
    memcpy(scratch, beat->run.bytes, DP_HASH_BYTES);
    memcpy(scratch + DP_HASH_BYTES, message, BEAT_SIGNED_BYTES);
    return dp_view_of(scratch, DP_HASH_BYTES + BEAT_SIGNED_BYTES);
}

static bool is_newer(const dp_heartbeat_voter *voter, const beat_fields *fields)
{
    if (dp_broken(56)) { /* An earlier life may have come further in its count. */
        return fields->sequence > voter->sequence;
    }
    return fields->incarnation > voter->incarnation ||
           (fields->incarnation == voter->incarnation && fields->sequence > voter->sequence);
}

/* Three beats. */
static uint64_t fresh_us(const dp_heartbeat *beat, dp_time now)
{
    return 3 *
           (dp_idle_is_patient(&beat->idle, now) ? DP_IDLE_BEAT_US : beat->pace * DP_HEARTBEAT_US);
}

static uint64_t interval_us(const dp_heartbeat *beat, dp_time now)
{
    return dp_idle_is_quiet(&beat->idle, now) ? DP_IDLE_BEAT_US : beat->pace * DP_HEARTBEAT_US;
}

static bool fresh_at(const dp_heartbeat *beat, dp_time now, dp_time arrived)
{
    return arrived.us != 0 && dp_time_between(arrived, now) < fresh_us(beat, now);
}

uint32_t dp_heartbeat_pace(uint32_t round_ms)
{
    const uint32_t pace = round_ms / 10000;

    return pace < 1 ? 1 : pace > 4 ? 4 : pace;
}

void dp_heartbeat_init(dp_heartbeat *beat, const dp_heartbeat_config *config)
{
    const uint32_t pace = config->pace > 0 ? config->pace : 1;

    dp_assert(pace <= 4);
    *beat = (dp_heartbeat){
        .run = config->run,
        .self = config->self,
        .incarnation = config->incarnation,
        .crypto = config->crypto,
        .pace = pace,
        .fallback_us = config->fallback_us != 0 ? config->fallback_us
                                                : DP_SECOND + 3 * (uint64_t)pace * DP_HEARTBEAT_US,
        .hold_us = config->hold_us,
        .own = DP_VOTERS_MAX,
        .beat_at = DP_NEVER,
    };
}

void dp_heartbeat_idle(dp_heartbeat *beat, bool idle, dp_time now)
{
    dp_assert(beat != NULL);
    if (!idle && dp_idle_is_quiet(&beat->idle, now) && beat->own < DP_VOTERS_MAX) {
        beat->beat_at = now;
    }
    dp_idle_set(&beat->idle, idle, now);
}

void dp_heartbeat_hold(dp_heartbeat *beat, uint64_t hold_us)
{
    beat->hold_us = hold_us;
}

bool dp_heartbeat_fresh(const dp_heartbeat *beat, dp_time now, uint32_t voter)
{
    dp_assert(voter < DP_VOTERS_MAX);
    dp_assert(voter < beat->n_voters);
    return voter == beat->own || fresh_at(beat, now, beat->voters[voter].arrived);
}

uint8_t dp_heartbeat_heard(const dp_heartbeat *beat, dp_time now)
{
    uint8_t bits = 0;

    for (uint32_t i = 0; i < beat->n_voters; i++) {
        if (dp_heartbeat_fresh(beat, now, i)) {
            bits = (uint8_t)(bits | 1U << i);
        }
    }
    return bits;
}

/* Voters heard on their own links. Only these are told to others, not forwarded ones: else the
 * others would stop forwarding as soon as it works. */
static uint8_t hears_directly(const dp_heartbeat *beat, dp_time now)
{
    uint8_t bits = 0;

    for (uint32_t i = 0; i < beat->n_voters; i++) {
        if (i == beat->own || fresh_at(beat, now, beat->voters[i].direct)) {
            bits = (uint8_t)(bits | 1U << i);
        }
    }
    return bits;
}

void dp_heartbeat_clock(dp_heartbeat *beat, uint64_t wall_ms)
{
    beat->wall_ms = wall_ms;
}

uint64_t dp_heartbeat_agreed_ms(const dp_heartbeat *beat, dp_time now)
{
    uint64_t clocks[DP_VOTERS_MAX]; /* latest first */
    uint32_t count = 0;

    for (uint32_t i = 0; i < beat->n_voters; i++) {
        const dp_heartbeat_voter *const voter = &beat->voters[i];
        uint64_t clock = beat->wall_ms;
        if (i != beat->own) {
            if (!fresh_at(beat, now, voter->arrived)) {
                continue;
            }
            clock = voter->wall_ms + dp_time_between(voter->arrived, now) / DP_MS;
        }
        uint32_t at = count++;
        for (; at > 0 && clocks[at - 1] < clock; at--) {
            clocks[at] = clocks[at - 1];
        }
        clocks[at] = clock;
    }
    const uint32_t majority = beat->n_voters / 2 + 1;
    return count == 0 ? beat->wall_ms : clocks[(count < majority ? count : majority) - 1];
}

static uint32_t count_bits(uint8_t bits)
{
    uint32_t count = 0;

    for (; bits != 0; bits = (uint8_t)(bits & (bits - 1))) {
        count++;
    }
    return count;
}

void dp_heartbeat_enough(dp_heartbeat *beat, uint32_t enough)
{
    beat->enough = enough;
}

/* How many beats that say quorum this node waits for. */
static uint32_t needed(const dp_heartbeat *beat)
{
    const uint32_t majority = beat->n_voters / 2 + 1;

    dp_assert(beat->n_voters <= DP_VOTERS_MAX);
    return beat->own == DP_VOTERS_MAX && beat->enough > 0 && beat->enough < majority ? beat->enough
                                                                                     : majority;
}

bool dp_heartbeat_wants_riders(const dp_heartbeat *beat, dp_time now)
{
    const bool all = beat->own < DP_VOTERS_MAX || beat->enough == 0;

    return count_bits(hears_directly(beat, now)) < (all ? beat->n_voters : needed(beat));
}

/* Does this node itself, a voter, hear a majority? */
static bool hears_majority(const dp_heartbeat *beat, dp_time now)
{
    return beat->own < DP_VOTERS_MAX &&
           2 * count_bits(dp_heartbeat_heard(beat, now)) > beat->n_voters;
}

/* Fresh beats that say quorum, the own opinion of a voter included, from a majority. */
static bool sees_quorum(const dp_heartbeat *beat, dp_time now)
{
    uint32_t saying = 0;

    for (uint32_t i = 0; i < beat->n_voters; i++) {
        saying += i == beat->own ? hears_majority(beat, now)
                                 : dp_heartbeat_fresh(beat, now, i) && beat->voters[i].quorum;
    }
    return saying >= needed(beat); /* One at least. */
}

static void move_opinion(dp_heartbeat *beat, dp_time now)
{
    const bool seen = sees_quorum(beat, now);

    if (seen) {
        if (beat->seen_since.us == 0) {
            beat->seen_since = now;
        }
        beat->seen_at = now;
    } else {
        beat->seen_since = (dp_time){0};
    }
    if (beat->changed.us != 0 && dp_time_between(beat->changed, now) < beat->hold_us) {
        return;
    }
    /* The founder, alone, waits for nobody's second beat. */
    const uint64_t back_us =
        beat->n_voters == 1 && beat->own == 0 ? 0 : 2 * (uint64_t)beat->pace * DP_HEARTBEAT_US;
    const bool wanted = beat->quorum
                            ? seen || dp_time_between(beat->seen_at, now) < beat->fallback_us
                            : seen && dp_time_between(beat->seen_since, now) >= back_us;
    if (wanted != beat->quorum) {
        beat->quorum = wanted;
        beat->changed = now;
        beat->changes++;
    }
}

/* Forwards a heartbeat of voter author to the linked voters that hear some voter, but not the
 * author. Only what arrived on the author's own link travels further this way, so it makes one hop;
 * PING and ACK do the rest. */
static void pass_on(const dp_heartbeat *beat, dp_time now, uint32_t author, dp_out *out)
{
    dp_view kept = {0};

    dp_assert(author < beat->n_voters);
    for (uint32_t i = 0; i < beat->n_voters; i++) {
        const dp_heartbeat_voter *const other = &beat->voters[i];
        const bool deaf = fresh_at(beat, now, other->direct) && other->heard != 0 &&
                          (other->heard >> author & 1U) == 0;
        if (i == author || i == beat->own || !deaf) {
            continue;
        }
        if (kept.size == 0) {
            kept = dp_out_keep(out, dp_view_of(beat->voters[author].message, DP_HEARTBEAT_BYTES));
        }
        dp_out_send(out, &other->peer, kept);
    }
}

dp_status dp_heartbeat_message(dp_heartbeat *beat, dp_time now, const dp_peer *from, dp_view bytes,
                               dp_out *out)
{
    beat_fields fields;
    uint8_t scratch[DP_HASH_BYTES + BEAT_SIGNED_BYTES];

    DP_TRY(read_fields(bytes, &fields));
    const uint32_t index = dp_heartbeat_find_voter(beat, &fields.peer);
    if (index == DP_VOTERS_MAX) {
        return DP_NOTFOUND;
    }
    dp_heartbeat_voter *const voter = &beat->voters[index];
    const bool direct = dp_peer_equal(from, &fields.peer);

    if (index == beat->own) {
        return DP_EXISTS; /* our own, come round */
    }
    if (!is_newer(voter, &fields)) {
        if (direct && voter->incarnation == fields.incarnation &&
            voter->sequence == fields.sequence) {
            voter->direct = now; /* the relayed copy was faster */
        }
        return DP_EXISTS;
    }
    if (!beat->crypto.verify(beat->crypto.context, fields.peer.bytes, beat_domain,
                             signed_part(beat, bytes.data, scratch),
                             bytes.data + BEAT_SIGNED_BYTES)) {
        return DP_BADSIG;
    }
    voter->incarnation = fields.incarnation;
    voter->sequence = fields.sequence;
    voter->arrived = now;
    voter->slot = fields.slot;
    voter->round = fields.round;
    voter->wall_ms = fields.wall_ms;
    /* A beat about another voter set tells that its author lives, and nothing about this set. */
    voter->quorum = fields.tag == beat->tag && fields.quorum;
    voter->heard = fields.tag == beat->tag ? fields.heard : 0;
    memcpy(voter->message, bytes.data, DP_HEARTBEAT_BYTES);
    if (direct) {
        voter->direct = now;
        pass_on(beat, now, index, out);
    } else {
        voter->passed = now;
        voter->via = *from;
    }
    move_opinion(beat, now);
    return DP_OK;
}

static void send_own(dp_heartbeat *beat, dp_time now, uint64_t slot, uint64_t round, dp_out *out)
{
    uint8_t scratch[DP_HASH_BYTES + BEAT_SIGNED_BYTES];
    dp_heartbeat_voter *const own = &beat->voters[beat->own];
    dp_writer writer = dp_writer_of(own->message, DP_HEARTBEAT_BYTES);

    own->incarnation = beat->incarnation;
    own->sequence = ++beat->sequence;
    own->arrived = now;
    own->slot = slot;
    own->round = round;
    own->wall_ms = beat->wall_ms;
    own->quorum = hears_majority(beat, now);
    own->heard = hears_directly(beat, now);
    dp_write_u8(&writer, DP_MSG_HEARTBEAT);
    dp_write_u8(&writer, DP_MSG_VERSION);
    dp_write_bytes(&writer, beat->self.bytes, sizeof beat->self.bytes);
    dp_write_u64(&writer, own->incarnation);
    dp_write_u64(&writer, own->sequence);
    dp_write_u32(&writer, beat->tag);
    dp_write_u64(&writer, slot);
    dp_write_u64(&writer, round);
    dp_write_u64(&writer, own->wall_ms);
    dp_write_u8(&writer, own->quorum ? 1 : 0);
    dp_write_u8(&writer, own->heard);
    dp_assert(writer.size == BEAT_SIGNED_BYTES);
    if (!beat->crypto.sign(beat->crypto.context, DP_KEY_IDENTITY, beat_domain,
                           signed_part(beat, own->message, scratch),
                           own->message + BEAT_SIGNED_BYTES)) {
        return; /* no identity key: this node cannot be heard */
    }
    dp_out_send_all(out, dp_out_keep(out, dp_view_of(own->message, DP_HEARTBEAT_BYTES)));
}

void dp_heartbeat_tick(dp_heartbeat *beat, dp_time now, uint64_t slot, uint64_t round, dp_out *out)
{
    if (beat->own < DP_VOTERS_MAX && dp_time_reached(now, beat->beat_at)) {
        send_own(beat, now, slot, round, out);
        /* From the plan, so that a busy loop does not slow the beat; from now after a gap. */
        beat->beat_at = dp_time_after(beat->beat_at, interval_us(beat, now));
        if (dp_time_reached(now, beat->beat_at)) {
            beat->beat_at = dp_time_after(now, interval_us(beat, now));
        }
    }
    move_opinion(beat, now);
}

dp_time dp_heartbeat_wake(const dp_heartbeat *beat)
{
    if (beat->n_voters == 0) {
        return DP_NEVER;
    }
    dp_time wake = beat->beat_at;
    if (beat->quorum && beat->seen_since.us == 0) {
        wake = dp_time_min(wake, dp_time_after(beat->seen_at, beat->fallback_us));
    } else if (beat->quorum) {
        /* Freshness ends without an event: look again when the oldest fresh beat may be stale. */
        wake = dp_time_min(wake, dp_time_after(beat->seen_at, beat->idle.idle
                                                                  ? DP_IDLE_BEAT_US
                                                                  : beat->pace * DP_HEARTBEAT_US));
    } else if (beat->seen_since.us != 0) {
        wake = dp_time_min(
            wake, dp_time_after(beat->seen_since, 2 * (uint64_t)beat->pace * DP_HEARTBEAT_US));
    }
    if (beat->changed.us != 0) {
        const dp_time free_at = dp_time_after(beat->changed, beat->hold_us);
        /* An opinion that may not move yet asks for no tick of its own. */
        if (wake.us < free_at.us && wake.us != beat->beat_at.us) {
            wake = dp_time_min(beat->beat_at, free_at);
        }
    }
    return wake;
}

bool dp_heartbeat_quorum(const dp_heartbeat *beat)
{
    return beat->quorum;
}

uint32_t dp_heartbeat_route(const dp_heartbeat *beat, dp_time now, uint32_t target, dp_peer *relays,
                            uint32_t most)
{
    dp_assert(target < beat->n_voters);
    const dp_heartbeat_voter *const wanted = &beat->voters[target];
    uint32_t found = 0;

    if (target == beat->own) {
        return 0;
    }
    /* A voter's own word that it does not hear us counts more than our hearing it. */
    const bool deaf = beat->own < DP_VOTERS_MAX && (wanted->heard >> beat->own & 1U) == 0;
    if (fresh_at(beat, now, wanted->direct) && !deaf) {
        return 0;
    }
    for (uint32_t i = 0; i < beat->n_voters && found < most; i++) {
        const dp_heartbeat_voter *const relay = &beat->voters[i];
        /* Hearing is taken to go both ways: links are connections. */
        if (i != target && i != beat->own && fresh_at(beat, now, relay->direct) &&
            (relay->heard >> target & 1U) != 0) {
            relays[found++] = relay->peer;
        }
    }
    if (found == 0 && most > 0 && fresh_at(beat, now, wanted->passed)) {
        relays[found++] = wanted->via;
    }
    return found;
}

void dp_heartbeat_write_heard(const dp_heartbeat *beat, dp_time now, dp_writer *writer)
{
    /* A voter that needs no riders sets every bit, as if it heard all voters. */
    dp_write_u32(writer, beat->tag);
    dp_write_u8(writer,
                dp_heartbeat_wants_riders(beat, now) ? hears_directly(beat, now) : UINT8_MAX);
}

void dp_heartbeat_write_rider(const dp_heartbeat *beat, dp_time now, uint32_t tag, uint8_t heard,
                              dp_writer *writer)
{
    const uint8_t have = dp_heartbeat_heard(beat, now);
    const uint8_t lacks = tag == beat->tag ? (uint8_t)(have & ~heard) : 0;
    uint32_t picked = 0;
    uint32_t count = 0;

    for (uint32_t i = 0; i < beat->n_voters; i++) {
        if ((lacks >> i & 1U) != 0 && beat->voters[i].sequence > 0) {
            picked |= 1U << i;
            count++;
        }
    }
    dp_write_u8(writer, (uint8_t)count);
    for (uint32_t i = 0; i < beat->n_voters; i++) {
        if ((picked >> i & 1U) != 0) {
            dp_write_bytes(writer, beat->voters[i].message, DP_HEARTBEAT_BYTES);
        }
    }
}

dp_status dp_heartbeat_read_rider(dp_heartbeat *beat, dp_time now, const dp_peer *from,
                                  dp_reader *reader, dp_out *out)
{
    const uint8_t count = dp_read_u8(reader);

    if (reader->failed || count > DP_VOTERS_MAX ||
        dp_reader_left(reader) < (size_t)count * DP_HEARTBEAT_BYTES) {
        return DP_BADMSG;
    }
    for (uint32_t i = 0; i < count; i++) {
        /* Old or foreign beats among them are of no use and no harm. */
        DP_IGNORE(
            dp_heartbeat_message(beat, now, from, dp_read_view(reader, DP_HEARTBEAT_BYTES), out));
    }
    return DP_OK;
}

dp_status dp_heartbeat_check(const dp_heartbeat *beat, dp_why *why)
{
    if (beat->n_voters > DP_VOTERS_MAX ||
        (beat->own < DP_VOTERS_MAX && beat->own >= beat->n_voters)) {
        return dp_why_set(why, DP_CORRUPT, "beat: voter indexes are out of range");
    }
    for (uint32_t i = 0; i < beat->n_voters; i++) {
        for (uint32_t k = 0; k < i; k++) {
            if (dp_peer_equal(&beat->voters[i].peer, &beat->voters[k].peer)) {
                return dp_why_set(why, DP_CORRUPT, "beat: a voter stands twice in the set");
            }
        }
    }
    if (beat->quorum && beat->n_voters == 0) {
        return dp_why_set(why, DP_CORRUPT, "beat: a quorum without voters");
    }
    return DP_OK;
}
