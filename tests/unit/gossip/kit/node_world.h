/* A few whole nodes, each with a disk and a trainer of a few fields, and the queue of events
 * between them. node_driver.h carries out the actions of a node; a test includes node_kit.h. */
#ifndef DP_TESTS_NODE_WORLD_H
#define DP_TESTS_NODE_WORLD_H

#include <stdlib.h>

#include "base/trainer/trainer_msg.h"
#include "gossip/pairs/mix_msg.h"
#include "tests/unit/gossip/kit/chain_kit.h"

enum { KIT_NODES = 6, KIT_QUEUE = 4096, KIT_RECORDS = 256, KIT_OBJECTS = 2048, KIT_STEP_MS = 10 };

typedef struct kit_event {
    uint32_t to;
    dp_event event;
    uint8_t *bytes; /* that the event points to */
    dp_hash leaf;
} kit_event;

typedef struct kit_record {
    uint8_t *record;
    size_t record_size;
    uint8_t cert[DP_CERT_OF_RECORD_BYTES_MAX];
    size_t cert_size;
} kit_record;

enum { KIT_FAR_ENERGY = 100 << 8 };

typedef struct kit_node {
    dp_node *node;
    uint32_t index;
    bool linked[KIT_NODES];
    uint64_t incarnation;
    /* disk */
    kit_record records[KIT_RECORDS];
    uint64_t slots;
    uint8_t *vote;
    size_t vote_size;
    uint8_t *pending;
    size_t pending_size;
    uint8_t *proof;
    size_t proof_size;
    /* a row that a test put there; those of nodes are not kept */
    uint8_t exchange[DP_MIX_ROW_BYTES];
    bool has_exchange;
    dp_hash held[KIT_OBJECTS];
    uint32_t n_held;
    uint64_t saved_round;
    dp_hash saved_root;
    /* trainer */
    bool trains;
    uint32_t steps;
    uint32_t offered; /* steps of its last publication, ... */
    uint32_t unsent;  /* ... if a record left it out in a run of any model */
    uint64_t own;     /* samples of its own line that are behind it: one for a step */
    uint64_t leased;  /* of its lease: as it was told last */
    uint64_t round;
    dp_hash theta;
    uint64_t published; /* blobs ever */
    uint32_t rate;      /* that it tells with them */
    uint32_t keep;      /* one element of so many: of its last PUBLISH, and of its last CHECK */
    uint32_t keep_checked;
    uint32_t settles[3]; /* APPLYs by dp_settle */
    dp_action restore;   /* last DP_DO_TRAINER_RESTORE */
    uint32_t restores;
    bool holds_frozen;      /* RESTORE has brought F, and no state was loaded since */
    uint32_t mixes;         /* MIXes, ... */
    uint32_t mixes_of_none; /* ... and those of them that found no F */
    uint32_t emptied;       /* APPLYs that left the work buffers empty */
    bool deaf;              /* gets no messages */
    bool reopens;           /* its node wants to be opened anew */
    bool mute_blobs;        /* its blobs cannot be fetched */
    bool saves_nothing;
    dp_part_list told;   /* parts that it published last, */
    uint64_t told_round; /* ... for this round */
    dp_hash told_root;
    dp_hash sum;        /* of the last part that it added up */
    bool heavy_sums;    /* a sum that no author published has more energy than its inputs */
    bool dislikes_sums; /* finds that they do not decode */
    bool copies;        /* publishes the blob of node 0; of parts all but its last */
    bool tells_more;    /* of its parts than they have bytes */
    bool light;         /* finds parts to hold nothing */
    bool heavy;         /* finds blobs to hold more than a record may state */
    bool picky;         /* its trainer knows no codec but its own */
    uint32_t rejects;   /* bit i: it finds that updates of node i do harm, */
    uint32_t bears;     /* ... but those help at their own length */
    bool alike;         /* it finds that all updates look the same */
    bool far;           /* its updates are 16 times as long as those of others */
    bool judges_late;   /* JUDGE is not answered; the last one is kept in judge */
    dp_action judge;    /* last DP_DO_JUDGE */
    uint32_t judged;    /* so many of them, */
    uint32_t gains;     /* ... and so many that asked for a gain */
    bool adds_nothing;  /* its trainer cannot add up a part */
    bool adds_late;     /* REDUCE is not answered; the last one is kept in reduce */
    dp_action reduce;   /* last DP_DO_REDUCE */
    uint32_t reduces;
    dp_hash dropped;            /* by the last DP_DO_OBJECT_DROP */
    uint32_t haves;             /* blobs of others, or sums, that it told a voter it holds */
    const char *rejected_cause; /* of its last DP_NOTE_REJECTED about a peer */
    const char *closed_cause;   /* of its last DP_NOTE_CLOSED */
    const char *left_out_cause; /* of its last DP_NOTE_LEFT_OUT */
    dp_note straggler;          /* its last DP_NOTE_STRAGGLER */
    uint32_t empty;             /* so many publications from now on hold no steps */
    uint32_t again; /* so many publications from now on are of samples that were in earlier ones */
    dp_renewal renewal; /* of its certificate, the last one */
    uint32_t renewals;
    dp_secrets secrets; /* the last ones */
    uint32_t errs;      /* so many states that its trainer makes now will not be those of others */
    dp_action
        last[DP_DO_SECRETS + 1]; /* the last action of each kind; its pointers may be invalid */
} kit_node;

