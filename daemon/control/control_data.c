/* The method data: the data of the run, object by object, and which of it is on this node. */
#include "base/run/samples.h"
#include "daemon/control/control.h"
#include "daemon/control/reply.h"
#include "daemon/peer/driver.h"

uint32_t dp_data_objects(const dp_driver *driver, uint32_t *here)
{
    const dp_manifest *const manifest = dp_driver_manifest(driver);
    const dp_node *const node = dp_driver_node(driver);
    uint32_t count = 0;
    *here = 0;
    if (manifest == NULL) {
        return 0;
    }
    for (uint32_t i = 0; i <= manifest->n_shards; i++) {
        const dp_hash *const root =
            i < manifest->n_shards ? &manifest->shards[i].root : &manifest->tokenizer;
        count++;
        *here += node != NULL && dp_node_holds(node, root);
    }
    if (dp_manifest_adapts(manifest)) {
        count++;
        *here += node != NULL && dp_node_holds(node, &manifest->base);
    }
    return count;
}

typedef struct data_item {
    const char *kind;
    const dp_hash *root;
    uint64_t bytes;
    uint64_t tokens; /* of a shard */
} data_item;

static void add_data(dp_group *list, const dp_node *node, const data_item *about)
{
    if (dp_hash_is_zero(about->root)) {
        return; /* Weights that are initialized from the seed. */
    }
    dp_group item = dp_map_begin(dp_item(list));
    dp_pair_text(&item, "kind", about->kind);
    dp_pair_hex(&item, "root", dp_view_of(about->root->bytes, DP_HASH_BYTES));
    dp_pair_u64(&item, "bytes", about->bytes);
    if (about->tokens > 0) {
        dp_pair_u64(&item, "tokens", about->tokens);
    }
    dp_pair_bool(&item, "local", node != NULL && dp_node_holds(node, about->root));
    dp_group_end(&item);
}

void dp_method_data(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    (void)parameters;
    const dp_driver *driver = dp_call_driver(daemon, call);
    const dp_manifest *manifest = driver != NULL ? dp_driver_manifest(driver) : NULL;
    dp_packer packer;
    if (driver == NULL || !dp_call_begin(call, DP_CONTROL_REPLY, &packer)) {
        return;
    }
    const dp_node *const node = dp_driver_node(driver);
    dp_group map = dp_map_begin(&packer);
    dp_group data = dp_array_begin(dp_pair(&map, "data"));
    if (manifest != NULL) {
        add_data(&data, node,
                 &(data_item){dp_manifest_external(manifest) ? "table" : "tokenizer",
                              &manifest->tokenizer, manifest->tokenizer_bytes, 0});
        for (uint32_t i = 0; i < manifest->n_shards; i++) {
            const dp_manifest_shard *const shard = &manifest->shards[i];
            add_data(&data, node,
                     &(data_item){"tokens", &shard->root, shard->bytes, shard->tokens});
        }
        add_data(&data, node, &(data_item){"weights", &manifest->init, manifest->init_bytes, 0});
        add_data(&data, node, &(data_item){"base", &manifest->base, manifest->base_bytes, 0});
    }
    dp_group_end(&data);
    if (manifest != NULL) {
        dp_pair_u64(&map, "tokens", dp_manifest_tokens(manifest));
        dp_pair_u64(&map, "samples", dp_manifest_samples(manifest));
    }
    dp_group_end(&map);
    dp_call_end(call, &packer);
}
