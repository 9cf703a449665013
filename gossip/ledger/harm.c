#include "gossip/ledger/harm.h"

#include <string.h>

#include "base/assert.h"
#include "base/mutation.h"
#include "gossip/core/msg.h"

static const char domain[] = "dpnode/harm/1";

enum { SIGNED_BYTES = 32 + 32 + 32 + 8 };

void dp_harm_write(dp_writer *writer, const dp_harm *harm)
{
    dp_write_u8(writer, DP_MSG_HARM);
    dp_write_u8(writer, DP_MSG_VERSION);
    dp_write_bytes(writer, harm->accused.bytes, sizeof harm->accused.bytes);
    dp_write_u64(writer, harm->round);
    dp_write_bytes(writer, harm->voter.bytes, sizeof harm->voter.bytes);
    dp_write_bytes(writer, harm->signature, sizeof harm->signature);
}

dp_status dp_harm_read(dp_view message, dp_harm *harm)
{
    dp_reader reader = dp_reader_of(message);

    const uint8_t type = dp_read_u8(&reader);
    const uint8_t version = dp_read_u8(&reader);
    dp_read_bytes(&reader, harm->accused.bytes, sizeof harm->accused.bytes);
    harm->round = dp_read_u64(&reader);
    dp_read_bytes(&reader, harm->voter.bytes, sizeof harm->voter.bytes);
    dp_read_bytes(&reader, harm->signature, sizeof harm->signature);
    return type == DP_MSG_HARM && version == DP_MSG_VERSION ? dp_reader_finish(&reader) : DP_BADMSG;
}

static dp_view signed_bytes(const dp_harm *harm, const dp_run_id *run, const dp_hash *fork,
                            uint8_t room[SIGNED_BYTES])
{
    dp_writer writer = dp_writer_of(room, SIGNED_BYTES);

    dp_write_bytes(&writer, run->bytes, sizeof run->bytes);
    dp_write_bytes(&writer, fork->bytes, sizeof fork->bytes);
    dp_write_bytes(&writer, harm->accused.bytes, sizeof harm->accused.bytes);
    dp_write_u64(&writer, harm->round);
    dp_assert(!writer.full);
    return dp_view_of(writer.data, writer.size);
}

bool dp_harm_sign(dp_harm *harm, const dp_crypto *crypto, const dp_run_id *run, const dp_hash *fork)
{
    uint8_t room[SIGNED_BYTES];

    return crypto->sign(crypto->context, DP_KEY_VOTE, domain, signed_bytes(harm, run, fork, room),
                        harm->signature);
}

bool dp_harm_verify(const dp_harm *harm, const uint8_t vote_key[DP_PUBLIC_KEY_BYTES],
                    const dp_crypto *crypto, const dp_run_id *run, const dp_hash *fork)
{
    uint8_t room[SIGNED_BYTES];

    return crypto->verify(crypto->context, vote_key, domain, signed_bytes(harm, run, fork, room),
                          harm->signature);
}

/* ---- the table ---- */

/* A word of a round to come is of a voter that is ahead; the record after next may carry it. */
static bool is_recent(const dp_ledger *ledger, uint64_t round)
{
    return round > 0 && round <= ledger->round + 1 && round + DP_HARM_ROUNDS > ledger->round;
}

static bool may_go(const dp_ledger *ledger, const dp_peer *peer)
{
    return ledger->judges && dp_ledger_member(ledger, peer) != NULL &&
           (dp_ledger_voter(ledger, peer) == DP_NOBODY || dp_broken(221));
}

static uint32_t row_of(const dp_harms *harms, const dp_peer *accused)
{
    uint32_t at = 0;

    while (at < harms->n && !dp_peer_equal(&harms->rows[at].accused, accused)) {
        at++;
    }
    return at;
}

/* Rows in which nobody but this voter speaks: it has its share of them, so that one that lies about
 * many leaves room for others' words. */
static bool has_room(const dp_harms *harms, const dp_ledger *ledger, uint32_t voter)
{
    uint32_t alone = 0;

    for (uint32_t i = 0; i < harms->n; i++) {
        bool others = false;
        for (uint32_t k = 0; k < DP_VOTERS_MAX; k++) {
            others = others || (k != voter && harms->rows[i].rounds[k] != 0);
        }
        alone += !others && harms->rows[i].rounds[voter] != 0 ? 1 : 0;
    }
    return harms->n < DP_HARMS_MAX && alone < DP_HARMS_MAX / ledger->n_voters;
}

