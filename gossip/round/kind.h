/* How the updates of a run reach its nodes: whole, or in parts that owners add up. The round calls
 * one of two tables of functions for the differences; both are total, and the node chooses when it
 * is opened. */
#ifndef DP_GOSSIP_ROUND_KIND_H
#define DP_GOSSIP_ROUND_KIND_H

#include "gossip/round/round.h"

typedef struct dp_round_kind {
    /* ---- messages ---- */

    /* The votes of a new slot begin, with new_round those of a new round. */
    void (*open_slot)(dp_node *node, bool new_round);
    /* This contribution is followed from now on: its objects are fetched, those that are here are
     * given to the trainer to be checked. */
    void (*fetch)(dp_node *node, dp_claim *claim);
    /* A voter, or with voter DP_NOBODY a member that does not vote, holds these objects. member:
     * its index, or DP_MEMBER_NONE. */
    void (*have)(dp_node *node, uint32_t voter, uint32_t member, const dp_hash *roots, uint32_t n);
    /* An object is whole here; it cannot be read here any more; a peer asks for it. */
    void (*object)(dp_node *node, const dp_hash *root, uint64_t size);
    void (*lost)(dp_node *node, const dp_hash *root);
    void (*asked)(dp_node *node, const dp_hash *root);
    /* Is it an object of this round? */
    bool (*knows)(const dp_node *node, const dp_hash *root);
    /* A holder has proved the size of an object: does a word of the round, other than a READY, name
     * it with this size? Those that name it with another are marked as bad. */
    bool (*sized)(dp_node *node, const dp_hash *root, uint64_t size);
    /* A DP_EV_CHECKED; is it about an object of this round? */
    bool (*checked)(dp_node *node, const dp_event *event);
    void (*trainer_down)(dp_node *node);

    /* ---- announcements ---- */

    /* Asks again for missing objects. */
    void (*look)(dp_node *node);
    /* Adds the objects that this voter holds, for one HAVE; a full one is sent
     * (dp_round_send_have). */
    void (*add_have)(dp_node *node, dp_have_msg *have);
    void (*repeat)(dp_node *node);

    /* ---- listing and judging by a voter ---- */

    /* Claims that a record may list: how many, and their indexes if chosen is not NULL. */
    uint32_t (*ready)(const dp_node *node, uint32_t *chosen);
    /* How many updates, or parts, a majority of voters holds. */
    uint32_t (*held)(const dp_node *node);
    /* The round is ripe for this cause (NULL: it is not): the cause for which it may be closed, or
     * NULL. */
    const char *(*close)(dp_node *node, const char *cause);
    void (*list)(dp_node *node, dp_record *draft);
    /* Is all here, checked and true, that the record says of objects? */
    dp_verdict (*judge)(dp_node *node, const dp_record *record);
    /* The round is decided: objects that no record names are let go. */
    void (*drop)(dp_node *node);
    void (*tick)(dp_node *node);
    dp_time (*wake)(const dp_node *node);
} dp_round_kind;

extern const dp_round_kind dp_round_whole; /* whole.c */

#endif
