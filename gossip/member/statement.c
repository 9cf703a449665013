#include "gossip/member/statement.h"

#include <string.h>

#include "base/assert.h"

enum { SIGNED_MAX = DP_HASH_BYTES + DP_STATEMENT_BYTES_MAX - DP_SIGNATURE_BYTES };

static const char statement_domain[] = "dpnode/member/2";

/* Run id, then the statement without its signature. */
static dp_view signed_part(const dp_run_id *run, dp_view unsigned_bytes,
                           uint8_t scratch[SIGNED_MAX])
{
    dp_assert(unsigned_bytes.size <= SIGNED_MAX - DP_HASH_BYTES);
    memcpy(scratch, run->bytes, DP_HASH_BYTES);
    memcpy(scratch + DP_HASH_BYTES, unsigned_bytes.data, unsigned_bytes.size);
    return dp_view_of(scratch, DP_HASH_BYTES + unsigned_bytes.size);
}

size_t dp_statement_sign(const dp_statement *statement, const dp_crypto *crypto,
                         const dp_run_id *run, uint8_t bytes[DP_STATEMENT_BYTES_MAX])
{
    uint8_t scratch[SIGNED_MAX];
    dp_writer writer = dp_writer_of(bytes, DP_STATEMENT_BYTES_MAX - DP_SIGNATURE_BYTES);

    dp_assert(statement->n_addrs <= DP_ADDRS_MAX);
    dp_write_u8(&writer, (uint8_t)statement->kind);
    dp_write_u8(&writer, (uint8_t)statement->cause);
    dp_write_bytes(&writer, statement->subject.bytes, sizeof statement->subject.bytes);
    dp_write_u64(&writer, statement->incarnation);
    dp_write_u32(&writer, statement->revision);
    dp_write_bytes(&writer, statement->author.bytes, sizeof statement->author.bytes);
    dp_write_u8(&writer, (uint8_t)statement->n_addrs);
    for (uint32_t i = 0; i < statement->n_addrs; i++) {
        const dp_address address = dp_addr_address(&statement->addrs[i]);
        dp_address_write(&writer, &address);
    }
    dp_assert(!writer.full);
    if (!crypto->sign(crypto->context, DP_KEY_IDENTITY, statement_domain,
                      signed_part(run, dp_view_of(bytes, writer.size), scratch),
                      bytes + writer.size)) {
        return 0;
    }
    return writer.size + DP_SIGNATURE_BYTES;
}

/* Are the fields of the statement allowed for its kind? */
static bool is_sound(const dp_statement *statement)
{
    const bool by_subject = dp_peer_equal(&statement->subject, &statement->author);

    switch (statement->kind) {
    case DP_STATEMENT_ALIVE:
        return by_subject && statement->cause == DP_CAUSE_NONE;
    case DP_STATEMENT_SUSPECT:
    case DP_STATEMENT_DEAD:
        return !by_subject && statement->n_addrs == 0 &&
               (statement->cause == DP_CAUSE_RESET || statement->cause == DP_CAUSE_SILENCE);
    case DP_STATEMENT_LEFT:
    case DP_STATEMENT_DOWN:
        return by_subject && statement->n_addrs == 0 && statement->cause == DP_CAUSE_NONE;
    }
    return false;
}

dp_status dp_statement_read(dp_reader *reader, dp_statement *statement, dp_view *bytes)
{
    const uint8_t *const start = reader->at;
    dp_statement read = {0};
    const uint8_t kind = dp_read_u8(reader);
    const uint8_t cause = dp_read_u8(reader);

    if (kind < DP_STATEMENT_ALIVE || kind > DP_STATEMENT_DOWN || cause > DP_CAUSE_SILENCE) {
        return DP_BADMSG;
    }
    read.kind = (dp_statement_kind)kind;
    read.cause = (dp_statement_cause)cause;
    dp_read_bytes(reader, read.subject.bytes, sizeof read.subject.bytes);
    read.incarnation = dp_read_u64(reader);
    read.revision = dp_read_u32(reader);
    dp_read_bytes(reader, read.author.bytes, sizeof read.author.bytes);
    read.n_addrs = dp_read_u8(reader);
    if (read.n_addrs > DP_ADDRS_MAX) {
        return DP_BADMSG;
    }
    for (uint32_t i = 0; i < read.n_addrs; i++) {
        dp_address address;
        DP_TRY(dp_address_read(reader, &address));
        read.addrs[i] = dp_addr_of(&address);
    }
    const dp_view signature = dp_read_view(reader, DP_SIGNATURE_BYTES);
    if (reader->failed || !is_sound(&read)) {
        return DP_BADMSG;
    }
    *statement = read;
    *bytes = dp_view_of(start, (size_t)(signature.data + signature.size - start));
    return DP_OK;
}

bool dp_statement_verify(const dp_statement *statement, dp_view bytes, const dp_crypto *crypto,
                         const dp_run_id *run)
{
    uint8_t scratch[SIGNED_MAX];
    dp_assert(bytes.size > DP_SIGNATURE_BYTES);
    const size_t size = bytes.size - DP_SIGNATURE_BYTES;

    return crypto->verify(crypto->context, statement->author.bytes, statement_domain,
                          signed_part(run, dp_view_of(bytes.data, size), scratch),
                          bytes.data + size);
}
