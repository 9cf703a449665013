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

static uint64_t best_rate(const dp_path *path)
{
    uint64_t best = 0;
    for (uint32_t i = 0; i < DP_PATH_RATES; i++) {
        best = path->rates[i] > best ? path->rates[i] : best;
    }
    return best;
}

static void choose_pace(dp_path *path, uint64_t goodput, bool queue)
{
    if (queue) {
        path->rates[path->next_rate] = goodput;
        path->next_rate = (path->next_rate + 1) % DP_PATH_RATES;
        const uint64_t rate = best_rate(path);
        path->pace = rate - rate / 32;
    } else if (goodput >= path->pace / 4 * 3) {
        path->pace += path->pace / 8;
    }
    if (path->pace > 0 && path->pace < DP_PATH_PACE_MIN) {
        path->pace = DP_PATH_PACE_MIN;
    }
}

static void choose_count(dp_path *path, bool foreign_loss, bool calm)
{
    path->calm = calm ? path->calm + 1 : 0;
    if (foreign_loss && path->wanted < DP_PATH_CONNECTIONS_MAX) {
        path->wanted *= 2;
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
    const bool queue = has_queue(sample);
    const bool loses = sends && more_than_a_thousandth(sample->again - last.again, sent);
    const bool misses =
        hears && more_than_a_thousandth(sample->out_of_order_in - last.out_of_order_in, in);
    if (sends && acked > 0 && busy_us >= took_us / 4 * 3) {
        choose_pace(path, acked * 1000000U / took_us, queue);
    }
    choose_count(path, (loses || misses) && !queue, !loses && !misses);
}