typedef struct kit_world {
    kit_node nodes[KIT_NODES];
    uint32_t n;
    dp_manifest manifest;
    uint64_t now_us;
    uint64_t messages;  /* ever sent on links that stand, */
    uint32_t sent[256]; /* ... and of each type */
    kit_event *queue;
    uint32_t first;
    uint32_t count;
    dp_actions *actions;
    dp_hash root_of_round[KIT_RECORDS];
    dp_hash head_of_slot[KIT_RECORDS];
    bool forked;          /* two chains: rules within one chain are not compared */
    uint64_t state_bytes; /* announced size of a state; a blob has 8 */
    uint32_t states_fetched;
    bool mute_states; /* no node serves one */
    bool external;    /* the run is of any model: set with the manifests of its nodes */
    bool early_ticks; /* nodes are ticked before their wake, too, and then have nothing to do */
} kit_world;

static inline kit_event *kit_push(kit_world *world, uint32_t to, dp_event_type type)
{
    assert_true(world->count < KIT_QUEUE);
    kit_event *item = &world->queue[(world->first + world->count++) % KIT_QUEUE];

    memset(item, 0, sizeof *item);
    item->to = to;
    item->event.type = type;
    return item;
}

static inline bool kit_holds(const kit_node *node, const dp_hash *root)
{
    for (uint32_t i = 0; i < node->n_held; i++) {
        if (dp_hash_equal(&node->held[i], root)) {
            return true;
        }
    }
    return false;
}

static inline void kit_hold(kit_node *node, const dp_hash *root)
{
    if (!kit_holds(node, root)) {
        assert_true(node->n_held < KIT_OBJECTS);
        node->held[node->n_held++] = *root;
    }
}

/* Blobs are 8 bytes that name their author and number. */
static inline dp_hash kit_blob(uint32_t author, uint64_t number, dp_hash *leaf)
{
    uint64_t bytes = (uint64_t)author << 32 | number;

    *leaf = dp_chunk_leaf(dp_view_of(&bytes, sizeof bytes));
    return dp_object_root(sizeof bytes, leaf);
}

static inline uint8_t *kit_copy(dp_view bytes)
{
    uint8_t *copy = malloc(bytes.size + 1);

    assert_non_null(copy);
    memcpy(copy, bytes.data, bytes.size);
    return copy;
}

static inline uint32_t kit_index(const dp_peer *peer)
{
    return (uint32_t)(peer->bytes[0] - 0x10);
}

static inline void kit_send(kit_world *world, uint32_t from, uint32_t to, dp_view bytes)
{
    if (to >= KIT_NODES) {
        return; /* A peer of which there is no more than a link. */
    }
    if (world->nodes[to].node == NULL || world->nodes[to].deaf || world->nodes[from].deaf ||
        !world->nodes[from].linked[to]) {
        return;
    }
    world->messages++;
    world->sent[dp_msg_type_of(bytes)]++;
    kit_event *item = kit_push(world, to, DP_EV_MESSAGE);
    item->bytes = kit_copy(bytes);
    item->event.u.message.peer = kit_peer(from);
    item->event.u.message.bytes = dp_view_of(item->bytes, bytes.size);
}

static inline void kit_link(kit_world *world, uint32_t a, uint32_t b)
{
    const uint32_t ends[2] = {a, b};

    if (a >= KIT_NODES || b >= KIT_NODES) {
        return;
    }
    if (world->nodes[a].node == NULL || world->nodes[b].node == NULL || world->nodes[a].linked[b]) {
        return;
    }
    for (uint32_t i = 0; i < 2; i++) {
        kit_event *item = kit_push(world, ends[i], DP_EV_LINK_UP);
        item->bytes = malloc(KIT_CREDENTIAL);
        assert_non_null(item->bytes);
        item->event.u.link.credential = kit_credential(ends[1 - i], DP_CAP_ALL, 0, 1, item->bytes);
        item->event.u.link.peer = kit_peer(ends[1 - i]);
        item->event.u.link.outgoing = i == 0;
        world->nodes[ends[i]].linked[ends[1 - i]] = true;
    }
}

/* Both ends hear of it. */
static inline void kit_cut(kit_world *world, uint32_t a, uint32_t b)
{
    const uint32_t ends[2] = {a, b};

    if (a >= KIT_NODES || b >= KIT_NODES) {
        return;
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (world->nodes[ends[i]].linked[ends[1 - i]]) {
            world->nodes[ends[i]].linked[ends[1 - i]] = false;
            kit_event *item = kit_push(world, ends[i], DP_EV_LINK_DOWN);
            item->event.u.link.peer = kit_peer(ends[1 - i]);
            item->event.u.link.cause = DP_LINK_CLOSED;
        }
    }
}

#endif
