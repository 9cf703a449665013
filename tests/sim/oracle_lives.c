/* S7: messages of an earlier life have no effect. Entries in each node's table of members and of
 * heartbeats may only advance: to a later incarnation, or within one to a later revision or
 * heartbeat, never back, and never to a life that has not begun. */
#include <stdlib.h>

#include "base/assert.h"
#include "gossip/context/context.h"
#include "tests/sim/evil.h"
#include "tests/sim/oracle.h"
#include "tests/sim/oracle_lives.h"

/* The newest state of another node that this node knew, by the other's own statements. */
typedef struct life {
    uint64_t incarnation;
    uint64_t beat_incarnation;
    uint64_t beat_sequence;
    uint32_t revision;
    uint32_t boot; /* life of the node that has the table; a new life begins with an empty one */
} life;

struct dp_lives {
    uint32_t n;
    life known[]; /* n of each node */
};

dp_status dp_lives_open(dp_lives **lives, uint32_t n)
{
    dp_lives *made = calloc(1, sizeof *made + (size_t)n * n * sizeof made->known[0]);

    if (made == NULL) {
        return DP_NOMEM;
    }
    made->n = n;
    *lives = made;
    return DP_OK;
}

void dp_lives_close(dp_lives *lives)
{
    free(lives);
}

static void fail(const dp_host *host, uint32_t subject, const char *what, uint64_t from,
                 uint64_t to)
{
    dp_sim_fail(host->sim, "S7", host->index, "%s of node %u: %llu after %llu", what, subject,
                (unsigned long long)to, (unsigned long long)from);
}

/* The two bodies of a liar, and lives that it invents, are not checked. */
static bool judged(const dp_host *host, uint32_t subject)
{
    const dp_sim *sim = host->sim;

    return subject < sim->plan.nodes && subject != host->index &&
           sim->hosts[subject].name == subject && !dp_evil_is(sim, subject);
}

static void check_begun(const dp_host *host, uint32_t subject, uint64_t incarnation)
{
    const uint64_t newest = host->sim->hosts[subject].disk.incarnation;

    if (incarnation > newest) {
        fail(host, subject, "a life that has not begun", newest, incarnation);
    }
}

static life *known_of(dp_lives *lives, const dp_host *host, uint32_t subject)
{
    life *known = &lives->known[(size_t)host->index * lives->n + subject];

    if (known->boot != host->boot) {
        *known = (life){.boot = host->boot};
    }
    return known;
}

static void check_member(dp_lives *lives, const dp_host *host, const dp_member *member)
{
    const uint32_t subject = dp_sim_index(host->sim, &member->peer);

    if (!judged(host, subject)) {
        return;
    }
    life *known = known_of(lives, host, subject);
    if (member->incarnation < known->incarnation) {
        fail(host, subject, "the incarnation goes back", known->incarnation, member->incarnation);
    } else if (member->incarnation == known->incarnation && member->revision < known->revision) {
        fail(host, subject, "the revision goes back", known->revision, member->revision);
    }
    check_begun(host, subject, member->incarnation);
    known->incarnation = member->incarnation;
    known->revision = member->revision;
}

static void check_voter(dp_lives *lives, const dp_host *host, const dp_heartbeat_voter *voter)
{
    const uint32_t subject = dp_sim_index(host->sim, &voter->peer);

    if (!judged(host, subject) || voter->incarnation == 0) {
        return; /* A new voter has sent no heartbeats yet. */
    }
    life *known = known_of(lives, host, subject);
    if (voter->incarnation < known->beat_incarnation) {
        fail(host, subject, "heartbeats go back a life", known->beat_incarnation,
             voter->incarnation);
    } else if (voter->incarnation == known->beat_incarnation &&
               voter->sequence < known->beat_sequence) {
        fail(host, subject, "heartbeats go back", known->beat_sequence, voter->sequence);
    }
    check_begun(host, subject, voter->incarnation);
    known->beat_incarnation = voter->incarnation;
    known->beat_sequence = voter->sequence;
}

void dp_lives_check(dp_lives *lives, dp_host *host)
{
    const dp_node *node = host->node;

    if (node == NULL || dp_evil_is(host->sim, host->index)) {
        return;
    }
    for (uint32_t i = 0; i < dp_members_count(node->members); i++) {
        check_member(lives, host, dp_members_at(node->members, i));
    }
    for (uint32_t i = 0; i < node->beat.n_voters; i++) {
        check_voter(lives, host, &node->beat.voters[i]);
    }
}