bool dp_harms_want(const dp_harms *harms, const dp_ledger *ledger, const dp_harm *harm)
{
    const uint32_t voter = dp_ledger_voter(ledger, &harm->voter);
    const uint32_t at = row_of(harms, &harm->accused);

    return voter != DP_NOBODY && may_go(ledger, &harm->accused) && is_recent(ledger, harm->round) &&
           (at == harms->n ? has_room(harms, ledger, voter)
                           : harms->rows[at].rounds[voter] < harm->round);
}

void dp_harms_add(dp_harms *harms, const dp_ledger *ledger, const dp_harm *harm)
{
    const uint32_t voter = dp_ledger_voter(ledger, &harm->voter);
    const uint32_t at = row_of(harms, &harm->accused);

    dp_assert(harm->round > 0);
    if (voter == DP_NOBODY || at == DP_HARMS_MAX) {
        return;
    }
    if (at == harms->n) {
        harms->rows[harms->n++] = (struct dp_harm_row){.accused = harm->accused};
    }
    harms->rows[at].rounds[voter] = harm->round;
    memcpy(harms->rows[at].signatures[voter], harm->signature, sizeof harm->signature);
}

void dp_harms_prune(dp_harms *harms, const dp_ledger *ledger, bool voters_changed)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < harms->n && !voters_changed; i++) {
        struct dp_harm_row *row = &harms->rows[i];
        bool said = false;
        for (uint32_t k = 0; k < DP_VOTERS_MAX; k++) {
            row->rounds[k] = is_recent(ledger, row->rounds[k]) ? row->rounds[k] : 0;
            said = said || row->rounds[k] != 0;
        }
        if (said && may_go(ledger, &row->accused)) {
            harms->rows[kept++] = *row;
        }
    }
    harms->n = kept;
}

bool dp_harms_removal(const dp_harms *harms, const dp_ledger *ledger, uint32_t index,
                      dp_remove *out)
{
    const struct dp_harm_row *row = &harms->rows[index];
    dp_remove remove = {.peer = row->accused, .reason = DP_REMOVE_HARMFUL};

    dp_assert(index < harms->n);
    for (uint32_t i = 0; i < ledger->n_voters; i++) {
        if (is_recent(ledger, row->rounds[i])) {
            dp_harm_seal *seal = &remove.seals[remove.n_seals++];
            seal->voter = (uint8_t)i;
            seal->round = row->rounds[i];
            memcpy(seal->signature, row->signatures[i], sizeof seal->signature);
        }
    }
    if (!may_go(ledger, &row->accused) || remove.n_seals < dp_ledger_majority(ledger)) {
        return false;
    }
    *out = remove;
    return true;
}

/* ---- evidence ---- */

dp_status dp_harm_valid(const dp_ledger *ledger, const dp_crypto *crypto, const dp_remove *remove,
                        const char **cause)
{
    if (!may_go(ledger, &remove->peer)) {
        *cause = "the record removes a member for harm that may not be removed so";
        return DP_DENIED;
    }
    if (remove->n_seals < dp_ledger_majority(ledger) && !dp_broken(222)) {
        *cause = "fewer than a majority of the voters found the removed member harmful";
        return DP_DENIED;
    }
    for (uint32_t i = 0; i < remove->n_seals; i++) {
        const dp_harm_seal *seal = &remove->seals[i];
        if (seal->voter >= ledger->n_voters || (i > 0 && seal->voter <= seal[-1].voter) ||
            (!is_recent(ledger, seal->round) && !dp_broken(223))) {
            *cause = "a statement of harm is not by a voter, or is too old";
            return DP_DENIED;
        }
        dp_harm harm = {.accused = remove->peer, .round = seal->round};
        memcpy(harm.signature, seal->signature, sizeof harm.signature);
        if (!dp_harm_verify(&harm, ledger->voters[seal->voter].key, crypto, &ledger->run,
                            &ledger->fork) &&
            !dp_broken(224)) {
            *cause = "the signature of a statement of harm is not valid";
            return DP_BADSIG;
        }
    }
    return DP_OK;
}
