/* dpattack: an attacker that holds one token and knows the code, against listening daemons.
 * tests/attack/run.py starts it beside them.
 *
 *   dpattack MODE TOKEN-FILE SECONDS COUNT ADDRESS[,ADDRESS...] [PEER,...]
 *
 *   identity  COUNT connections to each address, each in the name of one of the members PEER,...,
 *             with the highest possible boot id
 *   guests    COUNT identities with credentials made from the token, linked to every address
 *   talk      one of them, which announces COUNT invented ones each second
 *   hold      COUNT of them, each sends to every address a long message that never ends
 *   newer COUNT of them, each claims to have a million records more
 *   flood COUNT of them, each sends all the time statements of itself with false signatures
 *   ask   COUNT of them, each asks all the time for the table of members and for the manifest
 *   deaf  the same, and they read no answer
 *
 * Prints one line of JSON: the largest number of links that were a second old at one time (the
 * attacker sends the last message of a handshake: it counts a link until the other end cuts it),
 * the number of all links, of failed handshakes, and of received bytes. Exit 0, or 64 for
 * arguments, 70. */
#include <signal.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "daemon/net/transport_conn.h"
#include "gossip/identity/invite.h"
#include "gossip/member/members.h"
#include "gossip/member/statement.h"
#include "gossip/member/summary.h"

enum { LIARS_MAX = 1024, ADDRESSES_MAX = 16, INVENTED_MAX = 200 };

typedef struct attack attack;

typedef struct liar {
    attack *attack;
    dp_identity identity;
    dp_transport *transport;
    uint8_t credential[DP_CREDENTIAL_BYTES_MAX];
    size_t credential_bytes;
    dp_peer linked[ADDRESSES_MAX];
    uint64_t up_ms[ADDRESSES_MAX];
    uint32_t n_linked;
    bool holds[ADDRESSES_MAX];
} liar;

struct attack {
    uv_loop_t loop;
    uv_timer_t timer;
    const char *mode;
    dp_invite invite;
    uint32_t count;
    uint64_t end_ms;
    dp_addr addresses[ADDRESSES_MAX];
    uint32_t n_addresses;
    dp_peer victims[ADDRESSES_MAX];
    uint32_t n_victims;
    liar *liars;
    uint32_t n_liars;
    uint32_t stood_most;
    uint64_t ups;
};

static bool is(const attack *a, const char *mode)
{
    return strcmp(a->mode, mode) == 0;
}

