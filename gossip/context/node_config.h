/* Configuration with which a node is opened. */
#ifndef DP_GOSSIP_CONTEXT_NODE_CONFIG_H
#define DP_GOSSIP_CONTEXT_NODE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/run/manifest.h"
#include "gossip/core/address.h"
#include "gossip/core/id.h"
#include "gossip/core/limits.h"
#include "gossip/identity/admission.h"
#include "gossip/identity/renewal.h"
#include "gossip/identity/rotation.h"

typedef struct dp_node_config {
    const dp_manifest *manifest; /* copied */
    dp_run_id run;
    dp_peer self;
    uint64_t incarnation;        /* durable and greater than ever before */
    dp_view credential;          /* own membership proof; copied */
    uint64_t certified_from_ms;  /* the time of its certificate, unix ms; */
    uint64_t certified_until_ms; /* ... 0: not known, and it is not renewed */
    dp_renewal renewal;          /* kept from an earlier life; until_ms 0: none */
    dp_secrets secrets;          /* join secrets, of the token or kept */
    bool has_vote_key;           /* crypto can sign with DP_KEY_VOTE */
    uint8_t vote_public_key[DP_PUBLIC_KEY_BYTES];
    uint32_t n_addrs;
    dp_addr addrs[DP_ADDRS_MAX]; /* where others reach this node */
    char name[DP_NAME_MAX + 1];  /* of the node, for people */
    uint32_t members_max;        /* memory is sized by it; at most DP_MEMBERS_MAX */
    uint64_t seed;               /* of the node's own random choices */
    bool observer;               /* holds and serves, never trains */
    bool one_level; /* every result of a part is fetched from its owner, however far that is */
    dp_crypto crypto;
    dp_admission admission; /* check NULL: certificates, dp_admission_certs() */
} dp_node_config;

/* One element of so many travels in updates of this round, the one to come or the newest; 0: of
 * another one, or in a run whose manifest has no span of densities (density.h). */
uint32_t dp_node_keep(const dp_node *node, uint64_t round);
/* Whether the object is here, whole. */
bool dp_node_holds(const dp_node *node, const dp_hash *root);

#endif
