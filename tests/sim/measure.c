#include "tests/sim/measure.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "gossip/core/msg.h"
#include "gossip/member/members.h"
#include "tests/sim/sim.h"

dp_status dp_measure_open(dp_sim *sim)
{
    sim->measured = calloc(sim->plan.nodes, sizeof *sim->measured);
    sim->first_stored = calloc(DP_MEASURE_SLOTS, sizeof *sim->first_stored);
    return sim->measured == NULL || sim->first_stored == NULL ? DP_NOMEM : DP_OK;
}

void dp_measure_close(dp_sim *sim)
{
    for (uint32_t i = 0; sim->measured != NULL && i < sim->plan.nodes; i++) {
        free(sim->measured[i].told);
    }
    free(sim->measured);
    free(sim->first_stored);
}

static dp_traffic traffic_of(uint8_t type)
{
    if (type <= DP_MSG_SUMMARY) {
        return DP_TRAFFIC_MEMBERSHIP;
    }
    if (type == DP_MSG_DECIDE || type == DP_MSG_RECORDS_GET || type == DP_MSG_RECORDS) {
        return DP_TRAFFIC_RECORDS;
    }
    if (type >= DP_MSG_INFO_GET && type <= DP_MSG_CHUNK) {
        return DP_TRAFFIC_OBJECTS;
    }
    if (type >= DP_MSG_MIX_OFFER && type <= DP_MSG_MIX_STATUS) {
        return DP_TRAFFIC_EXCHANGES;
    }
    return DP_TRAFFIC_ROUNDS; /* relayed messages are nearly always of rounds */
}

void dp_measure_sent(dp_sim *sim, uint32_t from, uint32_t to, const dp_packet *packet)
{
    const dp_traffic kind = traffic_of(packet->data[0]);

    sim->measure.messages[kind]++;
    sim->measure.bytes[kind] += packet->size;
    sim->measured[from].out_bytes += packet->size;
    if (packet->data[0] == DP_MSG_CHUNK) {
        sim->measure.chunks++;
        sim->measure.chunks_afar += dp_net_afar(&sim->net, from, to) ? 1 : 0;
    }
}

static void add(dp_delays *delays, uint64_t took_us)
{
    const uint64_t cell = took_us / DP_DELAY_CELL_US;

    delays->cells[cell < DP_DELAY_CELLS ? cell : DP_DELAY_CELLS - 1]++;
    delays->count++;
    delays->most_us = took_us > delays->most_us ? took_us : delays->most_us;
}

double dp_delays_percentile(const dp_delays *delays, double percent)
{
    const double wanted = (double)delays->count * percent / 100;
    uint64_t seen = 0;

    for (uint32_t i = 0; i < DP_DELAY_CELLS; i++) {
        seen += delays->cells[i];
        if (seen > 0 && (double)seen >= wanted) {
            return (double)(i + 1) * DP_DELAY_CELL_US / 1e6;
        }
    }
    return 0;
}

/* ---- suspicion and death ---- */

void dp_measure_struck(dp_host *host, bool frozen)
{
    dp_sim *sim = host->sim;
    dp_measure_host *book = &sim->measured[host->index];

    if (book->told == NULL) {
        book->told = malloc(sim->plan.nodes);
    }
    for (uint32_t i = 0; book->told != NULL && i < sim->plan.nodes; i++) {
        book->told[i] = dp_host_up(&sim->hosts[i]) ? 0 : 2; /* a host that is down has no books */
    }
    book->struck_at = sim->now_us;
    book->frozen = frozen;
}

/* ---- counted again ---- */

void dp_measure_back(dp_host *host, uint64_t at_us, bool frozen)
{
    dp_measure_host *book = &host->sim->measured[host->index];

    book->back_at = at_us;
    book->back_round = 0;
    book->back_frozen = frozen;
}

static void note_rejoin(const dp_host *host, const dp_note *note)
{
    dp_sim *sim = host->sim;
    dp_measure_host *book = &sim->measured[host->index];

    if (book->back_at == 0 || sim->now_us < book->back_at) {
        return;
    }
    if (note->code == DP_NOTE_PUBLISHED && book->back_round == 0) {
        book->back_round = note->round;
    } else if (note->code == DP_NOTE_COUNTED && book->back_round != 0 &&
               note->round >= book->back_round) {
        add(book->back_frozen ? &sim->measure.frozen_rejoin : &sim->measure.killed_rejoin,
            sim->now_us - book->back_at);
        book->back_at = 0;
    }
}

