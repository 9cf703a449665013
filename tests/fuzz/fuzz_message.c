/* Any bytes as a control message: every decoder ends with a status, and what decodes encodes to the
 * same bytes. */
#include <string.h>

#include "base/assert.h"
#include "gossip/core/msg.h"
#include "gossip/identity/invite_revoke.h"
#include "gossip/ledger/harm.h"
#include "gossip/member/statement.h"
#include "gossip/member/summary.h"
#include "gossip/pairs/mix_msg.h"
#include "gossip/record/lists.h"
#include "gossip/record/part_sum.h"
#include "gossip/record/wire.h"
#include "gossip/requests/request_msg.h"
#include "gossip/round/round_msg.h"
#include "gossip/vote/commit_msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t room[DP_MESSAGE_MAX + 64];

static void same(const dp_writer *writer, dp_view bytes)
{
    dp_assert(!writer->full);
    dp_assert(dp_view_equal(dp_view_of(writer->data, writer->size), bytes));
}

static void round_messages(dp_view bytes)
{
    dp_writer writer = dp_writer_of(room, sizeof room);
    dp_ready ready;
    dp_state_msg state;
    dp_voter_ok_msg offer;
    dp_remove removal;
    dp_fence_ask fence;
    dp_invite_revoke revoke;
    dp_renewal renewal;
    dp_rotation rotation;
    dp_secret secret;
    dp_harm harm;
    static dp_have_msg have;
    static dp_part_word word;
    static dp_collect collect;
    static dp_list_get_msg get;
    dp_view list;

    if (dp_ready_msg_read(bytes, &ready) == DP_OK) {
        dp_ready_msg_write(&writer, &ready);
    } else if (dp_part_msg_read(bytes, &word) == DP_OK) {
        dp_part_msg_write(&writer, &word);
    } else if (dp_site_sum_msg_read(bytes, &word) == DP_OK) {
        dp_site_sum_msg_write(&writer, &word);
    } else if (dp_collect_read(bytes, &collect) == DP_OK) {
        dp_collect_write(&writer, &collect);
    } else if (dp_list_get_msg_read(bytes, &get) == DP_OK) {
        dp_list_get_msg_write(&writer, &get);
    } else if (dp_list_msg_read(bytes, &list) == DP_OK) {
        dp_list_msg_write(&writer, list);
    } else if (dp_have_msg_read(bytes, &have) == DP_OK) {
        dp_have_msg_write(&writer, &have);
    } else if (dp_state_msg_read(bytes, &state) == DP_OK) {
        dp_state_msg_write(&writer, &state);
    } else if (dp_voter_ok_msg_read(bytes, &offer) == DP_OK) {
        dp_voter_ok_msg_write(&writer, &offer);
    } else if (dp_remove_msg_read(bytes, &removal) == DP_OK) {
        dp_remove_msg_write(&writer, &removal);
    } else if (dp_fence_msg_read(bytes, &fence) == DP_OK) {
        dp_fence_msg_write(&writer, &fence);
    } else if (dp_renewal_msg_read(bytes, &renewal) == DP_OK) {
        dp_renewal_msg_write(&writer, &renewal);
    } else if (dp_invite_revoke_msg_read(bytes, &revoke) == DP_OK) {
        dp_invite_revoke_msg_write(&writer, &revoke);
    } else if (dp_rotation_msg_read(bytes, &rotation, &secret) == DP_OK) {
        dp_rotation_msg_write(&writer, &rotation, &secret);
    } else if (dp_secret_msg_read(bytes, &secret) == DP_OK) {
        dp_secret_msg_write(&writer, &secret);
    } else if (dp_harm_read(bytes, &harm) == DP_OK) {
        dp_harm_write(&writer, &harm);
    } else {
        return;
    }
    same(&writer, bytes);
}

