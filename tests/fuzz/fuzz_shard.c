/* Any bytes as a token shard of each format and as a shard table: what opens can be read to its
 * end. */
#include <stdlib.h>
#include <string.h>

#include "base/run/token_marks.h"
#include "compute/data/data.h"
#include "compute/data/shard_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { VOCAB = 70000, LENGTH = 3 };

static void read_all(const dp_data *data)
{
    uint32_t x[LENGTH];
    uint32_t y[LENGTH];
    const uint64_t windows = dp_data_windows(data, LENGTH);
    if (dp_data_losses(data, LENGTH) > windows * LENGTH) {
        abort();
    }
    for (uint64_t i = 0; i < windows && i < 100; i++) {
        const dp_status status = dp_data_sample(data, 1, i, LENGTH, x, y);
        const bool follows = dp_token_of(x[1]) == y[0] || y[0] == DP_TOKEN_NO_LOSS;
        /* A document that begins teaches nothing of the one before it. */
        const bool apart = (x[1] & DP_TOKEN_BEGINS) == 0 || y[0] == DP_TOKEN_NO_LOSS;
        if (status != DP_AGAIN &&
            (status != DP_OK || dp_token_of(x[0]) >= VOCAB || !follows || !apart)) {
            abort();
        }
    }
    if (dp_data_val_windows(data, LENGTH) > 0 &&
        dp_data_val_row(data, dp_data_val_windows(data, LENGTH) - 1, LENGTH, x, y) > LENGTH) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const dp_view view = dp_view_of(bytes, size);
    dp_data data;
    dp_shard shard;
    dp_why why = {{0}};
    if (dp_data_open(&data, view, VOCAB, 300, &why) == DP_OK) {
        read_all(&data);
    } else if (why.text[0] == '\0') {
        abort();
    }
    why.text[0] = '\0';
    dp_shard_table table;
    if (dp_shard_table_open(&table, view, &why) == DP_OK) {
        dp_hash last = {{0}};
        for (uint32_t i = 0; i < table.n_shards; i++) {
            last = dp_shard_table_row(&table, i).root;
        }
        if (memcmp(last.bytes, bytes + size - DP_SHARD_ROW_BYTES, sizeof last.bytes) != 0) {
            abort();
        }
    } else if (why.text[0] == '\0') {
        abort();
    }
    const uint64_t tokens[2] = {10, size / 2};
    if (dp_data_open_list(&data, tokens, 2, VOCAB, 300, NULL) != DP_OK) {
        abort();
    }
    why.text[0] = '\0';
    if (dp_data_attach(&data, 1, view, &why) != DP_OK && why.text[0] == '\0') {
        abort();
    }
    read_all(&data);
    dp_data_close(&data);
    if (dp_shard_open_nanogpt(&shard, view, NULL) == DP_OK && dp_shard_needs(&shard) > 65536) {
        abort();
    }
    return 0;
}
