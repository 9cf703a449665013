/* The clocks of peers against this machine's (wall.h): read in handshakes, logged, and used for a
 * correction if a majority agrees. */
#include <inttypes.h>
#include <stdio.h>

#include "base/assert.h"
#include "daemon/peer/driver_inside.h"

enum { TELL_AGAIN_MS = 60 * 1000 };

static bool is_admitted(void *context, const dp_peer *peer)
{
    const dp_driver *driver = context;
    uint8_t ignored[32];
    return dp_node_admitted(driver->node, peer, ignored);
}

/* While this node joins, dp_node_admitted says yes for a peer that it does not know. */
static bool is_listed(void *context, const dp_peer *peer)
{
    const dp_driver *driver = context;
    dp_member_view member;
    for (uint32_t i = 1; dp_node_member(driver->node, i, &member); i++) {
        if (dp_peer_equal(&member.peer, peer)) {
            return member.in_roster;
        }
    }
    return false;
}

static dp_wall_roster roster_of(dp_driver *driver)
{
    dp_wall_roster roster = {.context = driver};
    if (driver->node != NULL) {
        dp_node_view view;
        dp_node_look(driver->node, &view);
        roster.members = view.members;
        roster.has = view.mode == DP_MODE_JOINING ? is_listed : is_admitted;
    }
    return roster;
}

/* Is some clock so far off that the members of the roster must be counted? */
static bool some_differ(const dp_driver *driver, uint64_t wall_ms)
{
    const dp_wall_roster everybody = {.members = 0};
    dp_wall_view view;
    dp_wall_look(&driver->wall, wall_ms, dp_boot_ms(), &everybody, &view);
    return view.agree < view.met || view.ahead_ms >= DP_WALL_AGREE_MS ||
           view.ahead_ms <= -DP_WALL_AGREE_MS;
}

static void tell_correction(dp_driver *driver, int64_t before_ms)
{
    const dp_wall_view *clock = &driver->clock;
    char far[DP_WALL_TEXT_MAX];
    dp_wall_text(clock->correction_ms, far);
    if (clock->correction_ms != 0 && before_ms == 0) {
        dp_event_log_add(
            driver->daemon->event_log, DP_LOG_WARN, "clock.corrected", 0, NULL,
            "this machine's clock is %s %s, by the clocks of %u of %u members; this node "
            "uses theirs; to correct it: timedatectl set-ntp true",
            far, clock->correction_ms > 0 ? "behind" : "ahead", clock->agree, clock->members);
    } else if (clock->correction_ms == 0 && before_ms != 0) {
        dp_event_log_add(driver->daemon->event_log, DP_LOG_INFO, "clock.right", 0, NULL,
                         "this node uses this machine's clock again");
    }
}

void dp_driver_clock_tick(dp_driver *driver)
{
    const uint64_t wall_ms = dp_unix_ms();
    const int64_t before_ms = driver->clock.correction_ms;
    if (driver->wall.n == 0 || (before_ms == 0 && !some_differ(driver, wall_ms))) {
        driver->clock = (dp_wall_view){.met = driver->wall.n};
        return;
    }
    const dp_wall_roster roster = roster_of(driver);
    dp_wall_look(&driver->wall, wall_ms, dp_boot_ms(), &roster, &driver->clock);
    tell_correction(driver, before_ms);
}

/* At most one line a minute of each kind reports that a clock is far off. */
static void tell_difference(dp_driver *driver, const dp_peer *peer, const dp_addr *addr,
                            int64_t ahead_ms, bool refused)
{
    const uint64_t now = uv_now(driver->daemon->loop);
    char at[DP_ADDR_TEXT_MAX];
    char far[DP_WALL_TEXT_MAX];
    uint64_t *const told_ms = &driver->clock_told_ms[peer != NULL];
    if (*told_ms != 0 && now < *told_ms + TELL_AGAIN_MS) {
        return;
    }
    *told_ms = now;
    dp_addr_text(addr, at);
    dp_wall_text(ahead_ms, far);
    const char *side = ahead_ms > 0 ? "ahead of" : "behind";
    if (!driver->has_manifest && driver->hooks.progress != NULL) {
        char text[DP_ADDR_TEXT_MAX + DP_WALL_TEXT_MAX + 64];
        snprintf(text, sizeof text, "the clock of the node at %s is %s %s this machine's", at, far,
                 side);
        driver->hooks.progress(driver->hooks.context, "clock", text);
    }
    char id[DP_PEER_TEXT_MAX] = "";
    if (peer != NULL) {
        dp_peer_text(peer, id);
    }
    const char *name = peer != NULL ? dp_driver_peer_name(driver, peer) : "";
    if (peer == NULL) {
        dp_event_log_add(driver->daemon->event_log, DP_LOG_WARN, "clock.differs", 0, NULL,
                         "refused a connection from %s: its clock is %s %s this machine's, or it "
                         "repeats an old message",
                         at, far, side);
    } else {
        dp_event_log_add(
            driver->daemon->event_log, DP_LOG_WARN, "clock.differs", 0, peer,
            "the clock of %s at %s is %s %s this machine's%s", name[0] != '\0' ? name : id, at, far,
            side, refused ? "; its certificate is not valid at that time, so it is refused" : "");
    }
}

bool dp_driver_met(dp_driver *driver, const dp_peer *peer, const dp_addr *addr, uint64_t peer_ms,
                   bool refused)
{
    const uint64_t own_ms = dp_driver_wall_ms(driver);
    const int64_t ahead_ms = (int64_t)(peer_ms - own_ms);
    if (driver->closing || peer_ms == 0 || peer_ms > INT64_MAX / 2) {
        return true;
    }
    if (peer != NULL) {
        const dp_wall_roster roster = roster_of(driver);
        dp_wall_meet(&driver->wall, peer, peer_ms, dp_boot_ms(), &roster);
        dp_driver_clock_tick(driver);
    }
    if (ahead_ms > (int64_t)DP_CERT_SKEW_MS || ahead_ms < -(int64_t)DP_CERT_SKEW_MS) {
        tell_difference(driver, peer, addr, ahead_ms, refused);
    }
    return refused || dp_credential_member_at(&driver->own, peer_ms) == DP_OK ||
           (peer_ms >= driver->own.member_from_ms && peer_ms <= driver->facts.renewal.until_ms);
}

uint64_t dp_driver_wall_ms(const dp_driver *driver)
{
    return dp_unix_ms() + (uint64_t)driver->clock.correction_ms;
}

bool dp_driver_clock(const dp_driver *driver, dp_wall_view *clock, char *text, size_t size)
{
    char far[DP_WALL_TEXT_MAX];
    *clock = driver->clock;
    dp_wall_text(clock->ahead_ms, far);
    if (clock->ahead_ms < DP_WALL_LEAST_MS && clock->ahead_ms > -DP_WALL_LEAST_MS) {
        return false;
    }
    if (clock->agreed) {
        snprintf(text, size,
                 "this machine's clock is %s %s the clocks of %u of %u members, which agree%s", far,
                 clock->ahead_ms > 0 ? "behind" : "ahead of", clock->agree, clock->members,
                 clock->correction_ms != 0 ? "; this node uses theirs" : "");
    } else {
        snprintf(text, size,
                 "this machine's clock is %s %s that of %s; which one is wrong is not known", far,
                 clock->ahead_ms > 0 ? "behind" : "ahead of",
                 clock->met > 1 ? "the other nodes (median)" : "the only peer met");
    }
    return true;
}
