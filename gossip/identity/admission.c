#include "gossip/identity/admission.h"

#include <string.h>

static dp_status check_certs(void *context, dp_view credential, const dp_run_id *run,
                             const uint8_t root[DP_PUBLIC_KEY_BYTES], const dp_peer *peer,
                             uint64_t now_ms, dp_admitted *out)
{
    dp_credential checked;

    (void)context;
    DP_TRY(dp_credential_check(credential, run, root, peer, now_ms, &checked, NULL));
    *out = (dp_admitted){.caps = checked.caps,
                         .uses = checked.uses,
                         .invite = checked.invite,
                         .until_ms = checked.join_until_ms > UINT64_MAX - DP_CERT_NODE_MS_MAX
                                         ? checked.member_until_ms
                                         : checked.join_until_ms + DP_CERT_NODE_MS_MAX,
                         .invite_above = checked.invite_above,
                         .n_above = checked.n_above};
    memcpy(out->above, checked.above, sizeof out->above);
    memcpy(out->x_public, checked.x_public, sizeof out->x_public);
    return DP_OK;
}

dp_admission dp_admission_certs(void)
{
    return (dp_admission){.check = check_certs};
}
