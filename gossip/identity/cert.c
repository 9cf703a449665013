#include "gossip/identity/cert.h"

#include <sodium.h>
#include <string.h>

#include "base/assert.h"

enum { CERT_VERSION = 1 };

static const char cert_domain[] = "dpnode/cert/1";

_Static_assert(1 + 1 + 2 + 4 + 32 * 3 + DP_CERT_SERIAL_BYTES + 8 + 8 + 32 == DP_CERT_SIGNED_BYTES,
               "layout");
_Static_assert(DP_CERT_SIGNED_BYTES + DP_SIGNATURE_BYTES == DP_CERT_BYTES, "layout");

void dp_cert_encode(const dp_cert *cert, uint8_t bytes[DP_CERT_BYTES])
{
    dp_writer writer = dp_writer_of(bytes, DP_CERT_BYTES);

    dp_write_u8(&writer, CERT_VERSION);
    dp_write_u8(&writer, (uint8_t)cert->kind);
    dp_write_u16(&writer, cert->uses);
    dp_write_u32(&writer, cert->caps);
    dp_write_bytes(&writer, cert->run.bytes, sizeof cert->run.bytes);
    dp_write_bytes(&writer, cert->subject_ed, sizeof cert->subject_ed);
    dp_write_bytes(&writer, cert->subject_x, sizeof cert->subject_x);
    dp_write_bytes(&writer, cert->serial, sizeof cert->serial);
    dp_write_u64(&writer, cert->not_before_ms);
    dp_write_u64(&writer, cert->not_after_ms);
    dp_write_bytes(&writer, cert->issuer_ed, sizeof cert->issuer_ed);
    dp_write_bytes(&writer, cert->signature, sizeof cert->signature);
    dp_assert(!writer.full && writer.size == DP_CERT_BYTES);
}

/* Does the certificate by itself satisfy the rules for every certificate, own or foreign? */
static bool is_well_formed(const dp_cert *cert)
{
    const bool has_x = sodium_is_zero(cert->subject_x, sizeof cert->subject_x) == 0;

    if (cert->kind == DP_CERT_NODE) {
        if (cert->uses != 0 || !has_x) {
            return false;
        }
    } else if (cert->kind != DP_CERT_INVITE || has_x) {
        return false;
    }
    return (cert->caps & ~(uint32_t)DP_CAP_ALL) == 0 && cert->not_before_ms < cert->not_after_ms;
}

dp_status dp_cert_decode(dp_view bytes, dp_cert *cert)
{
    dp_cert read;
    dp_reader reader = dp_reader_of(bytes);

    const uint8_t version = dp_read_u8(&reader);
    if (!reader.failed && version != CERT_VERSION) {
        return DP_VERSION;
    }
    read.kind = (dp_cert_kind)dp_read_u8(&reader);
    read.uses = dp_read_u16(&reader);
    read.caps = dp_read_u32(&reader);
    dp_read_bytes(&reader, read.run.bytes, sizeof read.run.bytes);
    dp_read_bytes(&reader, read.subject_ed, sizeof read.subject_ed);
    dp_read_bytes(&reader, read.subject_x, sizeof read.subject_x);
    dp_read_bytes(&reader, read.serial, sizeof read.serial);
    read.not_before_ms = dp_read_u64(&reader);
    read.not_after_ms = dp_read_u64(&reader);
    dp_read_bytes(&reader, read.issuer_ed, sizeof read.issuer_ed);
    dp_read_bytes(&reader, read.signature, sizeof read.signature);
    DP_TRY(dp_reader_finish(&reader));
    if (!is_well_formed(&read)) {
        return DP_BADMSG;
    }
    *cert = read;
    return DP_OK;
}

void dp_cert_sign(dp_cert *cert, const dp_sign_key *issuer)
{
    uint8_t bytes[DP_CERT_BYTES];

    dp_assert(is_well_formed(cert));
    memcpy(cert->issuer_ed, issuer->public_key, sizeof cert->issuer_ed);
    memset(cert->signature, 0, sizeof cert->signature);
    dp_cert_encode(cert, bytes);
    dp_sign(issuer, cert_domain, dp_view_of(bytes, DP_CERT_SIGNED_BYTES), cert->signature);
}

dp_invite_id dp_invite_id_of(const uint8_t invite_public_key[DP_PUBLIC_KEY_BYTES])
{
    dp_invite_id id;

    crypto_generichash(id.bytes, sizeof id.bytes, invite_public_key, DP_PUBLIC_KEY_BYTES, NULL, 0);
    return id;
}

/* A decoded chain, the subject's certificate first. */
struct chain {
    dp_cert certs[DP_CHAIN_CERTS_MAX];
    size_t n_certs;
};