void dp_measure_note(dp_host *host, const dp_note *note)
{
    dp_sim *sim = host->sim;
    dp_measure *m = &sim->measure;
    const uint32_t about = dp_sim_index(sim, &note->peer);

    note_rejoin(host, note);
    if (note->code != DP_NOTE_MEMBER || about >= sim->plan.nodes || about == host->index ||
        (note->b != DP_MEMBER_SUSPECT && note->b != DP_MEMBER_DEAD)) {
        return;
    }
    if (note->cause != NULL && strcmp(note->cause, "its link has ended") == 0) {
        /* A guest that has gone: no node accuses it (gossip/member/guest.c). */
        return;
    }
    const bool dead = note->b == DP_MEMBER_DEAD;
    const dp_host *subject = &sim->hosts[about];
    dp_measure_host *book = &sim->measured[about];
    const bool stopped = subject->paused_until > sim->now_us ||
                         sim->now_us < subject->paused_until + DP_MEASURE_SETTLED_US;
    if (dp_host_up(subject) && (subject->paused_until == 0 || !stopped)) {
        if (sim->now_us >= subject->up_since + DP_MEASURE_SETTLED_US && !subject->leaving) {
            *(dead ? &m->false_evictions : &m->false_suspicions) += 1;
            if (sim->plan.measured && sim->options.loss_milli == 0 &&
                (dead || sim->plan.churn_us == 0)) {
                dp_sim_fail(sim, "S11", host->index, "holds node %u, which runs, for %s", about,
                            dead ? "dead" : "suspect");
            }
        }
        return;
    }
    if (book->struck_at == 0 || book->told == NULL || dp_host_up(subject) != book->frozen) {
        return;
    }
    const uint64_t took = sim->now_us - book->struck_at;
    if (book->told[host->index] < 1) {
        add(book->frozen ? &m->frozen_suspect : &m->killed_suspect, took);
        book->told[host->index] = 1;
    }
    if (dead && book->told[host->index] < 2) {
        add(book->frozen ? &m->frozen_dead : &m->killed_dead, took);
        book->told[host->index] = 2;
    }
}

/* ---- records ---- */

void dp_measure_stored(dp_host *host, uint64_t slot)
{
    dp_sim *sim = host->sim;
    dp_measure_host *book = &sim->measured[host->index];

    if (slot >= DP_MEASURE_SLOTS) {
        return;
    }
    if (sim->first_stored[slot] == 0) {
        sim->first_stored[slot] = sim->now_us;
    } else if (book->stored_slot + 1 == slot && book->stored_at <= sim->first_stored[slot] &&
               host->up_since <= sim->first_stored[slot]) {
        add(&sim->measure.records, sim->now_us - sim->first_stored[slot]);
    }
    book->stored_slot = slot;
    book->stored_at = sim->now_us;
}

/* ---- the whole ---- */

/* By then all initial nodes have started, and surplus links are closed. */
static uint64_t all_started(const dp_sim *sim)
{
    return (40 + sim->plan.nodes / 40) * DP_SECOND;
}

/* In a large run a node keeps few links, unless it is a voter; a former voter closes its links
 * gradually. */
static void check_links(dp_sim *sim, uint32_t index, uint32_t links)
{
    enum { MOST = DP_MESH_LINKS_HIGH + DP_VOTER_LINKS + 1, SLACK = 8, LOOKS = 10 };
    const dp_host *host = &sim->hosts[index];
    dp_measure_host *book = &sim->measured[index];
    dp_node_view view;

    const bool many = links > MOST + SLACK && links >= book->links &&
                      sim->plan.nodes > 2 * DP_FULL_MESH_MAX && sim->now_us > all_started(sim);
    book->crowded = many ? book->crowded + 1 : 0;
    book->links = links;
    if (book->crowded < LOOKS) {
        return;
    }
    dp_node_look(host->node, &view);
    if (!view.is_voter) {
        dp_sim_fail(sim, "S12", index, "keeps %u links; %u are enough", links, (uint32_t)MOST);
    }
}

static uint64_t node_us(const dp_sim *sim)
{
    uint64_t us = sim->totals.node_us;

    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        us += dp_host_up(&sim->hosts[i]) ? sim->now_us - sim->hosts[i].up_since : 0;
    }
    return us;
}

static void leave_out_the_start(dp_sim *sim)
{
    dp_measure *const measure = &sim->measure;

    if (measure->from_us != 0 || sim->now_us < all_started(sim) ||
        sim->options.until_us < 2 * all_started(sim)) {
        return;
    }
    measure->from_us = sim->now_us;
    measure->node_us = node_us(sim);
    memset(measure->messages, 0, sizeof measure->messages);
    memset(measure->bytes, 0, sizeof measure->bytes);
    measure->chunks = 0;
    measure->chunks_afar = 0;
    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        sim->measured[i].out_bytes = 0;
    }
}

