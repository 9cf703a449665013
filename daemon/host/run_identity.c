#include "daemon/host/run_identity.h"

#include <string.h>

#include "daemon/host/issued.h"
#include "store/dir.h"
#include "store/object.h"
#include "store/vote.h"

/* Row "run" in the store, little-endian: u16 version 1 | 32 run | 32 root | 16 join secret | u16
 * epoch | u16 size, credential | u16 size, manifest | u8 n, addresses (gossip/core/address.h) | u8
 * size, run name | u8 size, node name */
enum {
    FACTS_VERSION = 1,
    FACTS_BYTES_MAX = 16 * 1024,
    FOUNDING_BYTES = DP_HASH_BYTES + DP_PUBLIC_KEY_BYTES
};

static const char key[] = "run";
static const char lost_key[] = "run.lost";
static const char left_key[] = "run.left";
static const char founding_key[] = "run.founding"; /* 32 run | 32 root key */
static const char copy_name[] = "run.member";      /* the same bytes */

static void write_text(dp_writer *writer, const char *text)
{
    const dp_view view = dp_view_text(text);
    dp_write_u8(writer, (uint8_t)view.size);
    dp_write_view(writer, view);
}

static void read_text(dp_reader *reader, char *text, size_t capacity)
{
    const size_t size = dp_read_u8(reader);
    const dp_view view = dp_read_view(reader, size);
    if (view.size >= capacity) {
        reader->failed = true;
        return;
    }
    memcpy(text, view.data == NULL ? (const uint8_t *)"" : view.data, view.size);
    text[view.size] = '\0';
}

static size_t read_sized(dp_reader *reader, uint8_t *out, size_t capacity)
{
    const size_t size = dp_read_u16(reader);
    const dp_view view = dp_read_view(reader, size);
    if (view.size != size || size > capacity) {
        reader->failed = true;
        return 0;
    }
    if (size > 0) {
        memcpy(out, view.data, size);
    }
    return size;
}

static dp_status write_facts(const dp_run_identity *facts, uint8_t bytes[FACTS_BYTES_MAX],
                             dp_view *view)
{
    dp_writer writer = dp_writer_of(bytes, FACTS_BYTES_MAX);
    dp_write_u16(&writer, FACTS_VERSION);
    dp_write_bytes(&writer, facts->run.bytes, sizeof facts->run.bytes);
    dp_write_bytes(&writer, facts->root, sizeof facts->root);
    dp_write_bytes(&writer, facts->join_secret, sizeof facts->join_secret);
    dp_write_u16(&writer, facts->psk_epoch);
    dp_write_u16(&writer, (uint16_t)facts->credential_bytes);
    dp_write_bytes(&writer, facts->credential, facts->credential_bytes);
    dp_write_u16(&writer, (uint16_t)facts->manifest_bytes);
    dp_write_bytes(&writer, facts->manifest, facts->manifest_bytes);
    dp_write_u8(&writer, facts->n_addresses);
    for (uint8_t i = 0; i < facts->n_addresses; i++) {
        dp_address_write(&writer, &facts->addresses[i]);
    }
    write_text(&writer, facts->name);
    write_text(&writer, facts->node_name);
    return dp_writer_finish(&writer, view);
}

/* ---- The mark of a run that was left and whose data are to be deleted: row "run.left", its 32
 * bytes. */

/* DP_NOTFOUND: no run is marked. */
static dp_status marked(dp_store *store, dp_run_id *run)
{
    dp_buf buf;
    dp_buf_init(&buf, sizeof run->bytes);
    dp_status status = dp_store_get(store, left_key, &buf);
    if (status == DP_OK && buf.size != sizeof run->bytes) {
        status = DP_CORRUPT;
    }
    if (status == DP_OK) {
        memcpy(run->bytes, buf.data, sizeof run->bytes);
    }
    dp_buf_close(&buf);
    return status;
}

/* A run that is entered again keeps its data. A mark that cannot be read names none. */
static dp_status unmark(dp_store *store, const dp_run_id *run)
{
    dp_run_id left;
    return marked(store, &left) == DP_OK && dp_hash_equal(&left, run)
               ? dp_store_delete(store, left_key)
               : DP_OK;
}

