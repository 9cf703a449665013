#include "gossip/identity/invite.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "gossip/core/armor.h"

enum {
    TOKEN_VERSION = 1,
    CHECK_BYTES = 8,
    TOKEN_BYTES_MAX =
        2 + 32 + 32 + DP_JOIN_SECRET_BYTES + 2 + 32 + 2 + 4 + DP_CERT_SERIAL_BYTES + 8 + 8 +
        DP_SIGNATURE_BYTES + 1 + (DP_INVITE_CHAIN_CERTS_MAX - 1) * DP_CERT_BYTES + 1 +
        DP_TOKEN_ADDRESSES_MAX * DP_ADDRESS_BYTES_MAX + 1 + DP_TOKEN_NAME_MAX + CHECK_BYTES,
};

static const char token_domain[] = "dpnode/token/1";
static const char psk_domain[] = "dpnode/psk/1";

_Static_assert(DP_TOKEN_TEXT_MAX == (int)DP_ARMOR_TEXT_MAX, "one limit");
_Static_assert(5 + (TOKEN_BYTES_MAX * 8 / 5 + 1) * 30 / 28 + 2 <= DP_TOKEN_TEXT_MAX,
               "every token can be written");

/* Are these two bytes a forbidden start of a UTF-8 character? Forbidden are C1 controls, overlong
 * forms, surrogates, beyond U+10FFFF. */
static bool is_refused_pair(uint8_t first, uint8_t second)
{
    return (first == 0xc2 && second < 0xa0) || (first == 0xe0 && second < 0xa0) ||
           (first == 0xf0 && second < 0x90) || (first == 0xed && second >= 0xa0) ||
           (first == 0xf4 && second >= 0x90);
}

/* Length of the UTF-8 character at the start of bytes, or 0 when it is malformed or a control
 * character. */
