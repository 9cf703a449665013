/* Substitutes for Ed25519: a 64-bit tag keyed by the public key. No host of the simulator computes
 * tags of others. */
#include <string.h>

#include "base/rng.h"
#include "gossip/identity/cert.h"
#include "tests/sim/evil.h"
#include "tests/sim/host.h"
#include "tests/sim/sim.h"

enum { PEER_SALT = 0x70656572, VOTE_SALT = 0x766f7465 };

static void key_of(uint64_t salt, uint64_t number, uint8_t out[DP_PUBLIC_KEY_BYTES])
{
    for (uint32_t i = 0; i < 4; i++) {
        const uint64_t word = dp_mix64((salt << 32) ^ (number * 8 + i));
        memcpy(out + (size_t)i * 8, &word, 8);
    }
}

dp_peer dp_sim_peer(uint32_t index)
{
    dp_peer peer;

    key_of(PEER_SALT, index, peer.bytes);
    /* The last bytes hold the index, so that the host of a name is found at once. */
    memcpy(peer.bytes + 28, &index, sizeof index);
    return peer;
}

uint32_t dp_sim_index(const dp_sim *sim, const dp_peer *peer)
{
    uint32_t index = 0;

    memcpy(&index, peer->bytes + 28, sizeof index);
    if (index >= sim->plan.nodes || !dp_peer_equal(&sim->hosts[index].peer, peer)) {
        return sim->plan.nodes;
    }
    return index;
}

void dp_sim_vote_key(const dp_host *host, uint8_t public_key[DP_PUBLIC_KEY_BYTES])
{
    key_of(VOTE_SALT, ((uint64_t)host->name << 20) + host->disk.vote_key, public_key);
}

static uint64_t tag_of(const uint8_t *public_key, const char *domain, dp_view bytes)
{
    uint64_t seed = 0;

    memcpy(&seed, public_key, sizeof seed);
    return dp_sim_hash(dp_sim_hash(seed, dp_view_text(domain)), bytes);
}

static bool sign(void *context, int key, const char *domain, dp_view bytes,
                 uint8_t signature[DP_SIGNATURE_BYTES])
{
    const dp_host *host = context;
    uint8_t public_key[DP_PUBLIC_KEY_BYTES];

    if (key == DP_KEY_VOTE) {
        dp_sim_vote_key(host, public_key);
    } else if (key == DP_KEY_ROOT) { /* The plan decides which host may use it. */
        memcpy(public_key, host->sim->manifest.root_key, sizeof public_key);
    } else {
        memcpy(public_key, host->peer.bytes, sizeof public_key);
    }
    const uint64_t tag = tag_of(public_key, domain, bytes);
    memset(signature, 0, DP_SIGNATURE_BYTES);
    memcpy(signature, &tag, sizeof tag);
    return true;
}

static bool verify(void *context, const uint8_t public_key[DP_PUBLIC_KEY_BYTES], const char *domain,
                   dp_view bytes, const uint8_t signature[DP_SIGNATURE_BYTES])
{
    uint8_t right[DP_SIGNATURE_BYTES] = {0};
    const uint64_t tag = tag_of(public_key, domain, bytes);

    (void)context;
    memcpy(right, &tag, sizeof tag);
    return memcmp(right, signature, sizeof right) == 0;
}

dp_crypto dp_sim_crypto(dp_host *host)
{
    return (dp_crypto){.context = host, .sign = sign, .verify = verify};
}

dp_invite_id dp_sim_invite(uint32_t index)
{
    return (dp_invite_id){{200, (uint8_t)(77 * index), (uint8_t)index}};
}

/* 0 32 peer | 32 u32 capabilities | 36 16 invite | 52 u32 uses | 56 u64 tag of all before */
void dp_sim_credential(const dp_sim *sim, uint32_t index, uint8_t out[DP_SIM_CREDENTIAL_BYTES])
{
    const dp_peer peer = sim->hosts[index].peer;
    const uint8_t invite[DP_INVITE_ID_BYTES] = {1, 2, 3};
    dp_writer w = dp_writer_of(out, DP_SIM_CREDENTIAL_BYTES);

    dp_write_bytes(&w, peer.bytes, sizeof peer.bytes);
    dp_write_u32(&w, DP_CAP_ALL);
    if (index == 0) {
        dp_write_bytes(&w, (uint8_t[DP_INVITE_ID_BYTES]){0}, DP_INVITE_ID_BYTES);
    } else {
        dp_write_bytes(&w, invite, sizeof invite);
    }
    dp_write_u32(&w, index == 0 ? 0 : sim->plan.invite_uses);
    dp_write_u64(&w, dp_sim_hash(0x63726564, dp_view_of(out, w.size)));
    dp_evil_credential(sim, index, out);
}

static dp_status admit(void *context, dp_view credential, const dp_run_id *run,
                       const uint8_t root[DP_PUBLIC_KEY_BYTES], const dp_peer *peer,
                       uint64_t now_ms, dp_admitted *out)
{
    dp_admitted admitted = {0};
    dp_peer subject;
    dp_reader r = dp_reader_of(credential);

    (void)context;
    (void)run;
    (void)root;
    (void)now_ms;
    dp_read_bytes(&r, subject.bytes, sizeof subject.bytes);
    admitted.caps = dp_read_u32(&r);
    dp_read_bytes(&r, admitted.invite.bytes, sizeof admitted.invite.bytes);
    admitted.uses = (uint16_t)dp_read_u32(&r);
    const uint64_t tag = dp_read_u64(&r);
    DP_TRY(dp_reader_finish(&r));
    if (tag != dp_sim_hash(0x63726564, dp_view_of(credential.data, DP_SIM_CREDENTIAL_BYTES - 8))) {
        return DP_BADSIG;
    }
    if (peer != NULL && !dp_peer_equal(peer, &subject)) {
        return DP_DENIED;
    }
    *out = admitted;
    return DP_OK;
}

dp_admission dp_sim_admission(void)
{
    return (dp_admission){.check = admit};
}