static uint64_t unix_ms(void)
{
    uv_timeval64_t now;

    return uv_gettimeofday(&now) == 0 ? (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_usec / 1000
                                      : 0;
}

/* ---- who it is ---- */

static void become(liar *self)
{
    dp_entropy entropy;

    randombytes_buf(entropy.bytes, sizeof entropy.bytes);
    dp_identity_of_seed(&entropy, &self->identity);
}

/* Makes a credential that a holder of the token can make for any peer: a certificate of the
 * victim's identity key and this attacker's static key. */
static void impersonate(liar *self, const dp_peer *victim)
{
    const attack *a = self->attack;
    dp_sign_key invite_key;
    dp_cert cert = {.kind = DP_CERT_NODE, .run = a->invite.run};
    dp_credential grants;

    dp_sign_key_of_seed(a->invite.seed, &invite_key);
    if (dp_invite_check(&a->invite, unix_ms(), &grants, NULL) != DP_OK) {
        fprintf(stderr, "dpattack: the token is not valid now\n");
        exit(70);
    }
    cert.caps = grants.caps;
    memcpy(cert.subject_ed, victim->bytes, sizeof cert.subject_ed);
    memcpy(cert.subject_x, self->identity.x_public, sizeof cert.subject_x);
    randombytes_buf(cert.serial, sizeof cert.serial);
    cert.not_before_ms = unix_ms();
    cert.not_after_ms = cert.not_before_ms + 24ULL * 3600 * 1000;
    dp_cert_sign(&cert, &invite_key);
    dp_cert_encode(&cert, self->credential);
    memcpy(self->credential + DP_CERT_BYTES, a->invite.chain,
           (size_t)a->invite.n_certs * DP_CERT_BYTES);
    self->credential_bytes = (1 + (size_t)a->invite.n_certs) * DP_CERT_BYTES;
    /* It also uses the victim's name; it cannot forge only the signature of the handshake. */
    memcpy(self->identity.ed.public_key, victim->bytes, sizeof self->identity.ed.public_key);
}

static bool redeem(liar *self)
{
    uint8_t serial[DP_CERT_SERIAL_BYTES];

    randombytes_buf(serial, sizeof serial);
    return dp_invite_redeem(&self->attack->invite, &self->identity, serial, unix_ms(),
                            24ULL * 3600 * 1000, self->credential,
                            &self->credential_bytes) == DP_OK;
}

/* ---- what it says ---- */

static void send_to_all(liar *self, dp_lane lane, dp_view message)
{
    for (uint32_t i = 0; i < self->n_linked; i++) {
        (void)!dp_transport_send(self->transport, &self->linked[i], lane, message);
    }
}

static bool sign_as(void *context, int key, const char *domain, dp_view bytes,
                    uint8_t signature[DP_SIGNATURE_BYTES])
{
    const dp_identity *identity = context;

    (void)key;
    dp_sign(&identity->ed, domain, bytes, signature);
    return true;
}

/* Announces that an invented node is alive at the address of another node. */
static void invent(liar *self)
{
    uint8_t bytes[DP_STATEMENT_BYTES_MAX];
    uint8_t message[DP_STATEMENT_BYTES_MAX + DP_CREDENTIAL_BYTES_MAX + 8];
    dp_writer writer = dp_writer_of(message, sizeof message);
    liar invented = {.attack = self->attack};

    become(&invented);
    if (!redeem(&invented)) {
        return;
    }
    const dp_crypto crypto = {.context = &invented.identity, .sign = sign_as};
    const dp_statement statement = {
        .kind = DP_STATEMENT_ALIVE,
        .subject = dp_identity_peer(&invented.identity),
        .incarnation = 1,
        .author = dp_identity_peer(&invented.identity),
        .n_addrs = 1,
        .addrs = {{.family = 4, .ip = {127, 0, 0, 1}, .port = 9}},
    };
    const size_t size = dp_statement_sign(&statement, &crypto, &self->attack->invite.run, bytes);
    dp_write_u8(&writer, DP_MSG_STATEMENT);
    dp_write_u8(&writer, DP_MSG_VERSION);
    dp_write_bytes(&writer, bytes, size);
    dp_write_u16(&writer, (uint16_t)invented.credential_bytes);
    dp_write_bytes(&writer, invented.credential, invented.credential_bytes);
    send_to_all(self, DP_LANE_CONTROL, dp_view_of(message, writer.size));
    dp_identity_close(&invented.identity);
}

static void boast(liar *self)
{
    uint8_t message[512];
    dp_writer writer = dp_writer_of(message, sizeof message);
    const dp_summary summary = {
        .slot = 1000000, .round = 1000000, .mode = DP_MODE_SYNC, .has_trainer = true, .step_us = 1};

    dp_write_u8(&writer, DP_MSG_PING);
    dp_write_u8(&writer, DP_MSG_VERSION);
    dp_write_u32(&writer, 1);
    dp_summary_write(&writer, &summary);
    dp_write_u8(&writer, 0);
    dp_write_u64(&writer, 0);
    dp_write_u32(&writer, 0);
    dp_write_u32(&writer, 0);
    dp_write_u8(&writer, 0);
    send_to_all(self, DP_LANE_CONTROL, dp_view_of(message, writer.size));
}

/* Each signature is checked in vain. */
static void flood(liar *self)
{
    enum { MESSAGES = 20 };
    uint8_t bytes[DP_STATEMENT_BYTES_MAX];
    uint8_t message[2 + 3 + DP_SYNC_ENTRIES_MAX * (DP_ACCUSATION_BYTES + 2)];
    dp_writer writer = dp_writer_of(message, sizeof message);
    const dp_crypto crypto = {.context = &self->identity, .sign = sign_as};
    const dp_statement statement = {.kind = DP_STATEMENT_ALIVE,
                                    .subject = dp_identity_peer(&self->identity),
                                    .incarnation = UINT64_MAX - 1,
                                    .author = dp_identity_peer(&self->identity)};
    const size_t size = dp_statement_sign(&statement, &crypto, &self->attack->invite.run, bytes);

    dp_write_u8(&writer, DP_MSG_SYNC);
    dp_write_u8(&writer, DP_MSG_VERSION);
    dp_write_u8(&writer, DP_SYNC_LIST);
    dp_write_u16(&writer, DP_SYNC_ENTRIES_MAX);
    bytes[size - DP_SIGNATURE_BYTES] ^= 1;
    for (uint32_t i = 0; i < DP_SYNC_ENTRIES_MAX; i++) {
        dp_write_bytes(&writer, bytes, size);
        dp_write_u16(&writer, 0);
    }
    for (uint32_t i = 0; i < MESSAGES; i++) {
        send_to_all(self, DP_LANE_CONTROL, dp_view_of(message, writer.size));
    }
}

static void stop_reading(const liar *self)
{
    for (uint32_t i = 0; i < self->n_linked; i++) {
        const dp_link *link = dp_link_find(self->transport, &self->linked[i]);
        if (link != NULL) {
            uv_read_stop((uv_stream_t *)&link->lanes[DP_LANE_CONTROL]->tcp);
        }
    }
}

static void ask(liar *self)
{
    enum { QUESTIONS = 100 };
    static const uint8_t table[] = {DP_MSG_SYNC, DP_MSG_VERSION, DP_SYNC_ANSWER_WANTED, 0, 0};
    static const uint8_t manifest[] = {DP_MSG_MANIFEST_GET, DP_MSG_VERSION};

    for (uint32_t i = 0; i < QUESTIONS; i++) {
        send_to_all(self, DP_LANE_CONTROL, dp_view_of(table, sizeof table));
        send_to_all(self, DP_LANE_CONTROL, dp_view_of(manifest, sizeof manifest));
    }
}

/* With almost no upload rate the message never ends. */
static void hold(liar *self)
{
    static uint8_t bytes[DP_MESSAGE_BULK_MAX];

    for (uint32_t i = 0; i < self->n_linked; i++) {
        if (!self->holds[i] && dp_transport_bulk_waiting(self->transport, &self->linked[i]) == 0) {
            self->holds[i] = dp_transport_send(self->transport, &self->linked[i], DP_LANE_BULK,
                                               dp_view_of(bytes, sizeof bytes)) == DP_OK;
        }
    }
}

/* ---- its links ---- */

static void on_up(void *context, const dp_peer *peer, const dp_addr *addr, dp_view credential,
                  dp_view hello, bool outgoing)
{
    liar *self = context;
    attack *a = self->attack;

    (void)addr;
    (void)credential;
    (void)hello;
    (void)outgoing;
    if (self->n_linked < ADDRESSES_MAX) {
        self->up_ms[self->n_linked] = uv_now(&a->loop);
        self->linked[self->n_linked++] = *peer;
    }
    a->ups++;
}

static void on_down(void *context, const dp_peer *peer, dp_link_cause cause)
{
    liar *self = context;

    if (cause == DP_LINK_REFUSED) {
        return;
    }
    for (uint32_t i = 0; i < self->n_linked; i++) {
        if (dp_peer_equal(&self->linked[i], peer)) {
            self->linked[i] = self->linked[--self->n_linked];
            self->up_ms[i] = self->up_ms[self->n_linked];
            memset(self->holds, 0, sizeof self->holds);
            return;
        }
    }
}

static void on_message(void *context, const dp_peer *peer, dp_view bytes)
{
    (void)context;
    (void)peer;
    (void)bytes;
}

static void on_drained(void *context, const dp_peer *peer)
{
    (void)context;
    (void)peer;
}

static bool knows(void *context, const dp_peer *peer, uint8_t x_public[32])
{
    (void)context;
    (void)peer;
    memset(x_public, 0, 32);
    return true;
}

/* Members have the address 127.0.0.1, an attacker another one: a transport that listens on an
 * address dials from it. */
static bool move_to(liar *self, uint32_t index)
{
    char address[32];
    uint16_t port = 0;
    dp_why why = {""};

    snprintf(address, sizeof address, "127.66.%u.1:0", index % 4);
    return dp_transport_listen(self->transport, address, &port, &why) == DP_OK;
}

static void open_liar(attack *a, uint32_t index)
{
    liar *self = &a->liars[index];
    dp_transport_config config = {
        .loop = &a->loop,
        .run = a->invite.run,
        .psk = {.epoch = a->invite.psk_epoch},
        .identity = &self->identity,
        .incarnation = is(a, "identity") ? UINT64_MAX - 1 : 1,
        .hooks = {.context = self,
                  .link_up = on_up,
                  .link_down = on_down,
                  .message = on_message,
                  .drained = on_drained,
                  .known = knows},
    };

    self->attack = a;
    become(self);
    if (is(a, "identity")) {
        impersonate(self, &a->victims[index % a->n_victims]);
    } else if (!redeem(self)) {
        fprintf(stderr, "dpattack: the token cannot be used\n");
        exit(70);
    }
    config.credential = dp_view_of(self->credential, self->credential_bytes);
    config.limits.upload = is(a, "hold") ? 20000 : 0;
    memcpy(config.root, a->invite.root, sizeof config.root);
    dp_invite_psk(&a->invite, config.psk.key);
    if (dp_transport_open(&self->transport, &config) != DP_OK || !move_to(self, index)) {
        fprintf(stderr, "dpattack: no memory or no address\n");
        exit(70);
    }
}

static void dial_all(const attack *a, liar *self)
{
    for (uint32_t i = 0; self->n_linked < a->n_addresses && i < a->n_addresses; i++) {
        dp_transport_dial(self->transport, NULL, &a->addresses[i], 1);
    }
}

static uint32_t count_standing(const attack *a)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < a->n_liars; i++) {
        for (uint32_t k = 0; k < a->liars[i].n_linked; k++) {
            count += uv_now(&a->loop) - a->liars[i].up_ms[k] >= 1000 ? 1 : 0;
        }
    }
    return count;
}

