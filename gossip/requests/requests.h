/* Removals and fences that await the next record. */
#ifndef DP_GOSSIP_REQUESTS_REQUESTS_H
#define DP_GOSSIP_REQUESTS_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "gossip/core/limits.h"
#include "gossip/record/record.h"

enum {
    DP_REMOVES_MAX = 8,
    DP_FENCES_MAX = 32, /* that are asked for: one of each asker */
};
#define DP_FENCE_US (30 * DP_SECOND) /* so long a request for a fence stands without another */

typedef struct dp_fence_request {
    dp_fence fence;
    dp_peer asker;
    dp_time asked_at;
} dp_fence_request;

/* Requests that wait for the next record. */
typedef struct dp_requests {
    uint32_t n_removes;
    dp_remove removes[DP_REMOVES_MAX];
    uint32_t n_fences;
    dp_fence_request fences[DP_FENCES_MAX];
    dp_remove own_remove;               /* of this node, which leaves */
    struct dp_revoke_requests *invites; /* revoke_request.h */
    struct dp_rotate *rotate;           /* rotate.h */
    dp_time renew_asked_at;             /* renew.c */
} dp_requests;

/* Reserves memory for the requests of a node. DP_NOMEM; close frees it. */
DP_MUST dp_status dp_requests_open(dp_node *node);
void dp_requests_close(dp_node *node);
/* Put out by a signed word that the chain has not yet. */
bool dp_node_revoked(const dp_node *node, const dp_peer *peer);
/* A removal from anywhere: DP_OK, also when nothing is left to do; DP_DENIED, DP_BADSIG; DP_AGAIN:
 * too many at once. */
dp_status dp_request_removal(dp_node *node, const dp_remove *remove);
/* asker is in doubt with that life, and says so again and again; its last word counts. One voter's
 * memory alone. */
void dp_request_fence(dp_node *node, const dp_fence *fence, const dp_peer *asker);
/* It was asked for lately. */
bool dp_request_lasts(const dp_node *node, const dp_fence_request *wish);
dp_status dp_requests_message(dp_node *node, uint8_t type, dp_view bytes);
void dp_requests_forget_done(dp_node *node);
void dp_requests_repeat(dp_node *node);

#endif
