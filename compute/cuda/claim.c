#include "compute/cuda/claim.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { HEX_MAX = 2 * sizeof((dp_cuda_properties *)NULL)->uuid + 1 };

static void hex_of(const uint8_t *bytes, size_t size, char hex[HEX_MAX])
{
    for (size_t i = 0; i < size; i++) {
        snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
    }
}

/* The bus too: old drivers give no uuid. */
static socklen_t name_of(const dp_cuda_properties *card, struct sockaddr_un *name)
{
    char uuid[HEX_MAX];
    *name = (struct sockaddr_un){.sun_family = AF_UNIX};
    hex_of(card->uuid, sizeof card->uuid, uuid);
    /* Behind a first byte of 0 the name is no path. */
    const int size = snprintf(name->sun_path + 1, sizeof name->sun_path - 1, "dpnode-card-%s-%.*s",
                              uuid, (int)sizeof card->bus, card->bus);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size);
}

dp_status dp_cuda_claim(const dp_cuda_properties *card, int *fd, dp_why *why)
{
    struct sockaddr_un name;
    const socklen_t size = name_of(card, &name);
    const int made = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    *fd = -1;
    if (made < 0) {
        return DP_OK;
    }
    if (bind(made, (const struct sockaddr *)&name, size) == 0) {
        *fd = made;
        return DP_OK;
    }
    const bool taken = errno == EADDRINUSE;
    close(made);
    return taken ? dp_why_set(why, DP_BUSY,
                              "another trainer of dpnode on this machine has %s (%s); stop it, or "
                              "take another card",
                              card->name, card->bus)
                 : DP_OK;
}

bool dp_cuda_is_claimed(const dp_cuda_properties *card)
{
    struct sockaddr_un name;
    const socklen_t size = name_of(card, &name);
    const int asking = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool claimed = asking >= 0 && connect(asking, (const struct sockaddr *)&name, size) == 0;
    if (asking >= 0) {
        close(asking);
    }
    return claimed;
}