struct save {
    const dp_run_identity *facts;
    dp_view bytes;
};

static dp_status save_body(dp_store *store, void *context)
{
    const struct save *const save = context;
    DP_TRY(dp_store_delete(store, lost_key));
    DP_TRY(dp_store_delete(store, founding_key));
    DP_TRY(unmark(store, &save->facts->run));
    return dp_store_put(store, key, save->bytes);
}

dp_status dp_run_identity_save(dp_store *store, const dp_run_identity *facts)
{
    uint8_t bytes[FACTS_BYTES_MAX];
    struct save save = {.facts = facts};
    DP_TRY(write_facts(facts, bytes, &save.bytes));
    return dp_store_atomically(store, save_body, &save);
}

static dp_status read_facts(dp_view bytes, dp_run_identity *facts)
{
    dp_reader reader = dp_reader_of(bytes);
    if (dp_read_u16(&reader) != FACTS_VERSION) {
        return reader.failed ? DP_CORRUPT : DP_VERSION;
    }
    dp_read_bytes(&reader, facts->run.bytes, sizeof facts->run.bytes);
    dp_read_bytes(&reader, facts->root, sizeof facts->root);
    dp_read_bytes(&reader, facts->join_secret, sizeof facts->join_secret);
    facts->psk_epoch = dp_read_u16(&reader);
    facts->credential_bytes = read_sized(&reader, facts->credential, sizeof facts->credential);
    facts->manifest_bytes = read_sized(&reader, facts->manifest, sizeof facts->manifest);
    facts->n_addresses = dp_read_u8(&reader);
    if (facts->n_addresses > DP_TOKEN_ADDRESSES_MAX) {
        return DP_CORRUPT;
    }
    for (uint8_t i = 0; i < facts->n_addresses; i++) {
        DP_TRY(dp_address_read(&reader, &facts->addresses[i]));
    }
    read_text(&reader, facts->name, sizeof facts->name);
    read_text(&reader, facts->node_name, sizeof facts->node_name);
    return dp_reader_finish(&reader);
}

/* Row "renewal": u16 version 1 | 32 run | 136 bytes of gossip/identity/renewal.h. */
enum { RENEWAL_VERSION = 1, RENEWAL_BYTES = 2 + 32 + DP_RENEWAL_BYTES };
static const char renewal_key[] = "renewal";

dp_status dp_run_identity_renewed(dp_store *store, const dp_run_id *run, const dp_renewal *renewal)
{
    uint8_t bytes[RENEWAL_BYTES];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);
    dp_view view;
    dp_write_u16(&writer, RENEWAL_VERSION);
    dp_write_bytes(&writer, run->bytes, sizeof run->bytes);
    dp_renewal_write(&writer, renewal);
    DP_TRY(dp_writer_finish(&writer, &view));
    return dp_store_put(store, renewal_key, view);
}

/* Without a readable row the node asks for another renewal. */
static void load_renewal(dp_store *store, dp_run_identity *facts)
{
    dp_buf buf;
    dp_buf_init(&buf, RENEWAL_BYTES);
    if (dp_store_get(store, renewal_key, &buf) == DP_OK) {
        dp_reader reader = dp_reader_of(dp_buf_view(&buf));
        dp_renewal renewal;
        dp_run_id run;
        const uint16_t version = dp_read_u16(&reader);
        dp_read_bytes(&reader, run.bytes, sizeof run.bytes);
        dp_renewal_read(&reader, &renewal);
        if (dp_reader_finish(&reader) == DP_OK && version == RENEWAL_VERSION &&
            dp_hash_equal(&run, &facts->run)) {
            facts->renewal = renewal;
        }
    }
    dp_buf_close(&buf);
}

/* Row "secrets": u16 version 1 | 32 run | u8 n, 1 or 2 | n times {u16 epoch | 16 join secret},
 * newest first. */
enum { SECRETS_VERSION = 1, SECRETS_BYTES = 2 + 32 + 1 + DP_SECRETS_MAX * (2 + 16) };
static const char secrets_key[] = "secrets";

