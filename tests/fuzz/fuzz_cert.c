/* Fuzz target of certificates: any bytes give a certificate, a chain or a status; a certificate has
 * one encoding. */
#include <string.h>

#include "base/assert.h"
#include "gossip/identity/cert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dp_cert cert;
    dp_credential credential;
    dp_why why;
    uint8_t again[DP_CERT_BYTES];
    dp_run_id run = {{0}};
    uint8_t root[DP_PUBLIC_KEY_BYTES] = {0};

    if (size >= DP_CERT_BYTES) {
        if (dp_cert_decode(dp_view_of(data, DP_CERT_BYTES), &cert) == DP_OK) {
            dp_cert_encode(&cert, again);
            dp_assert(memcmp(again, data, sizeof again) == 0);
        }
        /* Run and root as the bytes would have them, so that the check goes on to the
         * signatures. */
        memcpy(run.bytes, data + 8, sizeof run.bytes);
        memcpy(root, data + size - DP_CERT_BYTES + 136, sizeof root);
    }
    const dp_view bytes = dp_view_of(data, size);
    if (dp_credential_check(bytes, &run, root, NULL, 0, &credential, &why) == DP_OK) {
        dp_assert(size % DP_CERT_BYTES == 0 && credential.n_certs == size / DP_CERT_BYTES);
        dp_assert(credential.n_certs <= DP_CHAIN_CERTS_MAX);
    }
    if (dp_invite_chain_check(bytes, &run, root, 1, &credential, &why) == DP_OK) {
        dp_assert(credential.n_certs <= DP_INVITE_CHAIN_CERTS_MAX);
    }
    return 0;
}
