/* PING, ACK and PING_REQ as they come: what each changes in the table, and what it is answered. */
#include "gossip/core/msg.h"
#include "gossip/member/members_internal.h"
#include "tests/unit/gossip/kit/mesh.h"

/* Node 0 of n that are all linked, with no probe under way. */
static dp_members *begin(mesh **m, uint32_t n)
{
    *m = mesh_of(n, 11);
    mesh_join_all(*m);
    mesh_run_for(*m, 2 * DP_SECOND);
    dp_members *const members = (*m)->nodes[0].members;
    dp_members_probe_reset(members, DP_NEVER);
    for (uint32_t i = 0; i < DP_RELAYED_MAX; i++) {
        members->relayed[i].requester = DP_MEMBER_NONE;
    }
    members->n_relayed = 0;
    dp_out_begin(&(*m)->out, (*m)->actions);
    return members;
}

typedef struct ack {
    uint32_t to;
    uint32_t sequence;
    uint8_t nack;
    dp_peer about;
} ack;

/* The last ACK or PING that was sent; how many. */
static uint32_t sent(const mesh *m, dp_msg_type type, ack *last)
{
    const dp_members *members = m->nodes[0].members;
    uint32_t n = 0;

    for (uint32_t i = 0; i < m->actions->count; i++) {
        const dp_action *action = &m->actions->items[i];
        if (action->type != DP_DO_SEND || dp_msg_type_of(action->u.send.bytes) != type) {
            continue;
        }
        dp_reader reader = dp_reader_of(action->u.send.bytes);
        (void)dp_read_u16(&reader);
        last->to = dp_members_find(members, &action->u.send.peer);
        last->sequence = dp_read_u32(&reader);
        last->nack = dp_read_u8(&reader);
        dp_read_bytes(&reader, last->about.bytes, sizeof last->about.bytes);
        n++;
    }
    return n;
}

/* ---- PING_REQ ---- */

static dp_status asks_for(mesh *m, uint32_t from, uint32_t sequence, const dp_peer *target)
{
    uint8_t room[64];
    dp_writer writer = dp_writer_of(room, sizeof room);

    dp_write_u32(&writer, sequence);
    dp_write_bytes(&writer, target->bytes, sizeof target->bytes);
    dp_reader reader = dp_reader_of(dp_view_of(room, writer.size));
    dp_out_begin(&m->out, m->actions);
    return dp_members_ping_req(m->nodes[0].members, mesh_now(m), from, &reader, &m->out);
}

static void a_helper_pings_the_target_or_says_at_once_that_it_cannot(void **state)
{
    (void)state;
    mesh *m = NULL;
    dp_members *const members = begin(&m, 4);
    const dp_peer stranger = mesh_peer(9);
    ack last = {0};
    for (uint32_t what = 0; what < 6; what++) {
        const dp_peer target = what == 1   ? stranger
                               : what == 2 ? members->rows[0].member.peer
                               : what == 3 ? members->rows[1].member.peer
                                           : members->rows[2].member.peer;
        const uint32_t before = members->sequence;
        members->rows[2].member.linked = what != 4;
        for (uint32_t i = 0; i < DP_RELAYED_MAX && what == 5; i++) {
            members->relayed[i] = (dp_relayed){.requester = 3, .target = 1};
        }
        CHECK_OK(asks_for(m, 1, 40, &target));
        if (what == 0) {
            CHECK(sent(m, DP_MSG_ACK, &last) == 0 && sent(m, DP_MSG_PING, &last) == 1);
            CHECK(last.to == 2 && last.sequence == before + 2);
            CHECK(members->n_relayed == 1 && members->relayed[0].requester == 1);
            CHECK(members->relayed[0].target == 2 && members->relayed[0].their_sequence == 40);
            CHECK(members->relayed[0].own_sequence == before + 2);
            CHECK(members->relayed[0].deadline.us == m->now + dp_members_timeout(members, 2));
            members->relayed[0].requester = DP_MEMBER_NONE;
            members->n_relayed = 0;
        } else {
            CHECK(sent(m, DP_MSG_PING, &last) == 0 && sent(m, DP_MSG_ACK, &last) == 1);
            CHECK(last.to == 1 && last.sequence == 40 && last.nack == 1);
            CHECK(dp_peer_equal(&last.about, &target));
            CHECK(members->n_relayed == 0 && members->sequence == before);
        }
        members->rows[2].member.linked = true;
    }
    members->rows[1].member.in_roster = false;
    for (uint32_t i = 0; i < DP_RELAYED_MAX; i++) {
        members->relayed[i].requester = DP_MEMBER_NONE;
    }
    if (dp_members_is_guest(members, 1)) {
        CHECK_STATUS(asks_for(m, 1, 40, &stranger), DP_DENIED);
        CHECK(m->actions->count == 0);
    }
    mesh_close(m);
}

/* ---- ACK ---- */

/* From this member, about this one. */
static dp_status answers(mesh *m, uint32_t from, uint32_t sequence, uint8_t nack, uint32_t about)
{
    dp_members *const members = m->nodes[0].members;
    uint8_t room[DP_MESSAGE_MAX];
    dp_writer writer = dp_writer_of(room, sizeof room);
    const dp_summary summary = {.slot = 77, .round = 5};

    dp_write_u32(&writer, sequence);
    dp_write_u8(&writer, nack);
    dp_write_bytes(&writer, members->rows[about].member.peer.bytes, DP_PUBLIC_KEY_BYTES);
    dp_summary_write(&writer, &summary);
    dp_write_u8(&writer, DP_MEMBER_ALIVE);
    dp_write_u64(&writer, members->rows[0].member.incarnation);
    dp_write_u32(&writer, members->rows[0].member.revision);
    dp_write_u8(&writer, 0); /* no rider */
    dp_reader reader = dp_reader_of(dp_view_of(room, writer.size));
    dp_out_begin(&m->out, m->actions);
    return dp_members_ack(members, mesh_now(m), from, &reader, &m->out);
}