dp_status dp_run_identity_rotated(dp_store *store, const char *dir, const dp_run_identity *facts)
{
    uint8_t bytes[SECRETS_BYTES];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);
    dp_view view;
    dp_write_u16(&writer, SECRETS_VERSION);
    dp_write_bytes(&writer, facts->run.bytes, sizeof facts->run.bytes);
    dp_write_u8(&writer, (uint8_t)facts->secrets.n);
    for (uint32_t i = 0; i < facts->secrets.n; i++) {
        dp_write_u16(&writer, facts->secrets.items[i].epoch);
        dp_write_bytes(&writer, facts->secrets.items[i].bytes, DP_JOIN_SECRET_BYTES);
    }
    DP_TRY(dp_writer_finish(&writer, &view));
    DP_TRY(dp_store_put(store, secrets_key, view));
    DP_TRY(dp_run_identity_save(store, facts));
    return dp_run_identity_copy_save(dir, facts);
}

static bool read_secrets(dp_view bytes, const dp_run_id *run, dp_secrets *secrets)
{
    dp_reader reader = dp_reader_of(bytes);
    dp_run_id of;
    const uint16_t version = dp_read_u16(&reader);
    dp_read_bytes(&reader, of.bytes, sizeof of.bytes);
    const uint32_t n = dp_read_u8(&reader);
    for (uint32_t i = 0; i < n && i < DP_SECRETS_MAX; i++) {
        dp_secret secret = {.epoch = dp_read_u16(&reader)};
        dp_read_bytes(&reader, secret.bytes, sizeof secret.bytes);
        DP_IGNORE(!dp_secrets_add(secrets, &secret)); /* A file may already exist. */
    }
    return dp_reader_finish(&reader) == DP_OK && version == SECRETS_VERSION &&
           dp_hash_equal(&of, run);
}

/* Loads the secret of the token, and later ones. Without a readable row the node asks for the
 * secrets that it lacks. */
static void load_secrets(dp_store *store, dp_run_identity *facts)
{
    dp_buf buf;
    dp_run_identity_begin_secrets(facts);
    dp_secrets secrets = facts->secrets;
    dp_buf_init(&buf, SECRETS_BYTES);
    if (dp_store_get(store, secrets_key, &buf) == DP_OK &&
        read_secrets(dp_buf_view(&buf), &facts->run, &secrets)) {
        facts->secrets = secrets;
    }
    dp_buf_close(&buf);
}

void dp_run_identity_begin_secrets(dp_run_identity *facts)
{
    dp_secret secret = {.epoch = facts->psk_epoch};
    memcpy(secret.bytes, facts->join_secret, sizeof secret.bytes);
    facts->secrets = (dp_secrets){.n = 1, .items = {secret}};
}

dp_status dp_run_identity_load(dp_store *store, dp_run_identity *facts)
{
    dp_buf buf;
    dp_buf_init(&buf, FACTS_BYTES_MAX);
    *facts = (dp_run_identity){0};
    dp_status status = dp_store_get(store, key, &buf);
    if (status == DP_OK) {
        status = read_facts(dp_buf_view(&buf), facts);
        status = status == DP_BADMSG ? DP_CORRUPT : status;
    }
    dp_buf_close(&buf);
    if (status == DP_OK) {
        load_renewal(store, facts);
        load_secrets(store, facts);
    }
    return status;
}

dp_status dp_run_identity_copy_save(const char *dir, const dp_run_identity *facts)
{
    uint8_t bytes[FACTS_BYTES_MAX];
    dp_view view;
    DP_TRY(write_facts(facts, bytes, &view));
    return dp_dir_write_secret(dir, copy_name, view);
}

dp_status dp_run_identity_copy_load(const char *dir, dp_run_identity *facts, dp_why *why)
{
    dp_buf buf;
    dp_buf_init(&buf, FACTS_BYTES_MAX);
    *facts = (dp_run_identity){0};
    dp_status status = dp_dir_read_secret(dir, copy_name, &buf, why);
    if (status == DP_OK) {
        status = read_facts(dp_buf_view(&buf), facts);
        status = status == DP_BADMSG || status == DP_VERSION ? DP_CORRUPT : status;
    }
    dp_buf_close(&buf);
    return status;
}

