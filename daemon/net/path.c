#include "daemon/net/path.h"

#include <stddef.h>

static bool more_than_a_thousandth(uint64_t part, uint64_t whole)
{
    return part > 0 && part >= whole / 1000 + 1;
}

/* The excess over the delay of a free path; 0: the path is free. */
static uint64_t queue_us(const dp_path_sample *sample)
{
    const uint64_t free_us = (uint64_t)sample->min_rtt_us * 5 / 4 + DP_PATH_QUEUE_US;
    return sample->srtt_us > free_us ? sample->srtt_us - free_us : 0;
}

/* Adds one rate, and returns the best of the last DP_PATH_RATES. Data that was delayed somewhere
 * arrives all at once, so its rate is too high. So once enough rates are known, a rate counts for
 * at most a quarter more than the best one before it, or for our pace if that is higher. */
static uint64_t best_with(uint64_t rates[DP_PATH_RATES], uint32_t *next, uint64_t rate,
                          uint64_t pace)
{
    uint64_t best = 0;
    uint32_t known = 0;
    for (uint32_t i = 0; i < DP_PATH_RATES; i++) {
        best = rates[i] > best ? rates[i] : best;
        known += rates[i] > 0;
    }
    const uint64_t most = pace > best + best / 4 ? pace : best + best / 4;
    rates[*next] = known >= DP_PATH_KNOWN && rate > most ? most : rate;
    best = rates[*next] > best ? rates[*next] : best;
    *next = (*next + 1) % DP_PATH_RATES;
    return best;
}

static uint64_t no_less_than_least(uint64_t pace)
{
    return pace > 0 && pace < DP_PATH_PACE_MIN ? DP_PATH_PACE_MIN : pace;
}

/* Below the rate, so that a queue drains; sometimes above it. */
static uint64_t less_or_more(uint64_t rate, uint64_t queued_us, uint32_t *stands)
{
    if (*stands < DP_PATH_STANDS) {
        const uint64_t drained_us = queued_us < DP_PATH_DRAIN_US ? queued_us : DP_PATH_DRAIN_US;
        return rate - rate / 32 - rate / 1000 * drained_us / 1000;
    }
    *stands = 0;
    return rate + rate / 8;
}

static void choose_pace(dp_path *path)
{
    const bool known = path->queues == DP_PATH_KNOWN;
    path->stands = path->queue ? path->stands : 0;
    path->rate = path->goodput;
    if (path->queue) {
        const uint64_t best = best_with(path->rates, &path->next_rate, path->goodput, path->paced);
        if (path->queues == 0 && path->last.delivered > path->goodput) {
            const uint64_t most = 4 * path->goodput;
            path->rate = path->last.delivered < most ? path->last.delivered : most;
        }
        const uint64_t rate = !known && path->rate > best ? path->rate : best;
        path->queues += known ? 0 : 1;
        path->stands++;
        path->pace = less_or_more(rate, queue_us(&path->last), &path->stands);
    } else if (path->goodput >= path->pace / 4 * 3) {
        path->pace += path->pace / (known ? 8 : 4);
    }
    path->pace = no_less_than_least(path->pace);
}

void dp_path_step(dp_path *path, const dp_path_sample *sample)
{
    const dp_path_sample last = path->last;
    path->last = *sample;
    path->goodput = 0;
    path->rate = 0;
    path->paced = path->pace;
    path->queue = false;
    path->moved = 0;
    path->lost = 0;
    if (last.now_us == 0 || sample->now_us <= last.now_us) {
        return;
    }
    if (sample->min_rtt_us < DP_PATH_LONG_RTT_US) {
        path->pace = 0;
        return;
    }
    const uint64_t took_us = sample->now_us - last.now_us;
    const uint64_t sent = sample->sent - last.sent;
    const uint64_t acked = sample->acked - last.acked;
    const uint64_t busy_us = sample->busy_us - last.busy_us;
    const uint32_t in = sample->segments_in - last.segments_in;
    const bool sends = sent >= DP_PATH_BYTES_MIN;
    /* All segments after one gap are out of order: a sample with such segments has at least one
     * gap. */
    const bool misses = sample->out_of_order_in != last.out_of_order_in;
    path->queue = queue_us(sample) > 0;
    path->clear = path->queue ? 0 : path->clear + 1;
    /* Without data for a quarter of the time: then the goodput measures the available data, not the
     * path. */
    if (sends && acked > 0 && busy_us >= took_us / 4 * 3) {
        path->goodput = acked * 1000000U / took_us;
        choose_pace(path);
    }
    path->moved = sent + (uint64_t)in * DP_PATH_SEGMENT;
    path->lost = sample->again - last.again + (misses ? DP_PATH_SEGMENT : 0);
}