static size_t printable_bytes(const uint8_t *bytes, size_t left)
{
    const uint8_t first = bytes[0];
    const size_t size = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

    if (first < 0x20 || first == 0x7f || (first >= 0x80 && first < 0xc2) || first > 0xf4 ||
        size > left) {
        return 0;
    }
    for (size_t i = 1; i < size; i++) {
        if ((bytes[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return size > 1 && is_refused_pair(first, bytes[1]) ? 0 : size;
}

/* A name goes to terminals, so it must not be able to steer one. */
static bool is_valid_name(dp_view name)
{
    if (name.size > DP_TOKEN_NAME_MAX) {
        return false;
    }
    for (size_t i = 0; i < name.size;) {
        const size_t size = printable_bytes(name.data + i, name.size - i);
        if (size == 0) {
            return false;
        }
        i += size;
    }
    return true;
}

static dp_view chain_of(const dp_invite *invite)
{
    return dp_view_of(invite->chain, (size_t)invite->n_certs * DP_CERT_BYTES);
}

dp_status dp_invite_make(const dp_invite_request *request, const dp_entropy *entropy,
                         dp_invite *invite, dp_why *why)
{
    dp_sign_key key;
    dp_credential checked;
    dp_invite made = {.run = *request->run, .psk_epoch = request->psk_epoch};
    dp_cert cert = {
        .kind = DP_CERT_INVITE,
        .uses = request->uses,
        .caps = request->caps & DP_CAP_ALL,
        .run = *request->run,
        .not_before_ms = request->not_before_ms,
        .not_after_ms = request->not_after_ms,
    };

    if (request->n_addresses > DP_TOKEN_ADDRESSES_MAX) {
        return dp_why_set(why, DP_BADARG, "A token holds at most %d addresses.",
                          DP_TOKEN_ADDRESSES_MAX);
    }
    if (!is_valid_name(dp_view_text(request->name))) {
        return dp_why_set(why, DP_BADARG,
                          "The name of a run is at most %d bytes of printable UTF-8.",
                          DP_TOKEN_NAME_MAX);
    }
    if (request->caps == 0 || cert.caps != request->caps ||
        cert.not_before_ms >= cert.not_after_ms) {
        return dp_why_set(
            why, DP_BADARG,
            "An invite needs capabilities that exist and an end after its beginning.");
    }
    const dp_view above = request->issuer_credential;
    if (above.size % DP_CERT_BYTES != 0 || above.size > DP_INVITE_CHAIN_BYTES_MAX - DP_CERT_BYTES) {
        return dp_why_set(why, DP_DENIED,
                          "This node was itself invited through too many nodes to invite others.");
    }
    memcpy(made.root, request->root, sizeof made.root);
    memcpy(made.join_secret, request->join_secret, sizeof made.join_secret);
    memcpy(made.seed, entropy->bytes, sizeof made.seed);
    memcpy(cert.serial, entropy->bytes + sizeof made.seed, sizeof cert.serial);
    dp_sign_key_of_seed(made.seed, &key);
    memcpy(cert.subject_ed, key.public_key, sizeof cert.subject_ed);
    sodium_memzero(&key, sizeof key);
    dp_cert_sign(&cert, request->issuer);
    dp_cert_encode(&cert, made.chain);
    if (above.size > 0) {
        memcpy(made.chain + DP_CERT_BYTES, above.data, above.size);
    }
    made.n_certs = (uint8_t)(1 + above.size / DP_CERT_BYTES);
    made.n_addresses = request->n_addresses;
    for (unsigned i = 0; i < request->n_addresses; i++) {
        made.addresses[i] = request->addresses[i];
    }
    memcpy(made.name, request->name, strlen(request->name));
    const dp_status status =
        dp_invite_chain_check(chain_of(&made), request->run, request->root, 0, &checked, why);
    if (status == DP_OK) {
        *invite = made;
    }
    dp_invite_close(&made);
    return status;
}

/* ---- bytes ---- */

static void write_token(dp_writer *writer, const dp_invite *invite)
{
    dp_cert cert;
    const dp_status decoded = dp_cert_decode(dp_view_of(invite->chain, DP_CERT_BYTES), &cert);

    dp_assert(decoded == DP_OK);
    dp_write_u8(writer, TOKEN_VERSION);
    dp_write_u8(writer, 0);
    dp_write_bytes(writer, invite->run.bytes, sizeof invite->run.bytes);
    dp_write_bytes(writer, invite->root, sizeof invite->root);
    dp_write_bytes(writer, invite->join_secret, sizeof invite->join_secret);
    dp_write_u16(writer, invite->psk_epoch);
    dp_write_bytes(writer, invite->seed, sizeof invite->seed);
    dp_write_u16(writer, cert.uses);
    dp_write_u32(writer, cert.caps);
    dp_write_bytes(writer, cert.serial, sizeof cert.serial);
    dp_write_u64(writer, cert.not_before_ms);
    dp_write_u64(writer, cert.not_after_ms);
    dp_write_bytes(writer, cert.signature, sizeof cert.signature);
    dp_write_u8(writer, (uint8_t)(invite->n_certs - 1));
    dp_write_bytes(writer, invite->chain + DP_CERT_BYTES,
                   (size_t)(invite->n_certs - 1) * DP_CERT_BYTES);
    dp_write_u8(writer, invite->n_addresses);
    for (unsigned i = 0; i < invite->n_addresses; i++) {
        dp_address_write(writer, &invite->addresses[i]);
    }
    dp_write_u8(writer, (uint8_t)strlen(invite->name));
    dp_write_bytes(writer, invite->name, strlen(invite->name));
    const dp_hash check = dp_hash_of(token_domain, dp_view_of(writer->data, writer->size));
    dp_write_bytes(writer, check.bytes, CHECK_BYTES);
}

dp_status dp_invite_write(const dp_invite *invite, char text[DP_TOKEN_TEXT_MAX + 1])
{
    uint8_t bytes[TOKEN_BYTES_MAX];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);

    dp_assert(invite->n_certs >= 1 && invite->n_certs <= DP_INVITE_CHAIN_CERTS_MAX);
    write_token(&writer, invite);
    dp_assert(!writer.full);
    const dp_status status = dp_armor_write(dp_view_of(bytes, writer.size), text);
    sodium_memzero(bytes, sizeof bytes);
    return status;
}

/* The INVITE certificate again: most of it stands elsewhere in the token. */
static dp_status read_invite_cert(dp_reader *reader, dp_invite *invite)
{
    dp_cert cert = {.kind = DP_CERT_INVITE, .run = invite->run};
    dp_sign_key key;

    cert.uses = dp_read_u16(reader);
    cert.caps = dp_read_u32(reader);
    dp_read_bytes(reader, cert.serial, sizeof cert.serial);
    cert.not_before_ms = dp_read_u64(reader);
    cert.not_after_ms = dp_read_u64(reader);
    dp_read_bytes(reader, cert.signature, sizeof cert.signature);
    const uint8_t n_above = dp_read_u8(reader);
    if (n_above > DP_INVITE_CHAIN_CERTS_MAX - 1) {
        return DP_BADMSG;
    }
    dp_read_bytes(reader, invite->chain + DP_CERT_BYTES, (size_t)n_above * DP_CERT_BYTES);
    memcpy(cert.issuer_ed, invite->root, sizeof cert.issuer_ed);
    if (n_above > 0) {
        dp_cert above;
        DP_TRY(dp_cert_decode(dp_view_of(invite->chain + DP_CERT_BYTES, DP_CERT_BYTES), &above));
        memcpy(cert.issuer_ed, above.subject_ed, sizeof cert.issuer_ed);
    }
    dp_sign_key_of_seed(invite->seed, &key);
    memcpy(cert.subject_ed, key.public_key, sizeof cert.subject_ed);
    sodium_memzero(&key, sizeof key);
    dp_cert_encode(&cert, invite->chain);
    invite->n_certs = (uint8_t)(1 + n_above);
    return DP_OK;
}

static dp_status read_token(dp_reader *reader, dp_invite *invite)
{
    const uint8_t flags = dp_read_u8(reader);

    dp_read_bytes(reader, invite->run.bytes, sizeof invite->run.bytes);
    dp_read_bytes(reader, invite->root, sizeof invite->root);
    dp_read_bytes(reader, invite->join_secret, sizeof invite->join_secret);
    invite->psk_epoch = dp_read_u16(reader);
    dp_read_bytes(reader, invite->seed, sizeof invite->seed);
    if (flags != 0) {
        return DP_BADMSG;
    }
    DP_TRY(read_invite_cert(reader, invite));
    invite->n_addresses = dp_read_u8(reader);
    if (invite->n_addresses > DP_TOKEN_ADDRESSES_MAX) {
        return DP_BADMSG;
    }
    for (unsigned i = 0; i < invite->n_addresses; i++) {
        DP_TRY(dp_address_read(reader, &invite->addresses[i]));
    }
    const dp_view name = dp_read_view(reader, dp_read_u8(reader));
    if (!is_valid_name(name)) {
        return DP_BADMSG;
    }
    if (name.size > 0) {
        memcpy(invite->name, name.data, name.size);
    }
    return dp_reader_finish(reader);
}

static dp_status parse_bytes(dp_view bytes, dp_invite *invite, dp_why *why)
{
    dp_credential checked;

    if (bytes.size <= CHECK_BYTES) {
        return dp_why_set(why, DP_BADMSG, "The token is cut short; copy all of it.");
    }
    const dp_view body = dp_view_of(bytes.data, bytes.size - CHECK_BYTES);
    const dp_hash check = dp_hash_of(token_domain, body);
    if (memcmp(check.bytes, body.data + body.size, CHECK_BYTES) != 0) {
        return dp_why_set(
            why, DP_BADMSG,
            "The token is incomplete or put together from two; copy all of it again.");
    }
    dp_reader reader = dp_reader_of(body);
    const uint8_t version = dp_read_u8(&reader);
    if (version != TOKEN_VERSION) {
        return dp_why_set(why, DP_VERSION,
                          "The token is of version %u and this program reads version %d; upgrade "
                          "the older of the two.",
                          (unsigned)version, TOKEN_VERSION);
    }
    const dp_status status = read_token(&reader, invite);
    if (status != DP_OK) {
        return dp_why_set(why, status, "The token is intact but malformed: %s. Ask for a new one.",
                          dp_status_text(status));
    }
    return dp_invite_chain_check(chain_of(invite), &invite->run, invite->root, 0, &checked, why);
}

dp_status dp_invite_parse(dp_view text, dp_invite *invite, size_t *position, dp_why *why)
{
    dp_buf bytes;
    dp_invite parsed = {.n_certs = 0};
    size_t place = 0;

    dp_buf_init(&bytes, DP_TOKEN_TEXT_MAX);
    dp_status status = dp_armor_read(text, &bytes, &place, why);
    if (status == DP_OK) {
        status = parse_bytes(dp_buf_view(&bytes), &parsed, why);
    }
    if (status == DP_OK) {
        *invite = parsed;
    } else if (status == DP_BADMSG && position != NULL) {
        *position = place;
    }
    dp_invite_close(&parsed);
    if (bytes.data != NULL) {
        sodium_memzero(bytes.data, bytes.capacity);
    }
    dp_buf_close(&bytes);
    return status;
}

/* ---- use ---- */

/* "3 h" and the like; text has room for 32 characters. */
void dp_duration_text(uint64_t ms, char text[32])
{
    const uint64_t s = ms / 1000;

    if (s < 120) {
        (void)snprintf(text, 32, "%llu s", (unsigned long long)s);
    } else if (s < 2 * 3600ULL) {
        (void)snprintf(text, 32, "%llu min", (unsigned long long)(s / 60));
    } else if (s < 2 * 86400ULL) {
        (void)snprintf(text, 32, "%llu h", (unsigned long long)(s / 3600));
    } else {
        (void)snprintf(text, 32, "%llu days", (unsigned long long)(s / 86400));
    }
}

dp_status dp_invite_check(const dp_invite *invite, uint64_t now_ms, dp_credential *credential,
                          dp_why *why)
{
    dp_credential found;
    char ago[32];

    DP_TRY(dp_invite_chain_check(chain_of(invite), &invite->run, invite->root, 0, &found, why));
    if (credential != NULL) {
        *credential = found;
    }
    const dp_status status = dp_credential_join_at(&found, now_ms);
    if (status == DP_EXPIRED) {
        dp_duration_text(now_ms - found.join_until_ms, ago);
        return dp_why_set(why, status,
                          "The token expired %s ago by this machine's clock; ask whoever invited "
                          "you for a new one, or set the clock if it is wrong.",
                          ago);
    }
    if (status == DP_AGAIN) {
        dp_duration_text(found.join_from_ms - now_ms, ago);
        return dp_why_set(
            why, status,
            "The token becomes valid in %s; wait, or set this machine's clock if that is wrong.",
            ago);
    }
    return status;
}

void dp_psk_derive(const uint8_t join_secret[DP_JOIN_SECRET_BYTES], const dp_run_id *run,
                   uint16_t epoch, uint8_t psk[DP_PSK_BYTES])
{
    uint8_t message[sizeof psk_domain - 1 + DP_HASH_BYTES + 2];
    dp_writer writer = dp_writer_of(message, sizeof message);

    dp_write_bytes(&writer, psk_domain, sizeof psk_domain - 1);
    dp_write_bytes(&writer, run->bytes, sizeof run->bytes);
    dp_write_u16(&writer, epoch);
    dp_assert(!writer.full && writer.size == sizeof message);
    crypto_generichash(psk, DP_PSK_BYTES, message, sizeof message, join_secret,
                       DP_JOIN_SECRET_BYTES);
}

void dp_invite_psk(const dp_invite *invite, uint8_t psk[DP_PSK_BYTES])
{
    dp_psk_derive(invite->join_secret, &invite->run, invite->psk_epoch, psk);
}

dp_status dp_invite_redeem(const dp_invite *invite, const dp_identity *identity,
                           const uint8_t serial[DP_CERT_SERIAL_BYTES], uint64_t now_ms,
                           uint64_t member_ms, uint8_t credential[DP_CREDENTIAL_BYTES_MAX],
                           size_t *size)
{
    dp_credential found;
    dp_sign_key key;
    dp_cert cert = {.kind = DP_CERT_NODE, .run = invite->run};

    DP_TRY(dp_invite_check(invite, now_ms, &found, NULL));
    dp_assert(member_ms > 0 && now_ms < UINT64_MAX - DP_CERT_NODE_MS_MAX);
    /* Within the invite's window also where this clock is a little slow. */
    cert.caps = found.caps;
    cert.not_before_ms = now_ms > found.join_from_ms ? now_ms : found.join_from_ms;
    cert.not_after_ms =
        cert.not_before_ms + (member_ms < DP_CERT_NODE_MS_MAX ? member_ms : DP_CERT_NODE_MS_MAX);
    memcpy(cert.subject_ed, identity->ed.public_key, sizeof cert.subject_ed);
    memcpy(cert.subject_x, identity->x_public, sizeof cert.subject_x);
    memcpy(cert.serial, serial, sizeof cert.serial);
    dp_sign_key_of_seed(invite->seed, &key);
    dp_cert_sign(&cert, &key);
    sodium_memzero(&key, sizeof key);
    dp_cert_encode(&cert, credential);
    const dp_view chain = chain_of(invite);
    memcpy(credential + DP_CERT_BYTES, chain.data, chain.size);
    *size = DP_CERT_BYTES + chain.size;
    return DP_OK;
}

void dp_invite_close(dp_invite *invite)
{
    sodium_memzero(invite, sizeof *invite);
}
