/* The waits for answers, from measured times. */
#include "base/assert.h"
#include "gossip/transfer/picker_internal.h"

enum { DOUBLINGS_MAX = 5, RATED_BYTES_MIN = 64 * 1024 };
#define INFO_WAIT_US (250 * DP_MS)
#define INFO_WAIT_US_MAX (500 * DP_MS)
#define NEAR_US (5 * DP_MS)          /* time that a chunk may take on a near line without a queue */
#define LOOK_US (50 * DP_MS)         /* a late chunk is looked at again no sooner */
#define RATED_US_MAX (8 * DP_SECOND) /* of transfer, then the earlier rate counts half */
#define GUESS_BYTES_PER_SECOND 1000000ULL /* before anything was measured */

static dp_span *span_of(dp_picker *picker, uint64_t size)
{
    uint32_t class = 0;

    for (uint32_t bytes = dp_object_chunk_bytes(size);
         bytes > DP_CHUNK_BYTES_MIN && class + 1 < CLASSES; bytes /= 2) {
        class ++;
    }
    return &picker->spans[class];
}

static uint64_t clamp_wait(uint64_t wait_us)
{
    return wait_us < DP_CHUNK_WAIT_US_MIN   ? DP_CHUNK_WAIT_US_MIN
           : wait_us > DP_CHUNK_WAIT_US_MAX ? DP_CHUNK_WAIT_US_MAX
                                            : wait_us;
}

bool dp_picker_has_another(const dp_picker *picker, const dp_want *want, uint32_t member)
{
    const dp_rowset *linked = dp_members_linked(picker->members);

    for (uint32_t k = 0; k < linked->count; k++) {
        if (linked->at[k] != member && dp_want_bit(want->holders, linked->at[k])) {
            return true;
        }
    }
    return false;
}

uint64_t dp_picker_chunk_wait(dp_picker *picker, const dp_want *want, uint32_t member)
{
    const uint32_t doublings = want->failures < DOUBLINGS_MAX ? want->failures : DOUBLINGS_MAX;
    const uint64_t usual = clamp_wait(2 * dp_picker_hedge_wait(picker, want) << doublings);
    const uint64_t own = picker->patience_us[member];

    return own > usual && !dp_picker_has_another(picker, want, member) ? own : usual;
}

/* Not doubled: how long one holder has not answered says nothing about another. */
uint64_t dp_picker_hedge_wait(dp_picker *picker, const dp_want *want)
{
    const uint64_t p95 = dp_span_percentile(span_of(picker, want->size), 95);
    const uint64_t guess = DP_CHUNK_WAIT_US_MIN +
                           dp_object_chunk_bytes(want->size) * DP_SECOND / GUESS_BYTES_PER_SECOND;

    return p95 != 0 ? p95 : guess;
}

dp_time dp_picker_hedge_again(dp_picker *picker, const dp_want *want, dp_time now)
{
    const uint64_t wait_us = dp_picker_hedge_wait(picker, want);

    return dp_time_after(now, wait_us > LOOK_US ? wait_us : LOOK_US);
}

uint64_t dp_picker_chunk_p95(const dp_picker *picker)
{
    uint64_t worst = 0;

    for (uint32_t i = 0; i < CLASSES; i++) {
        const uint64_t p95 = dp_span_percentile(&picker->spans[i], 95);
        worst = p95 > worst ? p95 : worst;
    }
    return worst;
}

uint64_t dp_picker_info_wait(const dp_picker *picker, const dp_want *want, uint32_t member)
{
    const uint32_t doublings = want->asked_all < DOUBLINGS_MAX ? want->asked_all : DOUBLINGS_MAX;
    const uint64_t wait_us = dp_rtt_timeout(&dp_members_at(picker->members, member)->rtt,
                                            INFO_WAIT_US, INFO_WAIT_US, INFO_WAIT_US_MAX);

    return clamp_wait(wait_us << doublings);
}

/* One more for each chunk that came as fast as a far line lets it, which doubles the window in a
 * round trip; one less for each that had to wait for others (as Brakmo and Peterson 1995 do for
 * bytes). */
