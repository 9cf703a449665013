/* Any bytes as messages of peers to a whole node: two members and a guest send them, and after each
 * the node must hold every invariant that dp_node_check knows.
 *
 *   input   messages: u8 sender (1 + it % 3: two members, a guest) | u16 size | the bytes */
#include "base/bytes.h"
#include "gossip/node/node.h"
#include "tests/lib/check.h"
#include "tests/unit/gossip/kit/node_kit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
    MEMBERS = 3,
    GUEST = 3,
    INPUTS_PER_WORLD = 256, /* then begins another: what one input leaves behind meets the next */
    MESSAGES_MAX = 8        /* of one input */
};

/* Three members at work, and a fourth node that is linked to the first and no member yet. */
static kit_world *open_world(void)
{
    kit_world *const world = kit_together(MEMBERS);

    world->n = MEMBERS + 1;
    world->nodes[GUEST].index = GUEST;
    kit_boot(world, GUEST);
    world->nodes[GUEST].deaf = true; /* It says what the input says, and nothing else. */
    kit_link(world, 0, GUEST);
    kit_drain(world);
    return world;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static kit_world *world;
    static unsigned inputs;
    dp_reader reader = dp_reader_of(dp_view_of(data, size));

    if (world == NULL || inputs++ == INPUTS_PER_WORLD) {
        if (world != NULL) {
            kit_close(world);
        }
        world = open_world();
        inputs = 1;
    }
    for (unsigned i = 0; i < MESSAGES_MAX && dp_reader_left(&reader) > 0; i++) {
        const uint32_t from = 1 + dp_read_u8(&reader) % MEMBERS;
        const dp_view message = dp_read_view(&reader, dp_read_u16(&reader));
        if (reader.failed || message.size > DP_MESSAGE_MAX) {
            break;
        }
        kit_tell(world, from, 0, message);
        kit_drain(world);
    }
    kit_run_ms(world, KIT_STEP_MS);
    return 0;
}