/* Four times a second. */
static void on_timer(uv_timer_t *timer)
{
    attack *a = timer->data;

    if (uv_now(&a->loop) >= a->end_ms) {
        uv_timer_stop(timer);
        uv_stop(&a->loop);
        return;
    }
    const uint32_t standing = count_standing(a);
    a->stood_most = standing > a->stood_most ? standing : a->stood_most;
    for (uint32_t i = 0; i < a->n_liars; i++) {
        liar *self = &a->liars[i];
        dial_all(a, self);
        if (is(a, "talk")) {
            for (uint32_t k = 0; k < (a->count + 3) / 4; k++) {
                invent(self);
            }
        } else if (is(a, "hold")) {
            hold(self);
        } else if (is(a, "newer")) {
            boast(self);
        } else if (is(a, "flood")) {
            flood(self);
        } else if (is(a, "ask")) {
            ask(self);
        } else if (is(a, "deaf")) {
            stop_reading(self);
            ask(self);
        }
    }
}

/* ---- arguments ---- */

static bool read_token(const char *path, dp_invite *invite)
{
    char text[DP_TOKEN_TEXT_MAX + 2];
    FILE *file = fopen(path, "rb");
    dp_why why = {""};

    if (file == NULL) {
        return false;
    }
    const size_t size = fread(text, 1, sizeof text, file);
    fclose(file);
    return dp_invite_parse(dp_view_of(text, size), invite, NULL, &why) == DP_OK;
}

