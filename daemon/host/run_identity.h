/* The run identity: the facts about its run that a node keeps beside the chain. It holds ids,
 * secrets, the credential, the manifest and the addresses of the token, in one row of the store.
 * The root key, if this node has it, is a separate file. */
#ifndef DP_DAEMON_HOST_RUN_IDENTITY_H
#define DP_DAEMON_HOST_RUN_IDENTITY_H

#include "base/run/manifest.h"
#include "gossip/identity/invite.h"
#include "gossip/identity/renewal.h"
#include "gossip/identity/rotation.h"
#include "store/db.h"

typedef struct dp_run_identity {
    dp_run_id run;
    uint8_t root[DP_PUBLIC_KEY_BYTES];
    uint8_t join_secret[DP_JOIN_SECRET_BYTES];
    uint16_t psk_epoch;
    size_t credential_bytes;
    uint8_t credential[DP_CREDENTIAL_BYTES_MAX];
    size_t manifest_bytes; /* 0: not fetched yet */
    uint8_t manifest[DP_MANIFEST_BYTES_MAX];
    uint8_t n_addresses;
    dp_address addresses[DP_TOKEN_ADDRESSES_MAX]; /* from the token */
    char name[DP_TOKEN_NAME_MAX + 1];             /* of the run */
    char node_name[DP_NAME_MAX + 1];
    dp_renewal renewal; /* of the credential, a row of its own; until_ms 0: none */
    /* with the one above; a row of its own: epochs that the chain has named since */
    dp_secrets secrets;
} dp_run_identity;

/* DP_NOTFOUND: the node belongs to no run. DP_CORRUPT. Store thread, or before it starts. */
DP_MUST dp_status dp_run_identity_load(dp_store *store, dp_run_identity *facts);
DP_MUST dp_status dp_run_identity_save(dp_store *store, const dp_run_identity *facts);
/* Sets the secret of the token as the only one: for facts that were not loaded. */
void dp_run_identity_begin_secrets(dp_run_identity *facts);
/* Stores a renewal of this node's credential in that run. */
DP_MUST dp_status dp_run_identity_renewed(dp_store *store, const dp_run_id *run,
                                          const dp_renewal *renewal);
/* Stores these secrets of the run of facts, and the newest of them in the facts and in
 * run.member. */
DP_MUST dp_status dp_run_identity_rotated(dp_store *store, const char *dir,
                                          const dp_run_identity *facts);
/* Forgets the run, with the renewal, the secrets, and its invites (issued.h). */
DP_MUST dp_status dp_run_identity_forget(dp_store *store);
/* Forgets the run as above and destroys its vote key, in one transaction, which also marks its data
 * for dp_run_identity_drop. Entering the same run again takes the mark back. */
DP_MUST dp_status dp_run_identity_leave(dp_store *store, const dp_run_id *run);
/* Deletes the data of the run that dp_run_identity_leave has marked, if there is one. Called when
 * no write of that run is under way any more, and at each start. */
DP_MUST dp_status dp_run_identity_drop(dp_store *store);

/* A run is being created, with this root key, and may not be stored yet: dp_run_identity_save takes
 * the mark back. run: zero while its data are stored, of which its id is made; their pins name no
 * run then. */
DP_MUST dp_status dp_run_identity_founding(dp_store *store, const dp_run_id *run,
                                           const uint8_t root[DP_PUBLIC_KEY_BYTES]);
/* The run that was being created when the daemon ended. DP_NOTFOUND: none was. */
DP_MUST dp_status dp_run_identity_unfinished(dp_store *store, dp_run_id *run,
                                             uint8_t root[DP_PUBLIC_KEY_BYTES]);
/* Deletes the vote key and the data of a run that was not created after all, data that name no run,
 * and that mark. */
DP_MUST dp_status dp_run_identity_abandon(dp_store *store, const dp_run_id *run);

/* The same in the file run.member beside identity.key, for a store that has lost them: with these
 * and its key a node enters its run again. It contains neither the vote key nor votes. Any
 * thread. */
DP_MUST dp_status dp_run_identity_copy_save(const char *dir, const dp_run_identity *facts);
/* DP_NOTFOUND: there is none; DP_CORRUPT, DP_IO; DP_DENIED as dp_dir_read_secret. */
DP_MUST dp_status dp_run_identity_copy_load(const char *dir, dp_run_identity *facts, dp_why *why);
/* Deletes it, durably; DP_OK also if there is none. It comes before the row: a row without the file
 * is a member still, but a file without the row may bring a member back that has left. */
DP_MUST dp_status dp_run_identity_copy_forget(const char *dir);

/* Marks that a damaged store may have known a run whose name is lost; the mark stays until
 * dp_run_identity_save. */
DP_MUST dp_status dp_run_identity_lost_save(dp_store *store);
bool dp_run_identity_lost(dp_store *store);

#endif
