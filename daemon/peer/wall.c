#include "daemon/peer/wall.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"

/* The place for peer in a full table; DP_WALL_MET_MAX: none. One token makes any number of peers:
 * they take no member's place. */
static uint32_t place_for(dp_wall *wall, const dp_peer *peer, const dp_wall_roster *roster)
{
    const uint32_t oldest = wall->next;
    for (uint32_t i = 0; i < DP_WALL_MET_MAX && roster->members > 0; i++) {
        const uint32_t at = (oldest + i) % DP_WALL_MET_MAX;
        if (!roster->has(roster->context, &wall->met[at].peer)) {
            return at;
        }
    }
    if (roster->members > 0 && !roster->has(roster->context, peer)) {
        return DP_WALL_MET_MAX;
    }
    wall->next = (oldest + 1) % DP_WALL_MET_MAX;
    return oldest;
}

void dp_wall_meet(dp_wall *wall, const dp_peer *peer, uint64_t peer_ms, uint64_t steady_ms,
                  const dp_wall_roster *roster)
{
    uint32_t at = 0;
    while (at < wall->n && !dp_peer_equal(&wall->met[at].peer, peer)) {
        at++;
    }
    if (peer_ms > INT64_MAX / 2 || steady_ms > INT64_MAX / 2) {
        return; /* Not a possible present time. */
    }
    if (at == wall->n && wall->n == DP_WALL_MET_MAX) {
        at = place_for(wall, peer, roster);
    } else if (at == wall->n) {
        wall->n++;
    }
    if (at == DP_WALL_MET_MAX) {
        return;
    }
    wall->met[at] = (dp_wall_met){.peer = *peer, .base_ms = (int64_t)peer_ms - (int64_t)steady_ms};
}

static int rising(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a;
    const int64_t y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* The largest group within DP_WALL_AGREE_MS, and its start. */
static uint32_t most_agreeing(const int64_t *sorted, uint32_t n, uint32_t *first)
{
    uint32_t best = 0;
    for (uint32_t low = 0, high = 0; high < n; high++) {
        while (sorted[high] - sorted[low] > DP_WALL_AGREE_MS) {
            low++;
        }
        if (high - low + 1 > best) {
            best = high - low + 1;
            *first = low;
        }
    }
    return best;
}

void dp_wall_look(const dp_wall *wall, uint64_t wall_ms, uint64_t steady_ms,
                  const dp_wall_roster *roster, dp_wall_view *view)
{
    int64_t ahead[DP_WALL_MET_MAX];
    uint32_t n = 0;
    uint32_t first = 0;
    const int64_t own = (int64_t)wall_ms - (int64_t)steady_ms;
    for (uint32_t i = 0; i < wall->n; i++) {
        if (roster->members == 0 || roster->has(roster->context, &wall->met[i].peer)) {
            ahead[n++] = wall->met[i].base_ms - own;
        }
    }
    qsort(ahead, n, sizeof ahead[0], rising);
    *view = (dp_wall_view){.met = n, .members = roster->members};
    view->agree = most_agreeing(ahead, n, &first);
    view->agreed = 2 * view->agree > roster->members && roster->members > 0;
    if (view->agreed) {
        view->ahead_ms = ahead[first + (view->agree - 1) / 2];
    } else if (n > 0) {
        view->ahead_ms = ahead[(n - 1) / 2];
    }
    const int64_t far = view->ahead_ms < 0 ? -view->ahead_ms : view->ahead_ms;
    if (view->agreed && far >= DP_WALL_LEAST_MS && far <= DP_WALL_MOST_MS) {
        view->correction_ms = view->ahead_ms;
    }
}

void dp_wall_text(int64_t ms, char text[DP_WALL_TEXT_MAX])
{
    const unsigned long long s = (unsigned long long)((ms < 0 ? -ms : ms) + 500) / 1000;
    const unsigned long long minutes = s / 60;
    const unsigned long long hours = minutes / 60;
    if (s < 60) {
        snprintf(text, DP_WALL_TEXT_MAX, "%llu s", s);
    } else if (hours == 0) {
        snprintf(text, DP_WALL_TEXT_MAX, "%llu min %llu s", minutes, s % 60);
    } else if (hours < 48) {
        snprintf(text, DP_WALL_TEXT_MAX, "%llu h %llu min", hours, minutes % 60);
    } else {
        snprintf(text, DP_WALL_TEXT_MAX, "%llu days", hours / 24);
    }
}
