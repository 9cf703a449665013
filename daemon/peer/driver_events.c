/* Receives the events of the transport and of the object transfer: links, messages, objects. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "daemon/host/advertise.h"
#include "daemon/net/crypto_pool.h"
#include "daemon/net/hello.h"
#include "daemon/peer/bandwidth_limiter.h"
#include "daemon/peer/driver.h"
#include "daemon/peer/driver_inside.h"
#include "gossip/identity/cert.h"
#include "gossip/record/wire.h"

/* Reports once that a peer has other rules: otherwise the reason for refused updates would not be
 * visible. */
static void tell_rules(dp_driver *driver, const dp_peer *peer, const dp_hello *hello)
{
    const bool older = hello->rules < DP_RULES;

    dp_event_log_add(
        driver->daemon->event_log, DP_LOG_WARN, "peer.rules", 0, peer,
        "%s runs %s version (rules %u, here %d): %s may refuse updates that count for the "
        "others; upgrade %s",
        hello->name, older ? "an older" : "a newer", hello->rules, DP_RULES,
        older ? "it" : "this node", older ? "it" : "this node");
}

static void read_hello(dp_driver *driver, const dp_peer *peer, dp_view bytes)
{
    dp_hello hello = {.rules = 0};
    uint32_t at = 0;

    if (!dp_hello_read(bytes, &hello)) {
        return;
    }
    while (at < driver->n_names && !dp_peer_equal(&driver->names[at].peer, peer)) {
        at++;
    }
    if (at == DP_DRIVER_NAMES_MAX) {
        at = peer->bytes[0];
    }
    const bool told = at < driver->n_names && dp_peer_equal(&driver->names[at].peer, peer) &&
                      driver->names[at].hello.rules == hello.rules;
    driver->n_names += at == driver->n_names;
    driver->names[at].peer = *peer;
    driver->names[at].hello = hello;
    if (hello.rules != DP_RULES && !told) {
        tell_rules(driver, peer, &hello);
    }
}

const char *dp_driver_peer_name(const dp_driver *driver, const dp_peer *peer)
{
    if (dp_peer_equal(peer, &driver->self)) {
        return driver->facts.node_name;
    }
    for (uint32_t i = 0; i < driver->n_names; i++) {
        if (dp_peer_equal(&driver->names[i].peer, peer)) {
            return driver->names[i].hello.name;
        }
    }
    return driver->node != NULL ? dp_node_peer_name(driver->node, peer) : "";
}

static void on_link_up(void *context, const dp_peer *peer, const dp_addr *addr, dp_view credential,
                       dp_view hello, bool outgoing)
{
    dp_driver *driver = context;
    char text[DP_ADDR_TEXT_MAX];
    read_hello(driver, peer, hello);
    dp_addr_text(addr, text);
    dp_event_log_add(driver->daemon->event_log, DP_LOG_DEBUG, "link.up", 0, peer,
                     "linked with %s at %s", dp_driver_peer_name(driver, peer), text);
    if (!driver->has_manifest) {
        if (driver->hooks.progress != NULL) {
            driver->hooks.progress(driver->hooks.context, "reach", text);
        }
        dp_object_transfer_get_manifest(driver->object_transfer, peer);
        return;
    }
    dp_event event = {.type = DP_EV_LINK_UP};
    event.u.link.peer = *peer;
    event.u.link.addr = *addr;
    event.u.link.credential = credential;
    event.u.link.outgoing = outgoing;
    dp_driver_feed(driver, &event);
    dp_driver_remember_soon(driver);
}

static void on_link_down(void *context, const dp_peer *peer, dp_link_cause cause)
{
    dp_driver *driver = context;
    if (dp_peer_is_zero(peer)) {
        return; /* A dial to any member; the tick dials again. */
    }
    dp_event event = {.type = DP_EV_LINK_DOWN};
    event.u.link.peer = *peer;
    event.u.link.cause = cause;
    dp_driver_feed(driver, &event);
}

static void on_message(void *context, const dp_peer *peer, dp_view bytes)
{
    dp_driver *driver = context;
    if (dp_object_transfer_message(driver->object_transfer, peer, bytes)) {
        return;
    }
    /* A newcomer may come while the store is still being read. */
    if (driver->node == NULL && dp_msg_type_of(bytes) == DP_MSG_MANIFEST_GET) {
        dp_object_transfer_serve_manifest(driver->object_transfer, peer);
        return;
    }
    dp_event event = {.type = DP_EV_MESSAGE};
    event.u.message.peer = *peer;
    event.u.message.bytes = bytes;
    dp_driver_feed(driver, &event);
}

static void on_drained(void *context, const dp_peer *peer)
{
    dp_driver *driver = context;
    dp_object_transfer_drained(driver->object_transfer, peer);
}

/* A member may connect after its invite has expired; a newcomer accepts every such peer. */
static bool on_met(void *context, const dp_peer *peer, const dp_addr *addr, uint64_t peer_ms,
                   bool refused)
{
    return dp_driver_met(context, peer, addr, peer_ms, refused);
}

static uint64_t on_wall(void *context)
{
    return dp_driver_wall_ms(context);
}

static bool on_known(void *context, const dp_peer *peer, uint8_t x_public[32])
{
    const dp_driver *driver = context;
    return driver->node == NULL || dp_node_admitted(driver->node, peer, x_public);
}

/* While the store is read nobody is a member: one token admits any number of peers until then. */
static bool on_guest(void *context, const dp_peer *peer)
{
    const dp_driver *driver = context;
    uint8_t ignored[32];
    return driver->node == NULL || !dp_node_admitted(driver->node, peer, ignored);
}

