/* The keys of a daemon in its folder: its identity key, and the root key of a run that it
 * created. */
#include <sodium.h>

#include "base/bytes.h"
#include "daemon/host/daemon.h"
#include "store/dir.h"

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

/* An existing key that cannot be used is an error: otherwise the founder would notice it only when
 * its run needs the key. */
dp_status dp_daemon_load_root(dp_daemon *daemon, dp_why *why)
{
    const char *dir = daemon->config->dir;
    dp_buf file;
    dp_buf_init(&file, DP_ROOT_SEED_BYTES);
    dp_status status = dp_dir_read_secret(dir, "root.key", &file, why);
    if (status == DP_OK && file.size != DP_ROOT_SEED_BYTES) {
        status = DP_CORRUPT;
    }
    if (status == DP_OK) {
        use_root(daemon, file.data);
    } else if (status == DP_CORRUPT || status == DP_TOOBIG) {
        dp_why_set(why, status, "%s/root.key is not a root key: it has not %d bytes", dir,
                   DP_ROOT_SEED_BYTES);
    }
    if (file.data != NULL) {
        sodium_memzero(file.data, file.size);
    }
    dp_buf_close(&file);
    return status == DP_NOTFOUND ? DP_OK : status;
}

dp_status dp_daemon_keep_root(dp_daemon *daemon, const uint8_t seed[DP_ROOT_SEED_BYTES],
                              dp_why *why)
{
    const dp_status status =
        dp_dir_write_secret(daemon->config->dir, "root.key", dp_view_of(seed, DP_ROOT_SEED_BYTES));
    if (status != DP_OK) {
        return dp_why_set(why, status, "the root key could not be written: %s",
                          dp_status_text(status));
    }
    use_root(daemon, seed);
    return DP_OK;
}
