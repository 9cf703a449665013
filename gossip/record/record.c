#include "gossip/record/record.h"

#include <string.h>

#include "base/assert.h"
#include "gossip/core/msg.h"
#include "gossip/record/listing.h"
#include "gossip/record/part_sum.h"
#include "gossip/record/record_inside.h"

static const char record_domain[] = "dpnode/record/1";

/* Flags that a ROUND may have beside a config part. */
static const unsigned flags_of_round = DP_RECORD_FLAG_PARTED | DP_RECORD_FLAG_AGED |
                                       DP_RECORD_FLAG_SLOW | DP_RECORD_FLAG_FREE |
                                       DP_RECORD_FLAG_LISTS;

static void read_hash(dp_reader *reader, dp_hash *hash)
{
    dp_read_bytes(reader, hash->bytes, sizeof hash->bytes);
}

static void read_peer(dp_reader *reader, dp_peer *peer)
{
    dp_read_bytes(reader, peer->bytes, sizeof peer->bytes);
}

/* Peers rise strictly, so that a list has one form and holds nobody twice. */
static bool rises(const dp_peer *before, const dp_peer *peer, uint32_t index)
{
    return index == 0 || dp_peer_compare(before, peer) < 0;
}

/* Of the lists their hashes only: the rows stand behind the voted form. */
static bool read_hashes(dp_reader *reader, dp_record *record)
{
    record->n_listed = dp_read_u16(reader);
    if (reader->failed || record->n_listed == 0 || record->n_listed > DP_LISTED_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < dp_listing_count(record->n_listed); i++) {
        read_hash(reader, &record->lists[i]);
    }
    return !reader->failed;
}

static bool read_listed(dp_reader *reader, dp_record *record)
{
    record->n_listed = dp_read_u8(reader);
    if (record->n_listed > DP_LISTED_DEFAULT) {
        return false;
    }
    for (uint32_t i = 0; i < record->n_listed; i++) {
        dp_listed *listed = &record->listed[i];
        dp_listing_row_read(reader, listed);
        listed->rate = record->parted ? dp_read_u32(reader) : 0;
        if (reader->failed || (i > 0 && !rises(&listed[-1].peer, &listed->peer, i))) {
            return false;
        }
    }
    return true;
}

static bool read_late(dp_reader *reader, dp_record *record)
{
    record->n_late = dp_read_u8(reader);
    if (record->n_late > DP_LATE_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < record->n_late; i++) {
        read_peer(reader, &record->late[i]);
        if (reader->failed || (i > 0 && !rises(&record->late[i - 1], &record->late[i], i))) {
            return false;
        }
    }
    return true;
}

static bool read_sums(dp_reader *reader, dp_record *record, dp_part_row *part)
{
    dp_site_sum *sums = &record->sums[record->n_sums];

    part->first_sum = record->n_sums;
    part->n_sums = dp_read_u8(reader);
    if (reader->failed || part->n_sums == 0 || part->n_sums > DP_SITE_SUMS_ALL - record->n_sums) {
        return false;
    }
    for (uint32_t i = 0; i < part->n_sums; i++) {
        sums[i].collector = dp_read_u8(reader);
        sums[i].from = dp_read_u32(reader);
        read_hash(reader, &sums[i].root);
        sums[i].bytes = dp_read_u64(reader);
        dp_read_bytes(reader, sums[i].signature, sizeof sums[i].signature);
    }
    record->n_sums += part->n_sums;
    return !reader->failed && dp_site_sums_fit(sums, part->n_sums, part->from);
}

static bool read_parts(dp_reader *reader, dp_record *record)
{
    record->n_parts = dp_read_u8(reader);
    if (record->n_parts > DP_PARTS_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < record->n_parts; i++) {
        dp_part_row *part = &record->parts[i];
        const uint8_t has = dp_read_u8(reader);
        *part = (dp_part_row){.has = has != 0};
        if (reader->failed || has > DP_RECORD_PART_OF_SUMS) {
            return false;
        }
        if (part->has) {
            read_peer(reader, &part->owner);
            read_hash(reader, &part->root);
            part->bytes = dp_read_u64(reader);
            part->from = dp_read_u32(reader);
            part->q = dp_read_u32(reader);
            dp_read_bytes(reader, part->signature, DP_SIGNATURE_BYTES);
        }
        if (has == DP_RECORD_PART_OF_SUMS && !read_sums(reader, record, part)) {
            return false;
        }
    }
    return true;
}

