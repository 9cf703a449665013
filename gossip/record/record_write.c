/* A record becomes bytes. */
#include <string.h>

#include "base/assert.h"
#include "gossip/core/msg.h"
#include "gossip/record/listing.h"
#include "gossip/record/part_sum.h"
#include "gossip/record/record_inside.h"

static void write_hash(dp_writer *writer, const dp_hash *hash)
{
    dp_write_bytes(writer, hash->bytes, sizeof hash->bytes);
}

static void write_peer(dp_writer *writer, const dp_peer *peer)
{
    dp_write_bytes(writer, peer->bytes, sizeof peer->bytes);
}

/* Writes the contributions, or in their place the hashes of the lists that hold them. */
static void write_listed(dp_writer *writer, const dp_record *record)
{
    if (record->in_lists) {
        uint8_t room[DP_LIST_BYTES_MAX];
        dp_write_u16(writer, (uint16_t)record->n_listed);
        for (uint32_t i = 0; i < dp_listing_count(record->n_listed); i++) {
            dp_writer list = dp_writer_of(room, sizeof room);
            dp_listing_write(&list, &record->listed[(size_t)i * DP_LIST_ROWS_MAX],
                             dp_listing_rows(record->n_listed, i));
            const dp_hash hash = dp_listing_hash(dp_view_of(room, list.size));
            write_hash(writer, &hash);
        }
        return;
    }
    dp_write_u8(writer, (uint8_t)record->n_listed);
    for (uint32_t i = 0; i < record->n_listed; i++) {
        dp_listing_row_write(writer, &record->listed[i]);
        if (record->parted) {
            dp_write_u32(writer, record->listed[i].rate);
        }
    }
}

static void write_round(dp_writer *writer, const dp_record *record)
{
    dp_assert(record->n_state <= DP_VOTERS_MAX && record->n_late <= DP_LATE_MAX);
    dp_write_u64(writer, record->round);
    write_hash(writer, &record->base);
    write_hash(writer, &record->state_root);
    dp_write_u32(writer, record->alpha);
    dp_write_u64(writer, record->tokens_total);
    dp_write_u128(writer, record->w_total);
    dp_write_u128(writer, record->clip_median);
    dp_write_u8(writer, (uint8_t)record->n_state);
    for (uint32_t i = 0; i < record->n_state; i++) {
        dp_write_u8(writer, record->state[i].voter);
        dp_write_bytes(writer, record->state[i].signature, DP_SIGNATURE_BYTES);
    }
    write_listed(writer, record);
    dp_write_u8(writer, (uint8_t)record->n_late);
    for (uint32_t i = 0; i < record->n_late; i++) {
        write_peer(writer, &record->late[i]);
    }
}

static void write_sums(dp_writer *writer, const dp_record *record, const dp_part_row *part)
{
    dp_assert(part->first_sum + part->n_sums <= DP_SITE_SUMS_ALL);
    dp_write_u8(writer, (uint8_t)part->n_sums);
    for (uint32_t i = 0; i < part->n_sums; i++) {
        const dp_site_sum *sum = &record->sums[part->first_sum + i];
        dp_write_u8(writer, (uint8_t)sum->collector);
        dp_write_u32(writer, sum->from);
        write_hash(writer, &sum->root);
        dp_write_u64(writer, sum->bytes);
        dp_write_bytes(writer, sum->signature, sizeof sum->signature);
    }
}

static void write_parts(dp_writer *writer, const dp_record *record)
{
    dp_assert(record->n_parts <= DP_PARTS_MAX && record->n_sums <= DP_SITE_SUMS_ALL);
    dp_assert(record->n_parts <= DP_PARTS_MAX);
    dp_write_u8(writer, (uint8_t)record->n_parts);
    for (uint32_t i = 0; i < record->n_parts; i++) {
        const dp_part_row *part = &record->parts[i];
        dp_write_u8(writer, part->has ? (part->n_sums > 0 ? DP_RECORD_PART_OF_SUMS
                                                          : DP_RECORD_PART_OF_OBJECTS)
                                      : 0);
        if (part->has) {
            write_peer(writer, &part->owner);
            write_hash(writer, &part->root);
            dp_write_u64(writer, part->bytes);
            dp_write_u32(writer, part->from);
            dp_write_u32(writer, part->q);
            dp_write_bytes(writer, part->signature, DP_SIGNATURE_BYTES);
        }
        if (part->has && part->n_sums > 0) {
            write_sums(writer, record, part);
        }
    }
}

