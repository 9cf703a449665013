/* Fuzz target of the token reader: any text gives a token or a status, and what was read is written
 * back the same. */
#include <string.h>

#include "base/assert.h"
#include "gossip/identity/invite.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dp_invite invite;
    dp_invite again;
    dp_why why;
    size_t position = 0;
    char text[DP_TOKEN_TEXT_MAX + 1];

    if (dp_invite_parse(dp_view_of(data, size), &invite, &position, &why) != DP_OK) {
        dp_assert(position <= size);
        dp_assert(memchr(why.text, '\0', sizeof why.text) != NULL);
        return 0;
    }
    dp_assert(dp_invite_write(&invite, text) == DP_OK);
    dp_assert(dp_invite_parse(dp_view_text(text), &again, NULL, NULL) == DP_OK);
    dp_assert(memcmp(&invite, &again, sizeof invite) == 0);
    return 0;
}
