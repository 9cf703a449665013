#include "cli/demo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest.h"

const char dp_demo_kjv[] = "# The built-in demo, as `dpnode run create --demo kjv` takes it: a "
                           "small GPT on the King James Bible.\n"
                           "# Text from Debian's bible-kjv:  bible -f gen1:1-rev22:21 > kjv.txt\n"
                           "name: kjv\n"
                           "model:\n"
                           "  layers: 4\n"
                           "  width: 128\n"
                           "  heads: 4\n"
                           "  context: 128\n"
                           "  vocab: 1024\n"
                           "train:\n"
                           "  batch: 8\n"
                           "  lr: 3e-3\n"
                           "  total_tokens: 2500000\n"
                           "round:\n"
                           "  time: 3 # seconds of local work\n"
                           "  codec: sparse\n"
                           "gossip:\n"
                           "  time: 3\n"
                           "vote:\n"
                           "  uptime: 0 # voters at once: a demo has no time to lose\n";

enum { TEXT_BYTES = 4404412, READ_BYTES = 64 * 1024 };

/* BLAKE2b-256 of "dpnode/demo/kjv" | 0 | the text whose SHA-256 is
 * cd45f0c9cedab8e4439bd6486c8952c77cc8b0ecc5d1f6ae3513f2039f47229d. */
static const char text_domain[] = "dpnode/demo/kjv";
static const char text_hash[] = "c4a3cbfdb18d471e5f435c8b9ef8883ff18382bb18a900d2a45988b9c7bd1b29";

static int fail(dp_control_error *error, int exit, const char *fix, const char *what,
                const char *why)
{
    dp_error_set(error, exit, "E0305", fix, what, why);
    return exit;
}

/* Copies the program's output to out; *good: it is the known text. */
static bool copy_text(FILE *from, FILE *out, bool *good)
{
    static uint8_t room[READ_BYTES];
    dp_digest digest;
    size_t total = 0;
    dp_digest_init(&digest, text_domain);
    for (;;) {
        const size_t size = fread(room, 1, sizeof room, from);
        if (size == 0) {
            break;
        }
        total += size;
        if (total > 2 * (size_t)TEXT_BYTES || fwrite(room, 1, size, out) != size) {
            return false;
        }
        dp_digest_add(&digest, dp_view_of(room, size));
    }
    char text[2 * DP_HASH_BYTES + 1];
    const dp_hash hash = dp_digest_end(&digest);
    dp_hex(dp_view_of(hash.bytes, sizeof hash.bytes), text);
    *good = strcmp(text, text_hash) == 0;
    return true;
}

int dp_demo_text(char path[DP_CLI_PATH_MAX], dp_control_error *error)
{
    static const char install[] = "apt install bible-kjv   # or give a text with --text FILE";
    const char *folder = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe): one thread */
    snprintf(path, DP_CLI_PATH_MAX, "%.400s/dpnode-kjv-XXXXXX",
             folder != NULL && folder[0] == '/' ? folder : "/tmp");
    const int fd = mkstemp(path);
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (out == NULL) {
        return fail(error, DP_EXIT_CANTCREATE, "set TMPDIR to a folder that can be written",
                    "no temporary file can be made", path);
    }
    DP_IGNORE(fchmod(fd, 0644) !=
              0); /* The daemon may run as another user, and the text is not secret. */
    FILE *from = popen("bible -f gen1:1-rev22:21 2>/dev/null",
                       "r"); /* NOLINT(cert-env33-c): a constant command */
    bool good = false;
    bool copied = from != NULL && copy_text(from, out, &good);
    const bool ended = from != NULL && pclose(from) == 0;
    copied = fclose(out) == 0 && copied;
    if (copied && ended && good) {
        return 0;
    }
    unlink(path);
    if (!copied) {
        return fail(error, DP_EXIT_IO, "free some disk space", "the text could not be written",
                    path);
    }
    if (!ended) {
        return fail(error, DP_EXIT_NOINPUT, install, "the demo's text is missing",
                    "the program bible printed nothing");
    }
    return fail(error, DP_EXIT_DATA, "give a text with --text FILE",
                "the demo's text has the wrong hash", "the installed bible-kjv is another version");
}
