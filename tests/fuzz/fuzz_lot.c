/* Fuzz target of the framing of the bulk lane: records u8 type | u16 size | bytes, again and again,
 * framed as they would come and told as if they were authentic. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "gossip/channel/record_batch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t message[DP_RECORD_BATCH_MESSAGE_MAX];
    static uint8_t wire[DP_SEALED_RECORD_MAX + 64];
    dp_record_batch_framer framer = {0};
    dp_record_batch_story story = {0};
    dp_reader reader = dp_reader_of(dp_view_of(data, size));

    while (dp_reader_left(&reader) >= 3) {
        const uint8_t type = dp_read_u8(&reader);
        const uint32_t wanted = dp_read_u16(&reader);
        const size_t left = dp_reader_left(&reader);
        const dp_view given = dp_read_view(&reader, wanted < left ? wanted : left);
        /* A full record is too long for most inputs to hold, so the two largest sizes stand for it
         * and one more. */
        const uint32_t plain = wanted >= UINT16_MAX - 1 ? DP_RECORD_PLAIN_MAX + UINT16_MAX - wanted
                                                        : (uint32_t)given.size;
        dp_writer header = dp_writer_of(wire, DP_RECORD_HEADER_BYTES);
        dp_record_batch_record record;
        bool complete = false;
        dp_write_u32(&header, (plain + DP_NOISE_TAG_BYTES) | (uint32_t)type << 24);
        memset(wire + DP_RECORD_HEADER_BYTES, 0, plain);
        if (given.size > 0) {
            memcpy(wire + DP_RECORD_HEADER_BYTES, given.data,
                   given.size < plain ? given.size : plain);
        }
        const size_t whole = DP_RECORD_HEADER_BYTES + plain + DP_NOISE_TAG_BYTES;
        dp_record_batch_framer part = framer;
        if (dp_record_batch_frame(&part, dp_view_of(wire, whole - 1), &record) == DP_OK) {
            dp_assert(record.bytes == 0);
        }
        if (dp_record_batch_frame(&framer, dp_view_of(wire, whole), &record) != DP_OK ||
            record.closes) {
            return 0;
        }
        dp_assert(record.bytes == whole && record.plain == plain);
        dp_assert((uint64_t)record.offset + record.plain <= sizeof message);
        memcpy(message + record.offset, wire + DP_RECORD_HEADER_BYTES, plain);
        if (dp_record_batch_accept(&story, record.begins, message + record.offset, plain,
                                   &complete) != DP_OK) {
            return 0;
        }
        dp_assert(story.have <= story.size && story.size <= DP_MESSAGE_BULK_MAX);
        dp_assert(!complete || story.have == story.size);
        dp_assert(record.offset + record.plain >= story.have);
    }
    return 0;
}