static bool on_renewed(void *context, const dp_peer *peer, dp_view hello, uint64_t now_ms)
{
    dp_driver *driver = context;
    dp_hello said = {.rules = 0};
    if (!dp_hello_read(hello, &said) || said.renewal.until_ms == 0) {
        return false;
    }
    if (driver->node == NULL) { /* Only the signing keys are known yet. */
        const dp_crypto crypto = dp_crypto_sodium(&driver->keys);
        return dp_renewal_fits(&said.renewal, &crypto, &driver->facts.run, peer, now_ms);
    }
    return dp_node_renewed(driver->node, &said.renewal, peer, now_ms);
}

static void on_info(void *context, const dp_peer *peer, const dp_hash *root, uint64_t size,
                    const dp_hash *leaves)
{
    dp_event event = {.type = DP_EV_OBJECT_INFO};
    event.u.object.peer = *peer;
    event.u.object.root = *root;
    event.u.object.size = size;
    event.u.object.leaves = leaves;
    dp_driver_feed(context, &event);
}

static void on_chunk(void *context, const dp_peer *peer, const dp_hash *root, uint32_t index,
                     dp_status status)
{
    const dp_driver *driver = context;
    dp_event event = {.type = DP_EV_CHUNK};
    event.u.chunk.peer =
        dp_peer_is_zero(peer) ? driver->self : *peer; /* no peer: it was already in the store */
    event.u.chunk.root = *root;
    event.u.chunk.index = index;
    event.u.chunk.status = status;
    dp_driver_feed(context, &event);
}

static void on_object(void *context, const dp_hash *root, uint64_t size)
{
    dp_event event = {.type = DP_EV_OBJECT};
    event.u.object.root = *root;
    event.u.object.size = size;
    dp_driver_feed(context, &event);
}

void dp_driver_lost(dp_driver *driver, const dp_hash *root, dp_status status)
{
    dp_event event = {.type = DP_EV_OBJECT_LOST};
    char name[2 * 4 + 1];
    if (status == DP_BADHASH) {
        dp_hex(dp_view_of(root->bytes, 4), name);
        dp_event_log_add(driver->daemon->event_log, DP_LOG_ERROR, "store.damaged", 0, NULL,
                         "object %s is damaged on this disk; it is no longer served to peers, and "
                         "fetched again if needed; check the disk: smartctl -a DEVICE",
                         name);
    }
    event.u.object.root = *root;
    dp_driver_feed(driver, &event);
}

static void on_lost(void *context, const dp_hash *root, dp_status status)
{
    dp_driver_lost(context, root, status);
}

static void on_manifest(void *context, const dp_peer *peer, dp_view bytes)
{
    dp_driver *driver = context;
    dp_manifest manifest;
    if (driver->has_manifest || bytes.size > sizeof driver->facts.manifest ||
        bytes.size <= DP_MANIFEST_SIGNATURE_BYTES) {
        return;
    }
    const dp_status status = dp_driver_check_manifest(driver, bytes, &manifest);
    if (status != DP_OK) {
        dp_event_log_add(driver->daemon->event_log, DP_LOG_WARN, "manifest.refused", 0, peer,
                         "a manifest was refused: %s", dp_manifest_refusal(status));
        dp_transport_hangup(driver->transport, peer);
        return;
    }
    memcpy(driver->facts.manifest, bytes.data, bytes.size);
    driver->facts.manifest_bytes = bytes.size;
    if (driver->hooks.manifest != NULL) {
        driver->hooks.manifest(driver->hooks.context);
    }
    dp_driver_start_node(driver);
}

dp_status dp_driver_open_transport(dp_driver *driver, dp_why *why)
{
    uint8_t hello[DP_CHANNEL_HELLO_MAX];
    const dp_run_identity *facts = &driver->facts;
    dp_transport_config config = {
        .loop = driver->daemon->loop,
        .run = facts->run,
        .has_older = facts->secrets.n > 1,
        .identity = &driver->daemon->identity,
        .credential = dp_view_of(facts->credential, facts->credential_bytes),
        .hello = dp_view_of(hello,
                            dp_hello_write(facts->node_name, &facts->renewal, hello, sizeof hello)),
        .incarnation = driver->daemon->incarnation,
        .limits = dp_bandwidth_limiter_limits(driver->daemon->bandwidth_limiter),
        .n_threads = dp_crypto_pool_fit(uv_available_parallelism()),
        .hooks = {driver, on_link_up, on_link_down, on_message, on_drained, on_known, on_guest,
                  on_met, on_wall, on_renewed},
    };
    memcpy(config.root, facts->root, sizeof config.root);
    DP_TRY(dp_credential_check(config.credential, &facts->run, facts->root, &driver->self, 0,
                               &driver->own, why));
    dp_channel_psk psks[DP_SECRETS_MAX];
    dp_driver_use_secrets(driver, psks);
    config.psk = psks[0];
    config.older = psks[1];
    DP_TRY(dp_transport_open(&driver->transport, &config));
    DP_TRY(
        dp_transport_listen(driver->transport, driver->daemon->config->listen, &driver->port, why));
    const dp_object_transfer_config object_transfer = {
        .store_thread = driver->daemon->store_thread,
        .transport = driver->transport,
        .run = facts->run,
        .hooks = {driver, on_info, on_chunk, on_object, on_manifest, on_lost},
    };
    return dp_object_transfer_open(&driver->object_transfer, &object_transfer);
}
