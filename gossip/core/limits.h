/* The most of everything that one node holds or sends, and the states in which a member and a node
 * can be. */
#ifndef DP_GOSSIP_CORE_LIMITS_H
#define DP_GOSSIP_CORE_LIMITS_H

enum {
    DP_MEMBERS_MAX = 2048, /* ever known in one run */
    DP_VOTERS_MAX = 7,
    DP_LISTED_DEFAULT = 32, /* contributors in one record, unless the manifest permits more */
    DP_LISTED_MAX = 1024,   /* then so many at most: they stand in lists (listing.h) */
    DP_ADDRS_MAX = 4,       /* addresses announced per member */
    DP_CREDENTIAL_MAX = 5 * 232,
    DP_ACTIONS_MAX = 512,      /* per step; the node defers actions beyond it */
    DP_MESSAGE_MAX = 96 * 1024 /* one control message */
};

typedef enum dp_member_state {
    DP_MEMBER_UNKNOWN = 0,
    DP_MEMBER_ALIVE,
    DP_MEMBER_SUSPECT,
    DP_MEMBER_DEAD,
    DP_MEMBER_LEFT
} dp_member_state;

typedef enum dp_mode {
    DP_MODE_JOINING = 0, /* fetching manifest data, records, state */
    DP_MODE_SYNC,        /* rounds are synchronous and exact */
    DP_MODE_GOSSIP,      /* no majority of voters is heard: pair exchanges */
    DP_MODE_PAUSED,      /* the owner asked: member without training */
    DP_MODE_HALTED,      /* proof of a double vote: no commits until the root key speaks */
    DP_MODE_LEFT
} dp_mode;

/* Progress of a node after DP_COMMAND_LEAVE; dp_leave_state returns it. The process that runs the
 * node ends it when it is free. */
typedef enum dp_leaving {
    DP_LEAVING_NOT = 0, /* it was not told to */
    /* until the chain removes it, or until the later voters have that record */
    DP_LEAVING_WAITS,
    DP_LEAVING_FREE,
    DP_LEAVING_NEEDED /* it alone votes, and nobody has taken over: it stays, and goes on asking */
} dp_leaving;

/* One node: node.h. */
typedef struct dp_node dp_node;

const char *dp_mode_name(dp_mode mode);
const char *dp_member_state_name(dp_member_state state);

#endif