static dp_status decode_chain(dp_view bytes, dp_cert_kind first, size_t n_certs_max,
                              struct chain *chain, dp_why *why)
{
    if (bytes.size == 0 || bytes.size % DP_CERT_BYTES != 0 ||
        bytes.size / DP_CERT_BYTES > n_certs_max) {
        return dp_why_set(why, DP_BADMSG,
                          "A credential of %zu bytes is not 1 to %zu certificates of %d bytes.",
                          bytes.size, n_certs_max, DP_CERT_BYTES);
    }
    chain->n_certs = bytes.size / DP_CERT_BYTES;
    for (size_t i = 0; i < chain->n_certs; i++) {
        const dp_status status = dp_cert_decode(
            dp_view_of(bytes.data + i * DP_CERT_BYTES, DP_CERT_BYTES), &chain->certs[i]);
        if (status != DP_OK) {
            return dp_why_set(why, status, "Certificate %zu of the credential: %s.", i + 1,
                              dp_status_text(status));
        }
        const bool same_as_first = i % 2 == 0;
        if ((chain->certs[i].kind == first) != same_as_first) {
            return dp_why_set(why, DP_BADMSG,
                              "Certificate %zu of the credential is of the wrong kind.", i + 1);
        }
    }
    return DP_OK;
}

/* Checks each certificate's run and issuer: everything that needs no signature. */
static dp_status check_links(const struct chain *chain, const dp_run_id *run, const uint8_t *root,
                             const dp_peer *node, dp_why *why)
{
    for (size_t i = 0; i < chain->n_certs; i++) {
        const dp_cert *cert = &chain->certs[i];
        const uint8_t *issuer = i + 1 < chain->n_certs ? chain->certs[i + 1].subject_ed : root;
        if (!dp_hash_equal(&cert->run, run)) {
            return dp_why_set(why, DP_DENIED,
                              "The credential is for another run; ask for a token of this one.");
        }
        if (memcmp(cert->issuer_ed, issuer, DP_PUBLIC_KEY_BYTES) != 0) {
            return dp_why_set(why, DP_DENIED, "Certificate %zu was not issued by %s.", i + 1,
                              i + 1 < chain->n_certs ? "the next in its chain"
                                                     : "the root key of this run");
        }
    }
    if (node != NULL && memcmp(chain->certs[0].subject_ed, node->bytes, sizeof node->bytes) != 0) {
        return dp_why_set(why, DP_DENIED,
                          "The credential belongs to another node: identity.key was deleted or "
                          "replaced since this directory joined its run. Put the old file back, or "
                          "join with an invite in another directory.");
    }
    return DP_OK;
}

static dp_status check_signatures(dp_view bytes, const struct chain *chain, dp_why *why)
{
    for (size_t i = 0; i < chain->n_certs; i++) {
        const dp_view body = dp_view_of(bytes.data + i * DP_CERT_BYTES, DP_CERT_SIGNED_BYTES);
        if (!dp_verify(chain->certs[i].issuer_ed, cert_domain, body, chain->certs[i].signature)) {
            return dp_why_set(why, DP_BADSIG, "The signature of certificate %zu does not verify.",
                              i + 1);
        }
    }
    return DP_OK;
}

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* May this issuer grant that? parent is NULL under the root, which may grant anything. */
static dp_status check_grant(const dp_cert *cert, const dp_cert *parent, dp_why *why)
{
    if (cert->kind == DP_CERT_NODE &&
        cert->not_after_ms - cert->not_before_ms > DP_CERT_NODE_MS_MAX) {
        return dp_why_set(why, DP_DENIED, "A membership may last at most 400 days.");
    }
    if (parent == NULL) {
        return DP_OK;
    }
    if ((cert->caps & ~parent->caps) != 0) {
        return dp_why_set(why, DP_DENIED,
                          "A certificate grants capabilities (bits %#x) that its issuer lacks.",
                          (unsigned)(cert->caps & ~parent->caps));
    }
    if (cert->kind == DP_CERT_NODE) {
        if (cert->not_before_ms < parent->not_before_ms ||
            cert->not_before_ms > parent->not_after_ms) {
            return dp_why_set(why, DP_DENIED,
                              "The membership begins before or after the time of its invite.");
        }
        return DP_OK;
    }
    if ((parent->caps & DP_CAP_INVITE) == 0) {
        return dp_why_set(why, DP_DENIED, "The invite was issued by a node that may not invite.");
    }
    if (cert->not_after_ms > parent->not_after_ms) {
        return dp_why_set(why, DP_DENIED,
                          "The invite outlives the membership of the node that issued it.");
    }
    return DP_OK;
}

static dp_status check_grants(const struct chain *chain, dp_why *why)
{
    for (size_t i = 0; i < chain->n_certs; i++) {
        const dp_cert *parent = i + 1 < chain->n_certs ? &chain->certs[i + 1] : NULL;
        DP_TRY(check_grant(&chain->certs[i], parent, why));
    }
    return DP_OK;
}

static dp_status window_at(uint64_t from_ms, uint64_t until_ms, uint64_t now_ms)
{
    if (add_saturating(now_ms, DP_CERT_SKEW_MS) < from_ms) {
        return DP_AGAIN;
    }
    return now_ms > until_ms ? DP_EXPIRED : DP_OK;
}

