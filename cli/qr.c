#include "cli/qr.h"

#include <langinfo.h>
#include <qrencode.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { QUIET = 2 /* light modules around the code; phones need some */ };

static bool dark(const QRcode *code, int row, int column)
{
    return row >= 0 && column >= 0 && row < code->width && column < code->width &&
           (code->data[row * code->width + column] & 1) != 0;
}

void dp_qr_print(const char *text)
{
    /* Two modules per character: upper half, lower half. Light modules are drawn, for dark
     * terminals. */
    static const char *const blocks[4] = {"\xe2\x96\x88", "\xe2\x96\x80", "\xe2\x96\x84", " "};
    if (strcmp(nl_langinfo(CODESET), "UTF-8") !=
        0) { /* NOLINT(concurrency-mt-unsafe): one thread */
        return;
    }
    QRcode *code = QRcode_encodeString(text, 0, QR_ECLEVEL_L, QR_MODE_8, 1);
    if (code == NULL) {
        return;
    }
    for (int row = -QUIET; row < code->width + QUIET; row += 2) {
        for (int column = -QUIET; column < code->width + QUIET; column++) {
            fputs(blocks[(dark(code, row, column) ? 2 : 0) + (dark(code, row + 1, column) ? 1 : 0)],
                  stdout);
        }
        putchar('\n');
    }
    QRcode_free(code);
}