static bool read_round(dp_reader *reader, dp_record *record)
{
    record->round = dp_read_u64(reader);
    read_hash(reader, &record->base);
    read_hash(reader, &record->state_root);
    record->alpha = dp_read_u32(reader);
    record->tokens_total = dp_read_u64(reader);
    record->w_total = dp_read_u128(reader);
    record->clip_median = dp_read_u128(reader);
    return dp_record_read_seals(reader, record->state, &record->n_state) &&
           (record->in_lists ? read_hashes(reader, record) : read_listed(reader, record)) &&
           read_late(reader, record) && (!record->parted || read_parts(reader, record));
}

/* Without any there is no mask, so that a record has one form. */
static bool read_aged(dp_reader *reader, dp_record *record)
{
    record->aged = dp_read_u32(reader);
    return record->aged != 0 &&
           (record->n_listed == DP_LISTED_DEFAULT || record->aged >> record->n_listed == 0);
}

static bool read_admits(dp_reader *reader, dp_config_part *config)
{
    config->n_admits = dp_read_u8(reader);
    if (config->n_admits > DP_CONFIG_ADMIT_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < config->n_admits; i++) {
        dp_admit *admit = &config->admits[i];
        read_peer(reader, &admit->peer);
        const uint16_t size = dp_read_u16(reader);
        if (size > DP_CREDENTIAL_MAX) {
            return false;
        }
        admit->credential = dp_read_view(reader, size);
        if (reader->failed || (i > 0 && !rises(&admit[-1].peer, &admit->peer, i))) {
            return false;
        }
    }
    return true;
}

static bool read_removes(dp_reader *reader, dp_config_part *config)
{
    config->n_removes = dp_read_u8(reader);
    if (config->n_removes > DP_CONFIG_REMOVE_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < config->n_removes; i++) {
        dp_remove *remove = &config->removes[i];
        if (!dp_remove_read(reader, remove) ||
            (i > 0 && !rises(&remove[-1].peer, &remove->peer, i))) {
            return false;
        }
    }
    config->n_fences = dp_read_u8(reader);
    if (config->n_fences > DP_CONFIG_FENCE_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < config->n_fences; i++) {
        dp_fence *fence = &config->fences[i];
        read_peer(reader, &fence->peer);
        fence->incarnation = dp_read_u64(reader);
        if (reader->failed || (i > 0 && !rises(&fence[-1].peer, &fence->peer, i))) {
            return false;
        }
    }
    return true;
}

static bool read_voters(dp_reader *reader, dp_config_part *config)
{
    static const uint8_t none[DP_SIGNATURE_BYTES];

    config->n_voters = dp_read_u8(reader);
    if (config->n_voters > DP_VOTERS_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < config->n_voters; i++) {
        dp_voter_entry *entry = &config->voters[i];
        read_peer(reader, &entry->voter.peer);
        dp_read_bytes(reader, entry->voter.key, DP_PUBLIC_KEY_BYTES);
        const uint8_t kept = dp_read_u8(reader);
        dp_read_bytes(reader, entry->signature, DP_SIGNATURE_BYTES);
        if (reader->failed || kept > 1 ||
            (kept == 1 && memcmp(entry->signature, none, sizeof none) != 0) ||
            (i > 0 && !rises(&entry[-1].voter.peer, &entry->voter.peer, i))) {
            return false;
        }
        entry->kept = kept == 1;
    }
    return true;
}