dp_status dp_credential_member_at(const dp_credential *credential, uint64_t now_ms)
{
    return window_at(credential->member_from_ms, credential->member_until_ms, now_ms);
}

dp_status dp_credential_join_at(const dp_credential *credential, uint64_t now_ms)
{
    return window_at(credential->join_from_ms, credential->join_until_ms, now_ms);
}

static dp_status why_window(dp_why *why, dp_status status, const char *what)
{
    if (status == DP_OK) {
        return DP_OK;
    }
    return dp_why_set(why, status,
                      status == DP_AGAIN ? "The %s is not valid yet; check this machine's clock."
                                         : "The %s has expired; ask for a new token.",
                      what);
}

static dp_status check_chain(dp_view bytes, const struct chain *chain, const dp_run_id *run,
                             const uint8_t *root, const dp_peer *node, dp_why *why)
{
    DP_TRY(check_links(chain, run, root, node, why));
    DP_TRY(check_signatures(bytes, chain, why));
    return check_grants(chain, why);
}

/* Summarise a chain; invite is the certificate that the subject joined by, or NULL. */
static dp_credential summary_of(const struct chain *chain, const dp_cert *invite)
{
    const dp_cert *subject = &chain->certs[0];
    dp_credential summary = {
        .caps = subject->caps,
        .n_certs = (uint8_t)chain->n_certs,
        .member_from_ms = subject->not_before_ms,
        .member_until_ms = subject->not_after_ms,
        .join_until_ms = UINT64_MAX,
    };

    memcpy(summary.node.bytes, subject->subject_ed, sizeof summary.node.bytes);
    memcpy(summary.x_public, subject->subject_x, sizeof summary.x_public);
    if (invite != NULL) {
        summary.uses = invite->uses;
        summary.invite = dp_invite_id_of(invite->subject_ed);
        summary.join_from_ms = invite->not_before_ms;
        summary.join_until_ms = invite->not_after_ms;
    }
    for (size_t i = 1; i < chain->n_certs; i++) {
        const dp_cert *cert = &chain->certs[i];
        if (cert->kind == DP_CERT_NODE) {
            dp_assert(summary.n_above < DP_CERT_ABOVE_MAX);
            memcpy(summary.above[summary.n_above++].bytes, cert->subject_ed, DP_PUBLIC_KEY_BYTES);
        } else if (cert != invite) {
            summary.invite_above = dp_invite_id_of(cert->subject_ed);
        }
    }
    return summary;
}

dp_status dp_credential_check(dp_view bytes, const dp_run_id *run,
                              const uint8_t root[DP_PUBLIC_KEY_BYTES], const dp_peer *node,
                              uint64_t now_ms, dp_credential *out, dp_why *why)
{
    struct chain chain = {.n_certs = 0};

    DP_TRY(decode_chain(bytes, DP_CERT_NODE, DP_CHAIN_CERTS_MAX, &chain, why));
    DP_TRY(check_chain(bytes, &chain, run, root, node, why));
    const dp_credential found = summary_of(&chain, chain.n_certs > 1 ? &chain.certs[1] : NULL);
    if (now_ms != 0) {
        DP_TRY(why_window(why, dp_credential_member_at(&found, now_ms), "membership certificate"));
        DP_TRY(why_window(why, dp_credential_join_at(&found, now_ms), "invite"));
    }
    *out = found;
    return DP_OK;
}

dp_status dp_invite_chain_check(dp_view bytes, const dp_run_id *run,
                                const uint8_t root[DP_PUBLIC_KEY_BYTES], uint64_t now_ms,
                                dp_credential *out, dp_why *why)
{
    struct chain chain = {.n_certs = 0};

    DP_TRY(decode_chain(bytes, DP_CERT_INVITE, DP_INVITE_CHAIN_CERTS_MAX, &chain, why));
    DP_TRY(check_chain(bytes, &chain, run, root, NULL, why));
    const dp_credential found = summary_of(&chain, &chain.certs[0]);
    if (now_ms != 0) {
        DP_TRY(why_window(why, dp_credential_join_at(&found, now_ms), "invite"));
    }
    *out = found;
    return DP_OK;
}

void dp_founder_credential(const dp_sign_key *root, const dp_run_id *run,
                           const dp_identity *identity, const uint8_t serial[DP_CERT_SERIAL_BYTES],
                           uint64_t now_ms, uint8_t credential[DP_CERT_BYTES])
{
    dp_cert cert = {
        .kind = DP_CERT_NODE,
        .caps = DP_CAP_ALL,
        .run = *run,
        .not_before_ms = now_ms,
        .not_after_ms = add_saturating(now_ms, DP_CERT_NODE_MS_MAX),
    };

    dp_assert(now_ms < UINT64_MAX);
    memcpy(cert.subject_ed, identity->ed.public_key, sizeof cert.subject_ed);
    memcpy(cert.subject_x, identity->x_public, sizeof cert.subject_x);
    memcpy(cert.serial, serial, sizeof cert.serial);
    dp_cert_sign(&cert, root);
    dp_cert_encode(&cert, credential);
}