dp_status dp_run_identity_copy_forget(const char *dir)
{
    return dp_dir_delete_secret(dir, copy_name);
}

dp_status dp_run_identity_lost_save(dp_store *store)
{
    static const uint8_t yes = 1;
    return dp_store_put(store, lost_key, dp_view_of(&yes, sizeof yes));
}

bool dp_run_identity_lost(dp_store *store)
{
    dp_buf buf;
    dp_buf_init(&buf, 16);
    const dp_status status = dp_store_get(store, lost_key, &buf);
    dp_buf_close(&buf);
    return status == DP_OK;
}

dp_status dp_run_identity_forget(dp_store *store)
{
    DP_TRY(dp_issued_forget(store));
    DP_TRY(dp_store_delete(store, renewal_key));
    DP_TRY(dp_store_delete(store, secrets_key));
    return dp_store_delete(store, key);
}

static dp_status leave_body(dp_store *store, void *context)
{
    const dp_run_id *const run = context;
    dp_run_id before;
    if (marked(store, &before) == DP_OK && !dp_hash_equal(&before, run)) {
        DP_TRY(dp_store_drop_run(store, &before)); /* There is one mark. */
    }
    DP_TRY(dp_run_identity_forget(store));
    DP_TRY(dp_vote_destroy_key(store, run));
    return dp_store_put(store, left_key, dp_view_of(run->bytes, sizeof run->bytes));
}

dp_status dp_run_identity_leave(dp_store *store, const dp_run_id *run)
{
    dp_run_id copy = *run;
    return dp_store_atomically(store, leave_body, &copy);
}

static dp_status drop_body(dp_store *store, void *context)
{
    DP_TRY(dp_store_drop_run(store, (const dp_run_id *)context));
    return dp_store_delete(store, left_key);
}

dp_status dp_run_identity_drop(dp_store *store)
{
    dp_run_id run;
    const dp_status status = marked(store, &run);
    if (status != DP_OK) {
        return status == DP_NOTFOUND ? DP_OK : status;
    }
    DP_TRY(dp_store_atomically(store, drop_body, &run));
    return dp_object_collect(store, NULL);
}

dp_status dp_run_identity_founding(dp_store *store, const dp_run_id *run,
                                   const uint8_t root[DP_PUBLIC_KEY_BYTES])
{
    uint8_t bytes[FOUNDING_BYTES];
    memcpy(bytes, run->bytes, sizeof run->bytes);
    memcpy(bytes + sizeof run->bytes, root, DP_PUBLIC_KEY_BYTES);
    return dp_store_put(store, founding_key, dp_view_of(bytes, sizeof bytes));
}

dp_status dp_run_identity_unfinished(dp_store *store, dp_run_id *run,
                                     uint8_t root[DP_PUBLIC_KEY_BYTES])
{
    dp_buf buf;
    dp_buf_init(&buf, FOUNDING_BYTES);
    dp_status status = dp_store_get(store, founding_key, &buf);
    if (status == DP_OK && buf.size != FOUNDING_BYTES) {
        status = DP_CORRUPT;
    }
    if (status == DP_OK) {
        memcpy(run->bytes, buf.data, sizeof run->bytes);
        memcpy(root, buf.data + sizeof run->bytes, DP_PUBLIC_KEY_BYTES);
    }
    dp_buf_close(&buf);
    return status;
}

static dp_status abandon_body(dp_store *store, void *context)
{
    static const dp_run_id none;
    const dp_run_id *const run = context;
    if (!dp_hash_is_zero(run)) {
        DP_TRY(dp_vote_destroy_key(store, run));
        DP_TRY(dp_store_drop_run(store, run));
    }
    DP_TRY(dp_object_prune(store, &none, DP_PIN_DATA, INT64_MAX));
    return dp_store_delete(store, founding_key);
}

dp_status dp_run_identity_abandon(dp_store *store, const dp_run_id *run)
{
    dp_run_id copy = *run;
    DP_TRY(dp_store_atomically(store, abandon_body, &copy));
    return dp_object_collect(store, NULL);
}
