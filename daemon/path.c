#include "daemon/path.h"

#include <stddef.h>

static bool more_than_a_thousandth(uint64_t part, uint64_t whole)
{
    return part > 0 && part >= whole / 1000 + 1;
}

static bool has_queue(const dp_path_sample *sample)
{
    const uint64_t free_us = (uint64_t)sample->min_rtt_us * 5 / 4 + DP_PATH_QUEUE_US;
    return sample->srtt_us > free_us;
}

/* Put one in, and return the best of the last. */
static uint64_t best_with(uint64_t rates[DP_PATH_RATES], uint32_t *next, uint64_t rate)
{
    uint64_t best = 0;
    rates[*next] = rate;
    *next = (*next + 1) % DP_PATH_RATES;
    for (uint32_t i = 0; i < DP_PATH_RATES; i++) {
        best = rates[i] > best ? rates[i] : best;
    }
    return best;
}

static uint64_t no_less_than_least(uint64_t pace)
{
    return pace > 0 && pace < DP_PATH_PACE_MIN ? DP_PATH_PACE_MIN : pace;
}

/* Below the rate, so that a queue drains; once in a while above it. */
static uint64_t less_or_more(uint64_t rate, uint32_t *stands)
{
    if (*stands < DP_PATH_STANDS) {
        return rate - rate / 32;
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
        const uint64_t best = best_with(path->rates, &path->next_rate, path->goodput);
        if (path->queues == 0 && path->last.delivered > path->goodput) {
            const uint64_t most = 4 * path->goodput;
            path->rate = path->last.delivered < most ? path->last.delivered : most;
        }
        const uint64_t rate = path->rate > best ? path->rate : best;
        path->queues += known ? 0 : 1;
        path->stands++;
        path->pace = less_or_more(rate, &path->stands);
    } else if (path->goodput >= path->pace / 4 * 3) {
        path->pace += path->pace / (known ? 8 : 4);
    }
    path->pace = no_less_than_least(path->pace);
}

static void choose_count(dp_path *path, bool lost)
{
    const bool foreign = lost && path->clear >= DP_PATH_CLEAR_SAMPLES;
    path->calm = lost ? 0 : path->calm + 1;
    path->lossy = foreign ? path->lossy + 2 : path->lossy - (path->lossy > 0 ? 1 : 0);
    if (path->lossy >= DP_PATH_LOSSY) {
        path->lossy = 0;
        path->wanted =
            path->wanted < DP_PATH_CONNECTIONS_MAX ? 2 * path->wanted : DP_PATH_CONNECTIONS_MAX;
    } else if (path->calm >= DP_PATH_CALM_SAMPLES) {
        path->calm = DP_PATH_CALM_SAMPLES;
        path->wanted = 1;
    }
}

void dp_path_step(dp_path *path, const dp_path_sample *sample)
{
    const dp_path_sample last = path->last;
    path->last = *sample;
    path->wanted = path->wanted == 0 ? 1 : path->wanted;
    path->goodput = 0;
    path->rate = 0;
    path->queue = false;
    if (last.now_us == 0 || sample->now_us <= last.now_us) {
        return;
    }
    if (sample->min_rtt_us < DP_PATH_LONG_RTT_US) {
        path->pace = 0;
        path->wanted = 1;
        return;
    }
    const uint64_t took_us = sample->now_us - last.now_us;
    const uint64_t sent = sample->sent - last.sent;
    const uint64_t acked = sample->acked - last.acked;
    const uint64_t busy_us = sample->busy_us - last.busy_us;
    const uint32_t in = sample->segments_in - last.segments_in;
    const bool sends = sent >= DP_PATH_BYTES_MIN;
    const bool hears = (uint64_t)in * 1448 >= DP_PATH_BYTES_MIN;
    const bool loses = sends && more_than_a_thousandth(sample->again - last.again, sent);
    const bool misses =
        hears && more_than_a_thousandth(sample->out_of_order_in - last.out_of_order_in, in);
    path->queue = has_queue(sample);
    path->clear = path->queue ? 0 : path->clear + 1;
    /* Short of data for a quarter of the time: then the goodput says what we had, not what the path can. */
    if (sends && acked > 0 && busy_us >= took_us / 4 * 3) {
        path->goodput = acked * 1000000U / took_us;
        choose_pace(path);
    }
    choose_count(path, loses || misses);
}

void dp_path_share(dp_path_line *line, dp_path *const *paths, uint32_t n_paths)
{
    uint64_t total = 0;
    uint64_t now = 0;
    uint32_t n_busy = 0;
    uint32_t n_queues = 0;
    for (uint32_t i = 0; i < n_paths; i++) {
        total += paths[i]->goodput;
        now += paths[i]->rate;
        n_busy += paths[i]->goodput > 0;
        n_queues += paths[i]->goodput > 0 && paths[i]->queue;
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
    const uint64_t kept = best_with(line->totals, &line->next_total, total);
    const uint64_t pace = less_or_more(now > kept ? now : kept, &line->stands);
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