static void adapt(dp_picker *picker, uint32_t member, uint64_t took_us)
{
    const uint64_t rtt_us = dp_members_at(picker->members, member)->rtt.srtt_us;
    uint8_t *const more = &picker->windows[member];
    const uint32_t window = DP_FLIGHTS_PER_HOLDER + *more;

    dp_assert(member < picker->members_max);
    if (took_us > 3 * rtt_us + NEAR_US && *more > 0) {
        --*more;
    } else if (took_us <= 2 * rtt_us + NEAR_US && window < DP_FLIGHTS_MAX &&
               dp_picker_flights_of(picker, member) >= window) {
        ++*more;
    }
}

uint32_t dp_picker_window(const dp_picker *picker, const dp_want *want, uint32_t member)
{
    const uint64_t fit = DP_FLIGHT_BYTES_MAX / dp_object_chunk_bytes(want->size);
    const uint32_t window = DP_FLIGHTS_PER_HOLDER + picker->windows[member];

    dp_assert(member < picker->members_max);
    return window <= fit                  ? window
           : fit <= DP_FLIGHTS_PER_HOLDER ? (uint32_t)DP_FLIGHTS_PER_HOLDER
                                          : (uint32_t)fit;
}

void dp_picker_rate_begin(dp_picker *picker, dp_time now)
{
    picker->rated = now;
}

/* Small objects tell of the way and not of the line: their time does not count either. */
static void rate_add(dp_picker *picker, uint64_t bytes, dp_time now)
{
    if (bytes >= RATED_BYTES_MIN) {
        picker->rate_bytes += bytes;
        picker->rate_us += dp_time_between(picker->rated, now);
    }
    picker->rated = now;
    if (picker->rate_us > RATED_US_MAX) {
        picker->rate_bytes /= 2;
        picker->rate_us /= 2;
    }
}

uint64_t dp_picker_rate(const dp_picker *picker)
{
    return picker->rate_us == 0 ? 0 : picker->rate_bytes * DP_SECOND / picker->rate_us;
}

void dp_picker_measure(dp_picker *picker, const dp_want *want, uint32_t chunk, uint32_t member,
                       dp_time now)
{
    dp_assert(chunk < want->n_chunks);
    for (uint32_t i = 0; picker->n_flights > 0 && i < DP_FLIGHTS_MAX; i++) {
        const dp_flight *const f = &picker->flights[i];
        if (f->used && f->wanted == dp_want_index(picker, want) && f->chunk == chunk &&
            f->member == member) {
            const uint64_t took_us = dp_time_between(f->sent, now);
            const uint32_t took =
                took_us < DP_CHUNK_WAIT_US_MAX ? (uint32_t)took_us : (uint32_t)DP_CHUNK_WAIT_US_MAX;
            dp_span_add(span_of(picker, want->size), took);
            adapt(picker, member, took);
            rate_add(picker, dp_object_chunk_size(want->size, chunk), now);
            picker->chunk_us[member] =
                picker->chunk_us[member] == 0
                    ? took
                    : (uint32_t)((3ULL * picker->chunk_us[member] + took) / 4);
            if (want->failures == 0) { /* Else it may answer an earlier request (Karn 1987). */
                picker->patience_us[member] =
                    (uint32_t)((3ULL * picker->patience_us[member] + 2ULL * took) / 4);
            }
        }
    }
}

void dp_picker_chunk_late(dp_picker *picker, const dp_flight *f)
{
    const uint32_t member = f->member;
    const uint64_t patience = 2 * dp_time_between(f->sent, f->deadline);
    uint32_t *const smoothed = &picker->chunk_us[member];

    if (patience > picker->patience_us[member]) {
        picker->patience_us[member] = (uint32_t)clamp_wait(patience);
    }

    picker->windows[member] /= 2;
    /* Doubled, so that others are asked first; one good chunk repairs most of it. */
    *smoothed = *smoothed == 0                         ? (uint32_t)DP_CHUNK_WAIT_US_MIN
                : *smoothed < DP_CHUNK_WAIT_US_MAX / 2 ? *smoothed * 2
                                                       : (uint32_t)DP_CHUNK_WAIT_US_MAX;
}