void dp_path_count(dp_path_loss *loss, dp_path *const *paths, uint32_t n_paths)
{
    uint64_t moved = 0;
    uint64_t lost = 0;
    loss->wanted = loss->wanted == 0 ? 1 : loss->wanted;
    for (uint32_t i = 0; i < n_paths; i++) {
        moved += paths[i]->moved;
        lost += paths[i]->lost;
        if (paths[i]->clear >= DP_PATH_CLEAR_SAMPLES) {
            loss->moved += paths[i]->moved;
            loss->lost += paths[i]->lost;
        }
    }
    loss->idle = moved < DP_PATH_BYTES_MIN ? loss->idle + 1 : 0;
    loss->calm = lost > 0 ? 0 : loss->calm + (loss->idle == 0);
    if (loss->lost >= DP_PATH_LOSSES_MIN && more_than_a_thousandth(loss->lost, loss->moved)) {
        *loss = (dp_path_loss){.wanted = 2 * loss->wanted};
        loss->wanted =
            loss->wanted < DP_PATH_CONNECTIONS_MAX ? loss->wanted : DP_PATH_CONNECTIONS_MAX;
    } else if (loss->calm >= DP_PATH_CALM_SAMPLES || loss->idle >= DP_PATH_IDLE_SAMPLES) {
        *loss = (dp_path_loss){.wanted = 1};
    } else if (loss->moved > DP_PATH_LOSS_BYTES) {
        loss->moved /= 2;
        loss->lost /= 2;
    }
}

uint64_t dp_path_turns(const dp_path_room *room, uint64_t size)
{
    const uint64_t window = room->window > DP_PATH_SEGMENT ? room->window : DP_PATH_SEGMENT;
    return (room->waiting + size) * 16 / window + (room->hole ? 16 : 0) + (room->stalled ? 32 : 0);
}

void dp_path_share(dp_path_line *line, dp_path *const *paths, uint32_t n_paths)
{
    uint64_t total = 0;
    uint64_t now = 0;
    uint64_t paced = 0;
    uint64_t queued_us = 0;
    uint32_t n_busy = 0;
    uint32_t n_queues = 0;
    for (uint32_t i = 0; i < n_paths; i++) {
        total += paths[i]->goodput;
        now += paths[i]->rate;
        paced += paths[i]->goodput > 0 ? paths[i]->paced : 0;
        n_busy += paths[i]->goodput > 0;
        n_queues += paths[i]->goodput > 0 && paths[i]->queue;
        queued_us += paths[i]->goodput > 0 ? queue_us(&paths[i]->last) : 0;
    }
    if (n_busy > 0) {
        line->sums[line->next_sum] = total;
        line->next_sum = (line->next_sum + 1) % DP_PATH_RATES;
    }
    if (n_busy < 2 || n_queues * 2 <= n_busy) {
        line->stands = 0;
        return;
    }
    line->stands++;
    const bool known = line->totals[DP_PATH_KNOWN - 1] > 0;
    const uint64_t kept = best_with(line->totals, &line->next_total, total, paced);
    const uint64_t pace =
        less_or_more(!known && now > kept ? now : kept, queued_us / n_queues, &line->stands);
    for (uint32_t i = 0; i < n_paths; i++) {
        if (paths[i]->goodput > 0) {
            paths[i]->pace = no_less_than_least(pace / n_busy);
        }
    }
}

uint64_t dp_path_uplink(const dp_path_line *line)
{
    uint64_t best = 0;

    for (uint32_t i = 0; i < DP_PATH_RATES; i++) {
        best = line->sums[i] > best ? line->sums[i] : best;
    }
    return best;
}