/* ROUND alone has the other flags, and the marks of 32 contributions are not of lists. */
static bool flags_fit(uint8_t kind, uint8_t flags)
{
    return (kind == DP_RECORD_ROUND || kind == DP_RECORD_CONFIG || kind == DP_RECORD_FORK) &&
           ((flags & (DP_RECORD_FLAG_REVOKED | DP_RECORD_FLAG_ROTATED)) == 0 ||
            (flags & DP_RECORD_FLAG_CONFIG) != 0) &&
           ((flags & DP_RECORD_FLAG_ROTATED) == 0 || kind != DP_RECORD_FORK) &&
           ((flags & flags_of_round) == 0 || kind == DP_RECORD_ROUND) &&
           (flags & (DP_RECORD_FLAG_SLOW | DP_RECORD_FLAG_FREE)) !=
               (DP_RECORD_FLAG_SLOW | DP_RECORD_FLAG_FREE) &&
           ((flags & DP_RECORD_FLAG_LISTS) == 0 ||
            (flags & (DP_RECORD_FLAG_PARTED | DP_RECORD_FLAG_AGED)) == 0);
}

/* The lists behind the voted form; peers rise from one to the next. DP_AGAIN: there are none. */
static dp_status read_lists(dp_record *record, dp_view bytes)
{
    dp_reader reader = dp_reader_of(bytes);

    if (bytes.size == 0) {
        return DP_AGAIN;
    }
    for (uint32_t i = 0; i < dp_listing_count(record->n_listed); i++) {
        dp_listed *rows = &record->listed[(size_t)i * DP_LIST_ROWS_MAX];
        const uint32_t expected = dp_listing_rows(record->n_listed, i);
        const dp_view list = dp_read_view(&reader, dp_listing_bytes(expected));
        uint32_t n = 0;
        if (reader.failed) {
            return DP_BADMSG;
        }
        const dp_hash hash = dp_listing_hash(list);
        if (!dp_hash_equal(&hash, &record->lists[i])) {
            return DP_BADHASH;
        }
        DP_TRY(dp_listing_read(list, rows, &n));
        if (n != expected || !rises(&rows[i == 0 ? 0 : -1].peer, &rows[0].peer, i)) {
            return DP_BADMSG;
        }
    }
    return dp_reader_finish(&reader);
}

/* Reads the body behind the head; false: it is malformed. */
static bool read_body(dp_reader *reader, dp_record *record, uint8_t flags)
{
    if (record->kind == DP_RECORD_ROUND && !read_round(reader, record)) {
        return false;
    }
    if ((flags & DP_RECORD_FLAG_AGED) != 0 && !read_aged(reader, record)) {
        return false;
    }
    if (record->kind == DP_RECORD_FORK) {
        record->round = dp_read_u64(reader);
        read_hash(reader, &record->state_root);
    }
    record->config.n_admits = 0;
    record->config.n_removes = 0;
    record->config.n_fences = 0;
    record->config.n_voters = 0;
    record->config.n_revoked = 0;
    record->config.has_revoked = (flags & DP_RECORD_FLAG_REVOKED) != 0;
    if (record->has_config &&
        !(read_admits(reader, &record->config) && read_removes(reader, &record->config) &&
          read_voters(reader, &record->config))) {
        return false;
    }
    if (record->config.has_revoked &&
        !dp_invite_revokes_read(reader, record->config.revoked, DP_CONFIG_REVOKE_MAX,
                                &record->config.n_revoked)) {
        return false;
    }
    record->config.has_rotation = (flags & DP_RECORD_FLAG_ROTATED) != 0;
    if (record->config.has_rotation) {
        dp_rotation_read(reader, &record->config.rotation);
    }
    if (record->kind == DP_RECORD_FORK) {
        dp_read_bytes(reader, record->root_signature, sizeof record->root_signature);
    }
    return true;
}

