/* Membership certificates and the chains of them that lead to the run's root key: encode, sign,
 * check. Knows nothing of tokens or connections, and is told the time.
 *
 * One certificate, 232 bytes, little-endian:
 *     0  u8   version, 1
 *     1  u8   kind: 1 NODE, 2 INVITE
 *     2  u16  uses: how many nodes may join by an INVITE, 0 means unlimited; 0 in a NODE
 *     4  u32  capability bits
 *     8  32   run id
 *    40  32   subject's Ed25519 key: the node, or the key inside an invite token
 *    72  32   subject's X25519 key: static key of the node's channels; zero in an INVITE
 *   104  16   serial, random
 *   120  u64  valid from, unix ms
 *   128  u64  valid until, unix ms
 *   136  32   issuer's Ed25519 key
 *   168  64   signature of bytes 0..167 by the issuer, domain "dpnode/cert/1"
 *
 * A credential is 1 to 5 certificates one after the other, the subject's own first; each is issued
 * by the subject of the next, the last one by the run's root key. Kinds alternate: a NODE is issued
 * by an invite key, an INVITE by a node; the root may issue either. The founder's credential is a
 * single NODE certificate. */
#ifndef DP_GOSSIP_IDENTITY_CERT_H
#define DP_GOSSIP_IDENTITY_CERT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "gossip/core/id.h"

enum {
    DP_CERT_BYTES = 232,
    DP_CERT_SIGNED_BYTES = 168,
    DP_CERT_SERIAL_BYTES = 16,
    DP_CHAIN_CERTS_MAX = 5, /* in a credential */
    DP_CREDENTIAL_BYTES_MAX = DP_CHAIN_CERTS_MAX * DP_CERT_BYTES,
    DP_INVITE_CHAIN_CERTS_MAX = DP_CHAIN_CERTS_MAX - 1, /* an INVITE and those above it */
    DP_INVITE_CHAIN_BYTES_MAX = DP_INVITE_CHAIN_CERTS_MAX * DP_CERT_BYTES,
    DP_INVITE_ID_BYTES = 16,
    DP_CERT_ABOVE_MAX = (DP_CHAIN_CERTS_MAX - 1) / 2, /* nodes above the subject */
};

/* A node may be a member this long on one certificate, or on one renewal of it (renewal.h). */
#define DP_CERT_NODE_MS_MAX (400ULL * 24 * 3600 * 1000)
/* Clocks may differ by this much before "not yet valid" is said. */
#define DP_CERT_SKEW_MS (120ULL * 1000)

enum DP_CAP {
    DP_CAP_TRAIN = 1,   /* contribute updates */
    DP_CAP_VOTE = 2,    /* be made a voter */
    DP_CAP_RELAY = 4,   /* carry others' traffic */
    DP_CAP_SERVE = 8,   /* hold and serve blobs and state */
    DP_CAP_INVITE = 16, /* issue invites with at most its own capabilities */
    DP_CAP_ADMIN = 32,  /* evict, change the manifest */
    DP_CAP_OBSERVE = 64,
    DP_CAP_ALL = 127,
};

typedef enum dp_cert_kind { DP_CERT_NODE = 1, DP_CERT_INVITE = 2 } dp_cert_kind;

typedef struct dp_cert {
    dp_cert_kind kind;
    uint16_t uses;
    uint32_t caps;
    dp_run_id run;
    uint8_t subject_ed[DP_PUBLIC_KEY_BYTES];
    uint8_t subject_x[32];
    uint8_t serial[DP_CERT_SERIAL_BYTES];
    uint64_t not_before_ms;
    uint64_t not_after_ms;
    uint8_t issuer_ed[DP_PUBLIC_KEY_BYTES];
    uint8_t signature[DP_SIGNATURE_BYTES];
} dp_cert;

/* BLAKE2b-128 of the invite's public key: uses are counted, and invites revoked, by it. Zero for a
 * founder. */
typedef struct dp_invite_id {
    uint8_t bytes[DP_INVITE_ID_BYTES];
} dp_invite_id;

/* Sets issuer_ed and signature. The other fields are the caller's and must be well-formed
 * (asserted). */
void dp_cert_sign(dp_cert *cert, const dp_sign_key *issuer);
void dp_cert_encode(const dp_cert *cert, uint8_t bytes[DP_CERT_BYTES]);
/* Strict, without looking at the signature. DP_VERSION for another version, else DP_BADMSG. */
DP_MUST dp_status dp_cert_decode(dp_view bytes, dp_cert *cert);
dp_invite_id dp_invite_id_of(const uint8_t invite_public_key[DP_PUBLIC_KEY_BYTES]);

/* Contents of a checked credential, about its subject. */
typedef struct dp_credential {
    dp_peer node; /* of an invite chain: the invite's public key */
    uint8_t x_public[32];
    uint32_t caps;
    uint8_t n_certs;
    uint16_t uses;           /* of the invite it joined by; 0 means unlimited */
    dp_invite_id invite;     /* zero when the root issued it directly */
    uint64_t member_from_ms; /* the subject's own certificate */
    uint64_t member_until_ms;
    uint64_t join_from_ms; /* the invite it joined by; 0 and UINT64_MAX when there was none */
    uint64_t join_until_ms;
    dp_invite_id invite_above; /* by which the node that made the invite joined; zero: none */
    uint8_t n_above;           /* nodes above the subject, */
    dp_peer above[DP_CERT_ABOVE_MAX]; /* ... the one that made the invite first */
} dp_credential;

/* Check a node's credential for a run: form (DP_BADMSG, DP_VERSION); run, root, chain of issuers
 * and node (DP_DENIED); signatures (DP_BADSIG); capabilities and lifetimes granted (DP_DENIED);
 * and, unless now_ms is 0, that the membership and then the invite are valid now (DP_AGAIN when not
 * yet, DP_EXPIRED when no longer). In that order; out is untouched on failure. node may be NULL:
 * any subject. why may be NULL. About 50 us of CPU per certificate. Rules: a NODE has at most the
 * capabilities of its invite, starts inside the invite's window and lasts at most
 * DP_CERT_NODE_MS_MAX; an INVITE needs DP_CAP_INVITE in its issuer, grants at most the capabilities
 * of the issuer and does not outlive the issuer's certificate. Windows above the first invite are
 * not compared with now: those joins are past. */
DP_MUST dp_status dp_credential_check(dp_view bytes, const dp_run_id *run,
                                      const uint8_t root[DP_PUBLIC_KEY_BYTES], const dp_peer *node,
                                      uint64_t now_ms, dp_credential *out, dp_why *why);

/* The same for a chain of 1 to 4 certificates that starts with an INVITE. */
DP_MUST dp_status dp_invite_chain_check(dp_view bytes, const dp_run_id *run,
                                        const uint8_t root[DP_PUBLIC_KEY_BYTES], uint64_t now_ms,
                                        dp_credential *out, dp_why *why);

/* The two time checks alone. DP_OK, DP_AGAIN or DP_EXPIRED. */
DP_MUST dp_status dp_credential_member_at(const dp_credential *credential, uint64_t now_ms);
DP_MUST dp_status dp_credential_join_at(const dp_credential *credential, uint64_t now_ms);

/* The founder's credential: one NODE certificate with every capability, signed by the root key. */
void dp_founder_credential(const dp_sign_key *root, const dp_run_id *run,
                           const dp_identity *identity, const uint8_t serial[DP_CERT_SERIAL_BYTES],
                           uint64_t now_ms, uint8_t credential[DP_CERT_BYTES]);

#endif
