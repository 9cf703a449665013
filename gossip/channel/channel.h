/* The secure channel of one connection as a state machine: bytes in, bytes and events out. It has
 * no socket, no clock and no random source. Mutual authentication, forward secrecy, sealed records,
 * rekeying, authenticated close.
 *
 * On the wire, little-endian:
 *   preamble, initiator only, 8 bytes: "DPN2" | u8 suites it can do, bit 0 suite 1 (always), bit 1
 *     suite 2 | u8 0 | u16 epoch of the pre-shared key
 *   handshake: three messages of Noise_XXpsk0_25519_ChaChaPoly_BLAKE2b, each u16 size | message, at
 *     most 4,096 bytes; prologue = preamble | run id
 *     payload 1: u8 0 control, or 1 to 8 the number of a bulk connection | u64 unix ms, by the
 *       responder's clock as far as it is known | u64 boot id (17 bytes)
 *     payload 2, 3: u64 unix ms | u64 boot id | u16 size | 64 signature | credential | hello to the
 *       end; in payload 2 the top 4 bits of size are the suite that the responder chose for the
 *       records, 0 for 1
 *     signature: the node's Ed25519 key over u8 number of the message | 64 handshake hash before
 *       that message | 32 own static key | the payload without it, domain "dpnode/channel/2". A
 *       certificate is signed by an invite's key alone and names any node; only this proves that
 *       the node itself speaks, in this handshake, in this life.
 *   records: u24 size of what follows | u8 type | sealed plaintext of at most 65,536 bytes; header
 *     = associated data type 0: begins a message: u32 its size | bytes    type 1: continues it
 *     type 2: close, empty
 *   Each direction counts its records; after each 2^16 its key moves on (Noise REKEY) and the count
 *     restarts.
 *
 * Offer and choice of the suite are in the transcript of the handshake: a change of either breaks
 * the handshake. A first message is answered once (replay.h); a first message with a time more than
 * DP_CHANNEL_CLOCK_MS from the responder's with that time alone (channel_first.c). The initiator
 * reveals its credential only after the responder's was checked. A first message under a wrong
 * pre-shared key is refused before any public-key operation. Record sizes show; contents, kinds and
 * identities do not. */
#ifndef DP_GOSSIP_CHANNEL_CHANNEL_H
#define DP_GOSSIP_CHANNEL_CHANNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "gossip/channel/noise.h"
#include "gossip/channel/suite.h"
#include "gossip/core/id.h"
#include "gossip/identity/cert.h"
#include "gossip/identity/invite.h"
#include "gossip/identity/replay.h"

enum {
    DP_CHANNEL_PREAMBLE_BYTES = 8,
    DP_CHANNEL_HANDSHAKE_MAX = 4096,
    DP_CHANNEL_HELLO_MAX = 2048,
    DP_RECORD_HEADER_BYTES = 4,
    DP_RECORD_PLAIN_MAX = 65536,
    DP_SEALED_RECORD_MAX = DP_RECORD_HEADER_BYTES + DP_RECORD_PLAIN_MAX + DP_NOISE_TAG_BYTES,
    DP_RECORDS_PER_KEY = 1 << 16,
    DP_MESSAGE_CONTROL_MAX = 128 * 1024,
    DP_MESSAGE_BULK_MAX = 4 * 1024 * 1024 + 4 * 1024,
    DP_CHANNEL_STRIPES_MAX = 8,       /* bulk connections of one link */
    DP_CHANNEL_PSKS_MAX = 2,          /* two epochs hold while a key is being changed */
    DP_CHANNEL_CLOCK_MS = 120 * 1000, /* a first message may be so far off; as a certificate may */
    DP_CHANNEL_TIME_BYTES = 56,       /* the responder's time, in place of message 2 */
};

typedef enum dp_lane { DP_LANE_CONTROL = 0, DP_LANE_BULK = 1 } dp_lane;

typedef struct dp_channel_psk {
    uint16_t epoch;
    uint8_t key[DP_PSK_BYTES];
} dp_channel_psk;

/* Everything a channel is told at birth; copied or used up by dp_channel_init, save identity and
 * member's context, which must outlive the handshake. */
typedef struct dp_channel_config {
    bool initiator;
    dp_lane lane;   /* the initiator chooses; ignored otherwise */
    uint8_t stripe; /* as well: which of the bulk connections, below DP_CHANNEL_STRIPES_MAX */
    dp_run_id run;
    uint8_t root[DP_PUBLIC_KEY_BYTES];
    dp_channel_psk psks[DP_CHANNEL_PSKS_MAX];
    uint8_t n_psks; /* 1 or 2; the initiator uses the first */
    const dp_identity *identity;
    dp_view credential;
    dp_view hello;         /* at most DP_CHANNEL_HELLO_MAX bytes for the other side */
    uint8_t ephemeral[32]; /* fresh random bytes, for this channel only */
    /* unix time, for certificates and first messages; 0 means that nothing is compared with it */
    uint64_t now_ms;
    /* initiator: time for the first message, where the responder's is known to be another; 0:
     * now_ms */
    uint64_t said_ms;
    /* responder: borrowed during the handshake; NULL: remembers nothing */
    dp_replay_cache *replays;
    uint64_t boot_id; /* tells one life of this node from the next */
    /* [id - 1]: ciphers for the records, static; NULL: not to be had. [0] NULL: libsodium's. The
     * responder chooses the highest that both have. */
    const dp_suite *suites[DP_SUITES];
    /* Is the peer, which has proved that it is this node, a member already? A member's invite may
     * be past its time, and its static key is the one that it was admitted with: written to
     * x_public, which is zero before, where it is known. NULL answers no. A joiner, which knows no
     * member yet, answers yes. */
    bool (*member)(void *context, const dp_peer *peer, uint8_t x_public[32]);
    /* Does the hello of this member, whose certificate has ended, show that it was renewed? NULL
     * answers no. */
    bool (*renewed)(void *context, const dp_peer *peer, dp_view hello, uint64_t now_ms);
    /* Responder: may a first message that holds be answered now? NULL: always. */
    bool (*may_answer)(void *context);
    void *context;
} dp_channel_config;

