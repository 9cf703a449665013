#include "daemon/net/hello.h"

#include <string.h>

size_t dp_hello_write(const char *name, const dp_renewal *renewal, uint8_t *out, size_t capacity)
{
    dp_writer writer = dp_writer_of(out, capacity);
    const dp_view text = dp_view_text(name);

    dp_write_u8(&writer, DP_HELLO_VERSION);
    dp_write_u8(&writer, (uint8_t)text.size);
    dp_write_view(&writer, text);
    dp_write_u32(&writer, DP_RULES);
    dp_write_u8(&writer, renewal->until_ms != 0 ? 1 : 0);
    if (renewal->until_ms != 0) {
        dp_renewal_write(&writer, renewal);
    }
#if DP_HELLO_VERSION > 3
    dp_write_u64(&writer, 0x7365727574616566ULL); /* The features of the next version. */
#endif
    return writer.size;
}

bool dp_hello_read(dp_view bytes, dp_hello *hello)
{
    dp_reader reader = dp_reader_of(bytes);
    const uint8_t version = dp_read_u8(&reader);
    const dp_view text = dp_read_view(&reader, dp_read_u8(&reader));
    const uint32_t rules = version > 1 ? dp_read_u32(&reader) : 1;

    dp_renewal renewal = {.until_ms = 0};
    if (version > 2 && dp_read_u8(&reader) == 1) {
        dp_renewal_read(&reader, &renewal);
    }

    if (version == 0 || reader.failed) {
        return false;
    }
    dp_name_clean(text, hello->name);
    hello->rules = rules;
    hello->renewal = renewal;
    return true;
}