static void vote_messages(dp_view bytes)
{
    dp_writer writer = dp_writer_of(room, sizeof room);
    static dp_vote_msg msg;
    dp_decide_msg decide;
    dp_vote a;
    dp_vote b;

    if (dp_vote_msg_read(bytes, &msg) == DP_OK) {
        dp_vote_msg_write(&writer, &msg);
    } else if (dp_decide_msg_read(bytes, &decide) == DP_OK) {
        dp_decide_msg_write(&writer, decide.slot, decide.cert, decide.record);
    } else if (dp_proof_msg_read(bytes, &a, &b) == DP_OK) {
        dp_proof_msg_write(&writer, &a, &b);
    } else {
        return;
    }
    same(&writer, bytes);
}

/* A name is cleaned as it is read, so only that it ends, and that what was read can be told
 * again. */
static void summaries(dp_view bytes)
{
    dp_writer writer = dp_writer_of(room, sizeof room);
    dp_signed_summary said;

    if (dp_summary_open(bytes, &said) == DP_OK) {
        dp_assert(bytes.size <= DP_SUMMARY_MESSAGE_MAX && strlen(said.name) <= DP_NAME_MAX);
        dp_summary_write(&writer, &said.summary);
        dp_assert(dp_view_equal(
            dp_view_of(writer.data, writer.size),
            dp_view_of(bytes.data + bytes.size - DP_SIGNATURE_BYTES - DP_SUMMARY_BYTES,
                       DP_SUMMARY_BYTES)));
    }
}

/* One statement of a member, as ALIVE, SUSPECT and SYNC messages have them. */
static void statements(dp_view bytes)
{
    dp_reader reader = dp_reader_of(bytes);
    dp_statement statement;
    dp_view whole;

    if (dp_statement_read(&reader, &statement, &whole) == DP_OK) {
        dp_assert(statement.n_addrs <= DP_ADDRS_MAX && whole.size <= DP_STATEMENT_BYTES_MAX);
    }
}

static void exchange_messages(dp_view bytes)
{
    dp_writer writer = dp_writer_of(room, sizeof room);
    dp_mix_msg msg;
    dp_mix_signed word;

    if (dp_mix_msg_read(bytes, &msg) == DP_OK) {
        dp_mix_msg_write(&writer, &msg);
    } else if (dp_mix_signed_read(bytes, &word) == DP_OK) {
        dp_mix_signed_write(&writer, &word);
    } else {
        return;
    }
    same(&writer, bytes);
}

static void stored_things(dp_view bytes)
{
    static dp_hash leaves[DP_CHUNKS_MAX];
    static dp_wire_records records;
    dp_wire_chunk chunk;
    dp_wire_relay relay;
    dp_wire_info info;
    dp_view manifest;
    dp_hash root;
    uint64_t from = 0;
    uint32_t number = 0;

    DP_IGNORE(dp_wire_read_info_get(bytes, &root)); /* Only that it ends. */
    DP_IGNORE(dp_wire_read_info(bytes, &info, leaves));
    DP_IGNORE(dp_wire_read_chunk_get(bytes, &root, &number));
    DP_IGNORE(dp_wire_read_chunk_drop(bytes, &root));
    DP_IGNORE(dp_wire_read_chunk(bytes, &chunk));
    DP_IGNORE(dp_wire_read_records_get(bytes, &from, &number));
    DP_IGNORE(dp_wire_read_manifest(bytes, &manifest));
    if (dp_wire_read_records(bytes, &records) == DP_OK) {
        for (uint32_t i = 0; i < records.n; i++) {
            dp_assert(records.items[i].record.size <= DP_RECORD_WHOLE_MAX);
        }
    }
    if (dp_wire_read_relay(bytes, &relay) == DP_OK) {
        dp_assert(relay.message.size < bytes.size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const dp_view bytes = dp_view_of(data, size);

    if (size <= DP_MESSAGE_MAX) {
        round_messages(bytes);
        vote_messages(bytes);
        summaries(bytes);
        statements(bytes);
        exchange_messages(bytes);
    }
    stored_things(bytes);
    return 0;
}
