#include "cli/web/assets.h"

#include <string.h>

/* The bytes of a file between two symbols. CMakeLists.txt gives DP_WEB_FOLDER. */
#define FILE_BYTES(name, file)                                                                     \
    __asm__(".pushsection .rodata\n"                                                               \
            "dp_asset_" #name ":\n.incbin \"" DP_WEB_FOLDER "/" file "\"\n"                        \
            "dp_asset_" #name "_end:\n.byte 0\n.popsection\n");                                    \
    extern const uint8_t dp_asset_##name[] __attribute__((visibility("hidden")));                  \
    extern const uint8_t dp_asset_##name##_end[] __attribute__((visibility("hidden")))

FILE_BYTES(page, "page.html");
FILE_BYTES(script, "app.js");
FILE_BYTES(style, "app.css");

bool dp_asset_find(const char *path, dp_asset *asset)
{
    static const struct {
        const char *path;
        const char *type;
        const uint8_t *from;
        const uint8_t *to;
    } files[] = {
        {"/", "text/html; charset=utf-8", dp_asset_page, dp_asset_page_end},
        {"/app.js", "text/javascript; charset=utf-8", dp_asset_script, dp_asset_script_end},
        {"/app.css", "text/css; charset=utf-8", dp_asset_style, dp_asset_style_end},
    };
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        if (strcmp(files[i].path, path) == 0) {
            *asset = (dp_asset){
                .type = files[i].type,
                .bytes = dp_view_of(files[i].from, (size_t)(files[i].to - files[i].from)),
            };
            return true;
        }
    }
    return false;
}