static bool read_addresses(attack *a, char *list)
{
    for (char *at = strtok(list, ","); at != NULL; at = strtok(NULL, ",")) {
        dp_addr *addr = &a->addresses[a->n_addresses];
        unsigned b[4];
        unsigned port = 0;
        if (a->n_addresses == ADDRESSES_MAX ||
            sscanf(at, "%u.%u.%u.%u:%u", &b[0], &b[1], &b[2], &b[3], &port) != 5) {
            return false;
        }
        *addr = (dp_addr){.family = 4, .port = (uint16_t)port};
        for (int i = 0; i < 4; i++) {
            addr->ip[i] = (uint8_t)b[i];
        }
        a->n_addresses++;
    }
    return a->n_addresses > 0;
}

static bool read_victims(attack *a, char *list)
{
    for (char *at = strtok(list, ","); at != NULL; at = strtok(NULL, ",")) {
        size_t size = 0;
        if (a->n_victims == ADDRESSES_MAX ||
            sodium_hex2bin(a->victims[a->n_victims].bytes, 32, at, strlen(at), NULL, &size, NULL) !=
                0 ||
            size != 32) {
            return false;
        }
        a->n_victims++;
    }
    return a->n_victims > 0;
}

static void report(attack *a)
{
    uint64_t failed = 0;
    uint64_t handshakes = 0;
    uint64_t received = 0;

    for (uint32_t i = 0; i < a->n_liars; i++) {
        dp_transport_stats stats;
        dp_transport_look(a->liars[i].transport, &stats);
        failed += stats.handshakes_failed;
        handshakes += stats.handshakes;
        received += stats.bytes_received;
    }
    printf(
        "{\"links_most\":%u,\"ups\":%llu,\"handshakes\":%llu,\"failed\":%llu,\"received\":%llu}\n",
        a->stood_most, (unsigned long long)a->ups, (unsigned long long)handshakes,
        (unsigned long long)failed, (unsigned long long)received);
}