static void a_probe_ends_with_an_answer_about_its_target_and_its_number(void **state)
{
    (void)state;
    for (uint32_t what = 0; what < 9; what++) {
        mesh *m = NULL;
        dp_members *const members = begin(&m, 4);
        dp_probe *const probe = &members->probes[0];
        dp_row *const row = &members->rows[2];
        *probe = (dp_probe){.target = 2,
                            .sequence = 100,
                            .sent = {m->now - 3000},
                            .indirect = what == 5 || what == 6,
                            .last = what == 7,
                            .asked = 2};
        members->lhm = 3;
        row->asked = (dp_time){5};
        row->acked = (dp_time){6};
        members->slot_most = what == 0 ? 80 : 70;
        row->member.has_summary = false;
        const uint32_t samples = row->member.rtt.samples;
        bool ends = true;
        bool measured = false;
        uint32_t from = 2;
        if (what == 0) {
            measured = true;
            CHECK_OK(answers(m, 2, 100, 0, 2));
        } else if (what == 1) { /* It answers the second ping, which was not sent. */
            CHECK_OK(answers(m, 2, 101, 0, 2));
        } else if (what == 2) {
            ends = false;
            CHECK_OK(answers(m, 2, 102, 0, 2));
        } else if (what == 3) { /* About itself. */
            ends = false;
            from = 1;
            CHECK_OK(answers(m, 1, 100, 0, 1));
        } else if (what == 4) { /* A helper has heard it. */
            from = 1;
            CHECK_OK(answers(m, 1, 100, 0, 2));
        } else if (what == 5) {
            measured = true;
            CHECK_OK(answers(m, 2, 101, 0, 2));
        } else if (what == 6) { /* It answers the first, late. */
            CHECK_OK(answers(m, 2, 100, 0, 2));
        } else if (what == 7) { /* The number of the last stage is that of the second. */
            CHECK_OK(answers(m, 2, 100, 0, 2));
        } else {
            ends = false;
            CHECK_STATUS(answers(m, 2, 100, 2, 2), DP_BADMSG);
        }
        CHECK(probe->target == (ends ? DP_MEMBER_NONE : 2));
        CHECK(members->lhm == (ends ? 2 : 3));
        CHECK(row->member.rtt.samples == samples + (measured ? 1 : 0));
        CHECK(row->member.has_summary == (from == 2 && what != 8));
        if (from == 2 && what != 8) {
            CHECK(row->asked.us == 0 && row->acked.us == m->now);
            CHECK(row->member.summary.slot == 77 && row->member.summary_at.us == m->now);
            CHECK(members->slot_most == (what == 0 ? 80 : 77));
        } else {
            CHECK(row->asked.us == 5 && row->acked.us == 6);
        }
        mesh_close(m);
    }
}

static void helpers_that_heard_nothing_are_counted_up_to_those_that_were_asked(void **state)
{
    (void)state;
    mesh *m = NULL;
    dp_members *const members = begin(&m, 4);
    dp_probe *const probe = &members->probes[0];
    *probe = (dp_probe){.target = 2, .sequence = 100, .indirect = true, .asked = 2};
    CHECK_OK(answers(m, 2, 100, 1, 2)); /* Not by the target itself. */
    CHECK(probe->nacks == 0);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_OK(answers(m, 1, 101, 1, 2));
        CHECK(probe->nacks == (i < 2 ? i + 1 : 2) && probe->target == 2);
    }
    mesh_close(m);
}

/* The answer of the target goes on to the node that asked, once, if its link stands. */
static void a_helper_passes_the_answer_of_the_target_on(void **state)
{
    (void)state;
    for (uint32_t what = 0; what < 5; what++) {
        mesh *m = NULL;
        dp_members *const members = begin(&m, 4);
        ack last = {0};
        members->relayed[3] =
            (dp_relayed){.requester = 1, .target = 2, .their_sequence = 41, .own_sequence = 200};
        members->n_relayed = 1;
        members->rows[1].member.linked = what != 1;
        CHECK_OK(answers(m, what == 4 ? 3 : 2, what == 2 ? 202 : 200, what == 3 ? 1 : 0,
                         what == 4 ? 3 : 2));
        const bool done = what < 2;
        CHECK(sent(m, DP_MSG_ACK, &last) == (what == 0 ? 1 : 0));
        CHECK(members->n_relayed == (done ? 0 : 1));
        CHECK(members->relayed[3].requester == (done ? DP_MEMBER_NONE : 1));
        if (what == 0) {
            CHECK(last.to == 1 && last.sequence == 41 && last.nack == 0);
            CHECK(dp_peer_equal(&last.about, &members->rows[2].member.peer));
        }
        members->rows[1].member.linked = true;
        members->relayed[3].requester = DP_MEMBER_NONE;
        members->n_relayed = 0;
        mesh_close(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_helper_pings_the_target_or_says_at_once_that_it_cannot),
        cmocka_unit_test(a_probe_ends_with_an_answer_about_its_target_and_its_number),
        cmocka_unit_test(helpers_that_heard_nothing_are_counted_up_to_those_that_were_asked),
        cmocka_unit_test(a_helper_passes_the_answer_of_the_target_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
