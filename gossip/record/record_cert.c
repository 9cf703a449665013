/* Certificates of records: the ACCEPTED signatures of a majority. */
#include <string.h>

#include "base/assert.h"
#include "gossip/core/msg.h"
#include "gossip/record/listing.h"
#include "gossip/record/part_sum.h"
#include "gossip/record/record_inside.h"

bool dp_record_read_seals(dp_reader *reader, dp_seal seals[DP_VOTERS_MAX], uint32_t *n)
{
    const uint32_t count = dp_read_u8(reader);

    if (count > DP_VOTERS_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        seals[i].voter = dp_read_u8(reader);
        dp_read_bytes(reader, seals[i].signature, DP_SIGNATURE_BYTES);
        if (seals[i].voter >= DP_VOTERS_MAX || (i > 0 && seals[i].voter <= seals[i - 1].voter)) {
            return false;
        }
    }
    *n = count;
    return true;
}

dp_status dp_cert_of_record_encode(const dp_cert_of_record *cert, uint8_t *out, size_t capacity,
                                   dp_view *bytes)
{
    dp_writer writer = dp_writer_of(out, capacity);

    dp_assert(cert->n <= DP_VOTERS_MAX);
    dp_assert(cert->n <= DP_VOTERS_MAX);
    dp_write_u32(&writer, cert->ballot);
    dp_write_u8(&writer, (uint8_t)cert->n);
    for (uint32_t i = 0; i < cert->n; i++) {
        dp_write_u8(&writer, cert->seals[i].voter);
        dp_write_bytes(&writer, cert->seals[i].signature, DP_SIGNATURE_BYTES);
    }
    return dp_writer_finish(&writer, bytes);
}

dp_status dp_cert_of_record_decode(dp_cert_of_record *cert, dp_view bytes)
{
    dp_reader reader = dp_reader_of(bytes);

    cert->ballot = dp_read_u32(&reader);
    if (!dp_record_read_seals(&reader, cert->seals, &cert->n)) {
        return DP_BADMSG;
    }
    return dp_reader_finish(&reader);
}

bool dp_cert_verify(const dp_cert_of_record *cert, const dp_crypto *crypto, const dp_run_id *run,
                    const dp_hash *fork, uint64_t slot, const dp_hash *prev, const dp_hash *hash,
                    const dp_voter *voters, uint32_t n_voters)
{
    dp_assert(n_voters <= DP_VOTERS_MAX);
    if (cert->n < n_voters / 2 + 1) {
        return false;
    }
    for (uint32_t i = 0; i < cert->n; i++) {
        const dp_seal *seal = &cert->seals[i];
        dp_vote vote = {.type = DP_MSG_ACCEPTED,
                        .voter = seal->voter,
                        .fork = *fork,
                        .slot = slot,
                        .prev = *prev,
                        .ballot = cert->ballot,
                        .hash = *hash};
        /* Indexes rise, so nobody is counted twice. */
        if (seal->voter >= n_voters || (i > 0 && seal->voter <= cert->seals[i - 1].voter)) {
            return false;
        }
        memcpy(vote.signature, seal->signature, sizeof vote.signature);
        if (!dp_vote_verify(&vote, crypto, run, voters[seal->voter].key)) {
            return false;
        }
    }
    return true;
}