int main(int argc, char **argv)
{
    static attack a;
    static const char *const modes[] = {"identity", "guests", "talk", "hold",
                                        "newer",    "flood",  "ask",  "deaf"};
    bool known = false;

    for (size_t i = 0; argc >= 6 && i < sizeof modes / sizeof modes[0]; i++) {
        known = known || strcmp(argv[1], modes[i]) == 0;
    }
    if (!known || dp_crypto_start() != DP_OK || !read_token(argv[2], &a.invite) ||
        !read_addresses(&a, argv[5])) {
        fprintf(stderr, "usage: dpattack identity|guests|talk|hold|newer|flood|ask|deaf TOKEN-FILE "
                        "SECONDS COUNT "
                        "ADDRESS,... [PEER,...]\n");
        return 64;
    }
    signal(SIGPIPE, SIG_IGN);
    a.mode = argv[1];
    a.count = (uint32_t)strtoul(argv[4], NULL, 10);
    if (is(&a, "identity") && (argc < 7 || !read_victims(&a, argv[6]))) {
        fprintf(stderr, "dpattack: in whose name? 64 hexadecimal digits each\n");
        return 64;
    }
    a.n_liars = is(&a, "talk") ? 1 : a.count;
    a.liars = calloc(a.n_liars < LIARS_MAX ? a.n_liars : LIARS_MAX, sizeof *a.liars);
    if (a.n_liars == 0 || a.n_liars > LIARS_MAX || a.count > INVENTED_MAX * 10 || a.liars == NULL ||
        uv_loop_init(&a.loop) != 0 || uv_timer_init(&a.loop, &a.timer) != 0) {
        fprintf(stderr, "dpattack: 1 to %d of them\n", LIARS_MAX);
        return 64;
    }
    a.timer.data = &a;
    a.end_ms = uv_now(&a.loop) + strtoul(argv[3], NULL, 10) * 1000;
    for (uint32_t i = 0; i < a.n_liars; i++) {
        open_liar(&a, i);
    }
    uv_timer_start(&a.timer, on_timer, 0, 250);
    uv_run(&a.loop, UV_RUN_DEFAULT);
    report(&a);
    fflush(stdout);
    _Exit(0); /* The process ends here, so nothing needs to be closed. */
}