typedef enum dp_channel_event_type {
    DP_CHANNEL_NOTHING = 0,    /* give more bytes */
    DP_CHANNEL_HANDSHAKE_DONE, /* peer and hello are known; writing is possible */
    DP_CHANNEL_MESSAGE,
    DP_CHANNEL_CLOSED, /* the peer said so; what follows is ignored */
} dp_channel_event_type;

/* Views are lent until the next call with this channel. */
typedef struct dp_channel_event {
    dp_channel_event_type type;
    dp_view message;    /* MESSAGE */
    dp_view credential; /* HANDSHAKE_DONE: the peer's, checked for run and root */
    dp_view hello;      /* HANDSHAKE_DONE */
} dp_channel_event;

typedef enum dp_channel_state {
    DP_CHANNEL_PREAMBLE, /* responder waits for the preamble */
    DP_CHANNEL_HANDSHAKE,
    DP_CHANNEL_OPEN,
    DP_CHANNEL_ENDED,  /* closed by the peer */
    DP_CHANNEL_BROKEN, /* status and fault say why */
} dp_channel_state;

typedef struct dp_channel {
    dp_channel_state state;
    bool initiator;
    bool close_sent;
    dp_lane lane;
    uint8_t stripe;
    dp_status status;   /* BROKEN: what dp_channel_read returned, and returns from now on */
    const char *fault;  /* BROKEN: a phrase for the log, static */
    dp_credential peer; /* once DONE; peer.node is the id */
    /* responder: the first message was under the pre-shared key, new, and of this time */
    bool proves_secret;
    /* the peer's clock when it wrote its handshake, once DONE or BROKEN for it; else 0 */
    uint64_t peer_unix_ms;
    uint64_t peer_boot_id;
    uint8_t suite;                        /* of the records, once DONE */
    uint8_t binding[DP_NOISE_HASH_BYTES]; /* handshake hash, the same on both sides, once DONE */
    uint64_t records_sent;
    uint64_t records_received;
    dp_noise noise;
    dp_noise_cipher send;
    dp_noise_cipher receive;
    dp_channel_config config; /* psks are wiped after use, credential and hello point into own */
    dp_buf own;               /* credential and hello to send */
    dp_buf in;                /* an incomplete preamble, handshake message or record */
    dp_buf message;           /* the message being put together, or the peer's handshake payload */
    uint32_t message_bytes;   /* its whole size; 0 between messages */
    bool in_message;
} dp_channel;

/* An initiator appends preamble and first message to out. out may be NULL for a responder.
 * DP_BADARG: hello or credential too long, or no key; DP_NOMEM; on failure the channel is
 * closed. */
DP_MUST dp_status dp_channel_init(dp_channel *channel, const dp_channel_config *config,
                                  dp_buf *out);
void dp_channel_close(dp_channel *channel); /* Wipes keys and frees. Sends nothing. */

/* Take bytes from the peer until one event or all are used. *consumed tells how many were taken;
 *   call again while there are bytes left, or until NOTHING. Handshake answers go to out. Errors
 *   are final: close the connection. DP_BADMSG, DP_VERSION: not our protocol.        DP_TOOBIG:
 *   over a named size.
 *   DP_DENIED: other epoch, run, root or rights; or the peer's static key is not that of its
 *     certificate, or not the one that it was admitted with.
 *   DP_BADSIG: wrong pre-shared key; a forged, replayed, reordered or altered message; a forged
 *     certificate; a peer that does not have the key of the node that it claims to be.
 *   DP_EXPIRED, DP_AGAIN: the peer's certificate, or its invite while member says no.
 *   DP_EXISTS: the first message was answered before.
 *   DP_TIMEOUT: its time is far from the responder's clock. A responder sends what is in out before
 *     it closes; an initiator finds the responder's time in peer_unix_ms, for said_ms of another
 *     channel.
 *   DP_NOMEM. */
DP_MUST dp_status dp_channel_read(dp_channel *channel, dp_view bytes, size_t *consumed, dp_buf *out,
                                  dp_channel_event *event);

/* Append plaintext as one message to out. DP_TOOBIG over the lane's limit, or when out is full
 * (then out and channel are as before); DP_CLOSED before the handshake is done, after
 * dp_channel_finish or after an error. */
DP_MUST dp_status dp_channel_write(dp_channel *channel, dp_view plaintext, dp_buf *out);
/* Append the authenticated close; nothing can be written after it. */
DP_MUST dp_status dp_channel_finish(dp_channel *channel, dp_buf *out);
/* The socket reached its end. DP_OK after CLOSED, DP_BADSIG when an open stream was cut, DP_CLOSED
 * when the handshake was, else the status that broke the channel. */
DP_MUST dp_status dp_channel_eof(const dp_channel *channel);

/* Free the buffers that hold nothing now, after idling: they keep the size of the largest message
 * so far. Ends what an event lent. */
void dp_channel_trim(dp_channel *channel);

/* The largest message of a lane in bytes. */
uint32_t dp_lane_message_max(dp_lane lane);
/* Bytes that dp_channel_write appends for a message of size bytes. */
size_t dp_channel_wire_bytes(size_t size);

#endif
