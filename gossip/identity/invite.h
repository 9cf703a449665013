/* Invite tokens: make one, write it as text that survives typing, read it back, and turn it into a
 * credential. Offline: no clock, no network, no random source; a token proves itself by its
 * signatures.
 *
 * The bytes inside the text (gossip/core/armor.h), little-endian:
 *   u8 version, 1 | u8 flags, 0 | run id 32 | root public key 32 | join secret 16 | u16 epoch
 *     | invite key seed 32
 *   of the INVITE certificate, what does not follow from the rest: u16 uses | u32 capabilities
 *     | serial 16 | u64 valid from | u64 valid until | signature 64
 *   u8 count 0..3 | certificates of the issuer's credential, none when the root issued
 *   u8 count 0..8 | addresses (gossip/core/address.h)
 *   u8 size 0..32 | name of the run
 *   first 8 bytes of H("dpnode/token/1", all before) */
#ifndef DP_GOSSIP_IDENTITY_INVITE_H
#define DP_GOSSIP_IDENTITY_INVITE_H

#include <stdint.h>

#include "base/bytes.h"
#include "gossip/core/address.h"
#include "gossip/core/id.h"
#include "gossip/identity/cert.h"

enum {
    DP_TOKEN_TEXT_MAX = 4096, /* characters, with separators */
    DP_TOKEN_ADDRESSES_MAX = 8,
    DP_TOKEN_NAME_MAX = 32, /* bytes of UTF-8 */
    DP_JOIN_SECRET_BYTES = 16,
    DP_PSK_BYTES = 32,
};

/* A token in memory. Holds secrets: dp_invite_close wipes them. */
typedef struct dp_invite {
    dp_run_id run;
    uint8_t root[DP_PUBLIC_KEY_BYTES];
    /* of the run; the channel's pre-shared key is derived from it */
    uint8_t join_secret[DP_JOIN_SECRET_BYTES];
    uint16_t psk_epoch;
    uint8_t seed[32]; /* of the invite key, whose public half the INVITE certificate names */
    /* the INVITE certificate, then its issuer's credential */
    uint8_t chain[DP_INVITE_CHAIN_BYTES_MAX];
    uint8_t n_certs;
    uint8_t n_addresses;
    dp_address addresses[DP_TOKEN_ADDRESSES_MAX];
    char name[DP_TOKEN_NAME_MAX + 1]; /* of the run, for people; not signed */
} dp_invite;

/* The issuer's choices for an invite. All pointers are borrowed. */
typedef struct dp_invite_request {
    const dp_run_id *run;
    const uint8_t *root;        /* the run's root public key, 32 bytes */
    const uint8_t *join_secret; /* 16 bytes */
    uint16_t psk_epoch;
    const dp_sign_key *issuer; /* the root key or a node's identity key */
    dp_view issuer_credential; /* empty when the root issues */
    uint32_t caps;
    uint16_t uses; /* 0 means unlimited */
    uint64_t not_before_ms;
    uint64_t not_after_ms;
    const dp_address *addresses;
    uint8_t n_addresses;
    const char *name;
} dp_invite_request;

/* Uses 48 bytes of entropy (seed, serial). Checks its own work as a joiner would, so it fails with
 * the status and the sentence of dp_invite_chain_check, or with DP_BADARG for too many addresses or
 * a bad name. */
DP_MUST dp_status dp_invite_make(const dp_invite_request *request, const dp_entropy *entropy,
                                 dp_invite *invite, dp_why *why);

/* "DPN1-" and base32. text has room for DP_TOKEN_TEXT_MAX characters and a NUL. */
DP_MUST dp_status dp_invite_write(const dp_invite *invite, char text[DP_TOKEN_TEXT_MAX + 1]);

/* Read a token as a person may have typed or pasted it: any case, with spaces, line breaks and
 * dashes. Checks form, checksums and signatures, not the time. DP_BADMSG: not a token, or damaged,
 * and why names the character; DP_VERSION: of another version; DP_TOOBIG: longer than a token can
 * be; DP_BADSIG, DP_DENIED: the text is intact but its certificates do not hold, so it was forged.
 * position may be NULL; on DP_BADMSG it gets the damaged character, counted from 1 in the text as
 * given, or 0 when that cannot be told, and is untouched otherwise. */
DP_MUST dp_status dp_invite_parse(dp_view text, dp_invite *invite, size_t *position, dp_why *why);

/* May one join by it now? DP_OK, DP_AGAIN (not yet), DP_EXPIRED, each with a sentence. credential
 * may be NULL; it gets capabilities, uses, window and id for showing. */
DP_MUST dp_status dp_invite_check(const dp_invite *invite, uint64_t now_ms,
                                  dp_credential *credential, dp_why *why);

/* BLAKE2b-256 keyed with the join secret over "dpnode/psk/1", the run id and u16 epoch. */
void dp_psk_derive(const uint8_t join_secret[DP_JOIN_SECRET_BYTES], const dp_run_id *run,
                   uint16_t epoch, uint8_t psk[DP_PSK_BYTES]);
void dp_invite_psk(const dp_invite *invite, uint8_t psk[DP_PSK_BYTES]);

/* So many milliseconds in words: "4 min", "3 days". */
void dp_duration_text(uint64_t ms, char text[32]);

/* The joiner's credential: a NODE certificate for identity with all capabilities of the invite,
 * signed with the invite key, and the chain. It lasts member_ms from now (cut to
 * DP_CERT_NODE_MS_MAX). size receives its bytes. DP_EXPIRED or DP_AGAIN when the invite cannot be
 * used at now_ms. */
DP_MUST dp_status dp_invite_redeem(const dp_invite *invite, const dp_identity *identity,
                                   const uint8_t serial[DP_CERT_SERIAL_BYTES], uint64_t now_ms,
                                   uint64_t member_ms, uint8_t credential[DP_CREDENTIAL_BYTES_MAX],
                                   size_t *size);

void dp_invite_close(dp_invite *invite);

#endif