static void write_config(dp_writer *writer, const dp_config_part *config)
{
    dp_assert(config->n_admits <= DP_CONFIG_ADMIT_MAX);
    dp_assert(config->n_removes <= DP_CONFIG_REMOVE_MAX);
    dp_assert(config->n_fences <= DP_CONFIG_FENCE_MAX);
    dp_assert(config->n_voters <= DP_VOTERS_MAX);
    dp_write_u8(writer, (uint8_t)config->n_admits);
    for (uint32_t i = 0; i < config->n_admits; i++) {
        write_peer(writer, &config->admits[i].peer);
        dp_write_u16(writer, (uint16_t)config->admits[i].credential.size);
        dp_write_view(writer, config->admits[i].credential);
    }
    dp_write_u8(writer, (uint8_t)config->n_removes);
    for (uint32_t i = 0; i < config->n_removes; i++) {
        dp_remove_write(writer, &config->removes[i]);
    }
    dp_write_u8(writer, (uint8_t)config->n_fences);
    for (uint32_t i = 0; i < config->n_fences; i++) {
        write_peer(writer, &config->fences[i].peer);
        dp_write_u64(writer, config->fences[i].incarnation);
    }
    dp_write_u8(writer, (uint8_t)config->n_voters);
    for (uint32_t i = 0; i < config->n_voters; i++) {
        const dp_voter_entry *entry = &config->voters[i];
        write_peer(writer, &entry->voter.peer);
        dp_write_bytes(writer, entry->voter.key, DP_PUBLIC_KEY_BYTES);
        dp_write_u8(writer, entry->kept ? 1 : 0);
        dp_write_bytes(writer, entry->signature, DP_SIGNATURE_BYTES);
    }
    if (config->has_revoked) {
        dp_invite_revokes_write(writer, config->revoked, config->n_revoked);
    }
    if (config->has_rotation) {
        dp_rotation_write(writer, &config->rotation);
    }
}

static uint8_t flags_of(const dp_record *record)
{
    unsigned flags = (record->has_config ? DP_RECORD_FLAG_CONFIG : 0U) |
                     (record->parted ? DP_RECORD_FLAG_PARTED : 0U);

    flags |= record->has_config && record->config.has_revoked ? DP_RECORD_FLAG_REVOKED : 0U;
    flags |= record->has_config && record->config.has_rotation ? DP_RECORD_FLAG_ROTATED : 0U;
    if (record->kind == DP_RECORD_ROUND) {
        flags |= (record->aged != 0 ? DP_RECORD_FLAG_AGED : 0U) |
                 (record->lines == DP_LINES_SLOW ? DP_RECORD_FLAG_SLOW : 0U) |
                 (record->lines == DP_LINES_FREE ? DP_RECORD_FLAG_FREE : 0U) |
                 (record->in_lists ? DP_RECORD_FLAG_LISTS : 0U);
    }
    return (uint8_t)flags;
}

static void write_body(dp_writer *writer, const dp_record *record)
{
    if (record->kind == DP_RECORD_ROUND) {
        write_round(writer, record);
        if (record->parted) {
            write_parts(writer, record);
        }
        if (record->aged != 0) {
            dp_write_u32(writer, record->aged);
        }
    } else if (record->kind == DP_RECORD_FORK) {
        dp_write_u64(writer, record->round);
        write_hash(writer, &record->state_root);
    }
    if (record->has_config) {
        write_config(writer, &record->config);
    }
    if (record->kind == DP_RECORD_FORK) {
        dp_write_bytes(writer, record->root_signature, sizeof record->root_signature);
    }
}

/* Behind the voted form, whose size is known now. */
static void write_lists(dp_writer *writer, const dp_record *record)
{
    dp_assert(writer->size <= UINT16_MAX && writer->size > DP_RECORD_VOTED_AT + 1);
    writer->data[DP_RECORD_VOTED_AT] = (uint8_t)writer->size;
    writer->data[DP_RECORD_VOTED_AT + 1] = (uint8_t)(writer->size >> 8);
    for (uint32_t i = 0; i < dp_listing_count(record->n_listed); i++) {
        dp_listing_write(writer, &record->listed[(size_t)i * DP_LIST_ROWS_MAX],
                         dp_listing_rows(record->n_listed, i));
    }
}

dp_status dp_record_encode(const dp_record *record, uint8_t *out, size_t capacity, dp_view *bytes)
{
    const bool is_round = record->kind == DP_RECORD_ROUND;
    const bool in_lists = is_round && record->in_lists;
    dp_writer writer =
        dp_writer_of(out, capacity < DP_RECORD_BYTES_MAX ? capacity : DP_RECORD_BYTES_MAX);

    dp_assert(record->n_listed <=
                  (record->in_lists ? DP_LISTED_MAX : (uint32_t)DP_LISTED_DEFAULT) &&
              record->n_late <= DP_LATE_MAX);
    dp_write_u8(&writer, DP_RECORD_VERSION);
    dp_write_u8(&writer, (uint8_t)record->kind);
    dp_write_u8(&writer, flags_of(record));
    write_hash(&writer, &record->run);
    write_hash(&writer, &record->fork);
    dp_write_u64(&writer, record->slot);
    write_hash(&writer, &record->prev);
    dp_write_u64(&writer, record->time_ms);
    if (in_lists) {
        dp_write_u16(&writer, 0); /* Known at the end. */
    }
    write_body(&writer, record);
    if (in_lists && !writer.full) {
        writer.capacity = capacity;
        write_lists(&writer, record);
    }
    return dp_writer_finish(&writer, bytes);
}