dp_status dp_record_decode(dp_record *record, dp_view bytes)
{
    const dp_view voted = dp_record_voted(bytes);
    dp_reader reader = dp_reader_of(voted);

    if (voted.size > DP_RECORD_BYTES_MAX) {
        return DP_TOOBIG;
    }
    if (dp_read_u8(&reader) != DP_RECORD_VERSION) {
        return DP_VERSION;
    }
    const uint8_t kind = dp_read_u8(&reader);
    const uint8_t flags = dp_read_u8(&reader);
    if (!flags_fit(kind, flags)) {
        return DP_BADMSG;
    }
    record->kind = (dp_record_kind)kind;
    record->has_config = (flags & DP_RECORD_FLAG_CONFIG) != 0;
    record->parted = (flags & DP_RECORD_FLAG_PARTED) != 0;
    record->lines = (flags & DP_RECORD_FLAG_SLOW) != 0   ? DP_LINES_SLOW
                    : (flags & DP_RECORD_FLAG_FREE) != 0 ? DP_LINES_FREE
                                                         : DP_LINES_FIT;
    record->in_lists = (flags & DP_RECORD_FLAG_LISTS) != 0;
    record->n_parts = 0;
    record->n_sums = 0;
    read_hash(&reader, &record->run);
    read_hash(&reader, &record->fork);
    record->slot = dp_read_u64(&reader);
    read_hash(&reader, &record->prev);
    record->time_ms = dp_read_u64(&reader);
    record->round = 0;
    record->n_listed = 0;
    record->n_late = 0;
    record->n_state = 0;
    record->aged = 0;
    if ((record->in_lists && dp_read_u16(&reader) != voted.size) ||
        !read_body(&reader, record, flags)) {
        return DP_BADMSG;
    }
    DP_TRY(dp_reader_finish(&reader));
    return record->in_lists
               ? read_lists(record, dp_view_of(bytes.data + voted.size, bytes.size - voted.size))
               : DP_OK;
}

dp_view dp_record_voted(dp_view bytes)
{
    if (bytes.size < DP_RECORD_VOTED_AT + 2 || bytes.data[DP_RECORD_KIND_AT] != DP_RECORD_ROUND ||
        (bytes.data[DP_RECORD_FLAGS_AT] & DP_RECORD_FLAG_LISTS) == 0) {
        return bytes;
    }
    const size_t size = bytes.data[DP_RECORD_VOTED_AT] | (size_t)bytes.data[DP_RECORD_VOTED_AT + 1]
                                                             << 8;
    return size <= bytes.size ? dp_view_of(bytes.data, size) : bytes;
}

dp_status dp_record_lists(dp_view bytes, dp_hash hashes[DP_LISTS_MAX], uint32_t *n)
{
    enum { SEALS_AT = DP_RECORD_VOTED_AT + 2 + 8 + 32 + 32 + 4 + 8 + 16 + 16, SEAL_BYTES = 1 + 64 };
    const dp_view voted = dp_record_voted(bytes);
    dp_reader reader = dp_reader_of(voted);

    *n = 0;
    if (bytes.size <= DP_RECORD_FLAGS_AT || bytes.data[DP_RECORD_KIND_AT] != DP_RECORD_ROUND ||
        (bytes.data[DP_RECORD_FLAGS_AT] & DP_RECORD_FLAG_LISTS) == 0 || voted.size < bytes.size) {
        return DP_OK;
    }
    dp_read_view(&reader, SEALS_AT);
    const uint32_t seals = dp_read_u8(&reader);
    dp_read_view(&reader, (size_t)seals * SEAL_BYTES);
    const uint32_t listed = dp_read_u16(&reader);
    if (reader.failed || listed == 0 || listed > DP_LISTED_MAX) {
        return DP_BADMSG;
    }
    for (uint32_t i = 0; i < dp_listing_count(listed); i++) {
        read_hash(&reader, &hashes[i]);
    }
    if (reader.failed) {
        return DP_BADMSG;
    }
    *n = dp_listing_count(listed);
    return DP_OK;
}

uint32_t dp_listed_age(const dp_record *record, uint32_t index)
{
    return index < DP_LISTED_DEFAULT ? record->aged >> index & 1U : 0;
}

dp_hash dp_record_hash(dp_view bytes)
{
    return dp_hash_of(record_domain, dp_record_voted(bytes));
}