void dp_measure_look(dp_sim *sim)
{
    leave_out_the_start(sim);
    for (uint32_t a = 0; a < sim->plan.nodes; a++) {
        uint32_t links = 0;
        if (!dp_host_up(&sim->hosts[a])) {
            continue;
        }
        for (uint32_t b = 0; b < sim->plan.nodes; b++) {
            links += sim->net.ends[(size_t)a * sim->plan.nodes + b].connection != 0;
        }
        sim->measure.links_sum += links;
        sim->measure.links_looks++;
        check_links(sim, a, links);
        if (links > sim->measure.links_most) {
            sim->measure.links_most = links;
        }
    }
}

void dp_measure_finish(dp_sim *sim)
{
    const double run_s = (double)(sim->now_us - sim->measure.from_us) / 1e6;

    sim->measure.node_us = sim->totals.node_us - sim->measure.node_us;
    for (uint32_t i = 0; i < sim->plan.nodes && run_s > 0; i++) {
        const double rate = (double)sim->measured[i].out_bytes / run_s;
        sim->measure.busiest = rate > sim->measure.busiest ? rate : sim->measure.busiest;
    }
}

static void add_delays(dp_delays *sum, const dp_delays *one)
{
    sum->count += one->count;
    sum->most_us = one->most_us > sum->most_us ? one->most_us : sum->most_us;
    for (uint32_t i = 0; i < DP_DELAY_CELLS; i++) {
        sum->cells[i] += one->cells[i];
    }
}

void dp_measure_add(dp_measure *sum, const dp_measure *one)
{
    for (uint32_t i = 0; i < DP_TRAFFIC_COUNT; i++) {
        sum->messages[i] += one->messages[i];
        sum->bytes[i] += one->bytes[i];
    }
    sum->chunks += one->chunks;
    sum->chunks_afar += one->chunks_afar;
    sum->node_us += one->node_us;
    sum->busiest = one->busiest > sum->busiest ? one->busiest : sum->busiest;
    sum->links_most = one->links_most > sum->links_most ? one->links_most : sum->links_most;
    sum->links_sum += one->links_sum;
    sum->links_looks += one->links_looks;
    sum->false_suspicions += one->false_suspicions;
    sum->false_evictions += one->false_evictions;
    add_delays(&sum->killed_suspect, &one->killed_suspect);
    add_delays(&sum->killed_dead, &one->killed_dead);
    add_delays(&sum->frozen_suspect, &one->frozen_suspect);
    add_delays(&sum->frozen_dead, &one->frozen_dead);
    add_delays(&sum->killed_rejoin, &one->killed_rejoin);
    add_delays(&sum->frozen_rejoin, &one->frozen_rejoin);
    add_delays(&sum->records, &one->records);
}

static void print_delays(FILE *out, const char *name, const dp_delays *delays)
{
    fprintf(out, ",\"%s\":{\"samples\":%u,\"p50_s\":%.2f,\"p99_s\":%.2f,\"max_s\":%.2f}", name,
            delays->count, dp_delays_percentile(delays, 50), dp_delays_percentile(delays, 99),
            (double)delays->most_us / 1e6);
}

void dp_measure_print(FILE *out, const dp_measure *measure, const dp_sim_totals *totals)
{
    static const char *const names[DP_TRAFFIC_COUNT] = {"membership_traffic", "round_traffic",
                                                        "record_traffic", "object_traffic",
                                                        "exchange_traffic"};
    const double node_s = (double)measure->node_us / 1e6;

    fprintf(out, ",\"node_seconds\":%.1f,\"messages\":%" PRIu64 ",\"steps\":%" PRIu64,
            (double)totals->node_us / 1e6, totals->messages, totals->steps);
    for (uint32_t i = 0; i < DP_TRAFFIC_COUNT && node_s > 0; i++) {
        fprintf(out, ",\"%s\":{\"messages_per_node_s\":%.2f,\"bytes_per_node_s\":%.1f}", names[i],
                (double)measure->messages[i] / node_s, (double)measure->bytes[i] / node_s);
    }
    fprintf(out, ",\"chunks\":%" PRIu64 ",\"chunks_afar\":%" PRIu64, measure->chunks,
            measure->chunks_afar);
    fprintf(out, ",\"busiest_bytes_per_s\":%.0f,\"links_mean\":%.1f,\"links_most\":%u",
            measure->busiest,
            measure->links_looks > 0 ? (double)measure->links_sum / (double)measure->links_looks
                                     : 0,
            measure->links_most);
    fprintf(out, ",\"false_suspicions\":%" PRIu64 ",\"false_evictions\":%" PRIu64,
            measure->false_suspicions, measure->false_evictions);
    print_delays(out, "killed_suspect", &measure->killed_suspect);
    print_delays(out, "killed_dead", &measure->killed_dead);
    print_delays(out, "frozen_suspect", &measure->frozen_suspect);
    print_delays(out, "frozen_dead", &measure->frozen_dead);
    print_delays(out, "killed_rejoin", &measure->killed_rejoin);
    print_delays(out, "frozen_rejoin", &measure->frozen_rejoin);
    print_delays(out, "record_spread", &measure->records);
}
