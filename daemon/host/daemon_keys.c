/* The keys of a daemon in its folder: its identity key, and the root key of a run that it
 * created. */
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "daemon/host/daemon.h"
#include "store/dir.h"

static const char root_name[] = "root.key";

dp_status dp_daemon_load_identity(dp_daemon *daemon, dp_why *why)
{
    static const char name[] = "identity.key";
    const char *dir = daemon->config->dir;
    dp_buf file;
    dp_buf_init(&file, 4096);
    dp_status status = dp_dir_read_secret(dir, name, &file, why);
    if (status == DP_DENIED) {
        return status; /* why names the file and the fix. */
    }
    if (status == DP_OK) {
        status = dp_identity_decode(dp_buf_view(&file), &daemon->identity);
    } else if (status == DP_NOTFOUND) {
        uint8_t bytes[DP_IDENTITY_FILE_BYTES];
        dp_entropy seed;
        randombytes_buf(seed.bytes, sizeof seed.bytes);
        dp_identity_of_seed(&seed, &daemon->identity);
        dp_identity_encode(&daemon->identity, bytes);
        status = dp_dir_write_secret(dir, name, dp_view_of(bytes, sizeof bytes));
        sodium_memzero(&seed, sizeof seed);
        sodium_memzero(bytes, sizeof bytes);
    }
    if (file.data != NULL) {
        sodium_memzero(file.data, file.size);
    }
    dp_buf_close(&file);
    return status == DP_OK
               ? DP_OK
               : dp_why_set(why, status, "%s/%s: %s", dir, name, dp_status_text(status));
}

static void use_root(dp_daemon *daemon, const uint8_t seed[DP_ROOT_SEED_BYTES])
{
    dp_sign_key_of_seed(seed, &daemon->root);
    daemon->has_root = true;
}

static dp_status read_root(const char *dir, const char *name, uint8_t seed[DP_ROOT_SEED_BYTES],
                           dp_why *why)
{
    dp_buf file;
    dp_buf_init(&file, DP_ROOT_SEED_BYTES);
    dp_status status = dp_dir_read_secret(dir, name, &file, why);
    if (status == DP_TOOBIG || (status == DP_OK && file.size != DP_ROOT_SEED_BYTES)) {
        status = DP_CORRUPT;
    }
    if (status == DP_OK) {
        memcpy(seed, file.data, DP_ROOT_SEED_BYTES);
    } else if (status == DP_CORRUPT) {
        dp_why_set(why, status, "%s/%s is not a root key: it has not %d bytes", dir, name,
                   DP_ROOT_SEED_BYTES);
    }
    if (file.data != NULL) {
        sodium_memzero(file.data, file.size);
    }
    dp_buf_close(&file);
    return status;
}

/* An existing key that cannot be used is an error: otherwise the founder would notice it only when
 * its run needs the key. */
dp_status dp_daemon_load_root(dp_daemon *daemon, dp_why *why)
{
    uint8_t seed[DP_ROOT_SEED_BYTES];
    const dp_status status = read_root(daemon->config->dir, root_name, seed, why);
    if (status == DP_OK) {
        use_root(daemon, seed);
    }
    sodium_memzero(seed, sizeof seed);
    return status == DP_NOTFOUND ? DP_OK : status;
}

static void name_of_root(const uint8_t seed[DP_ROOT_SEED_BYTES], char name[DP_ROOT_NAME_MAX])
{
    dp_sign_key key;
    dp_sign_key_of_seed(seed, &key);
    snprintf(name, DP_ROOT_NAME_MAX, "%s.%02x%02x%02x%02x", root_name, key.public_key[0],
             key.public_key[1], key.public_key[2], key.public_key[3]);
    sodium_memzero(&key, sizeof key);
}

/* Does name hold this key? */
static bool holds_root(const char *dir, const char *name, const uint8_t seed[DP_ROOT_SEED_BYTES])
{
    uint8_t other[DP_ROOT_SEED_BYTES];
    const bool same = read_root(dir, name, other, NULL) == DP_OK &&
                      sodium_memcmp(seed, other, DP_ROOT_SEED_BYTES) == 0;
    sodium_memzero(other, sizeof other);
    return same;
}

/* Renames the key that is there: its run cannot do without it. */
static dp_status move_root(const char *dir, char moved[DP_ROOT_NAME_MAX], dp_why *why)
{
    uint8_t seed[DP_ROOT_SEED_BYTES];
    char name[DP_ROOT_NAME_MAX];
    dp_status status = read_root(dir, root_name, seed, why);
    if (status == DP_OK) {
        name_of_root(seed, name);
        status = dp_dir_rename_secret(dir, root_name, name);
        if (status == DP_EXISTS && holds_root(dir, name, seed)) {
            status = DP_OK;
        }
        if (status == DP_OK) {
            memcpy(moved, name, sizeof name);
        } else {
            dp_why_set(why, status, "%s/%s is of another run, and cannot be renamed to %s: %s", dir,
                       root_name, name, dp_status_text(status));
        }
    }
    sodium_memzero(seed, sizeof seed);
    return status == DP_NOTFOUND ? DP_OK : status;
}

dp_status dp_daemon_keep_root(dp_daemon *daemon, const uint8_t seed[DP_ROOT_SEED_BYTES],
                              char moved[DP_ROOT_NAME_MAX], dp_why *why)
{
    const char *const dir = daemon->config->dir;
    moved[0] = '\0';
    DP_TRY(move_root(dir, moved, why));
    const dp_status status =
        dp_dir_write_secret(dir, root_name, dp_view_of(seed, DP_ROOT_SEED_BYTES));
    if (status != DP_OK) {
        if (moved[0] != '\0') {
            DP_IGNORE(dp_dir_rename_secret(dir, moved, root_name)); /* It has its other name. */
            moved[0] = '\0';
        }
        return dp_why_set(why, status, "the root key could not be written: %s",
                          dp_status_text(status));
    }
    use_root(daemon, seed);
    return DP_OK;
}

dp_status dp_daemon_drop_root(dp_daemon *daemon, const char *moved)
{
    daemon->has_root = false;
    sodium_memzero(&daemon->root, sizeof daemon->root);
    DP_TRY(dp_dir_delete_secret(daemon->config->dir, root_name));
    if (moved[0] != '\0') {
        DP_TRY(dp_dir_rename_secret(daemon->config->dir, moved, root_name));
    }
    return dp_daemon_load_root(daemon, NULL);
}
