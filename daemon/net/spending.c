#include "daemon/net/spending.h"

enum {
    SECOND_US = 1000000,
    STEP_US = 10000,     /* shorter times would be lost in rounding */
    UPLOAD_SHARE = 4,    /* answers may take this part of the owner's limit */
    STEP_MAX_S = 1 << 20 /* then all is forgotten; the products fit */
};

typedef struct rule {
    uint64_t work_us; /* a second */
    uint64_t work_us_at_once;
    uint64_t bytes;
    uint64_t bytes_at_once;
} rule;

static const rule rules[] = {
    [false] = {SECOND_US / 10, SECOND_US / 4, 256 << 10, 1 << 20},
    [true] = {SECOND_US / 20, SECOND_US / 20, 64 << 10, 256 << 10},
};

static uint64_t reduce(uint64_t spent, uint64_t per_second, uint64_t passed_us)
{
    const uint64_t allowed = per_second * passed_us / SECOND_US;
    return spent > allowed ? spent - allowed : 0;
}

static void forgive(dp_spending *spending, bool guest, uint64_t upload, uint64_t now_us)
{
    uint64_t passed_us = now_us > spending->at_us ? now_us - spending->at_us : 0;
    uint64_t bytes = rules[guest].bytes;

    if (passed_us < STEP_US) {
        return;
    }
    if (passed_us > (uint64_t)STEP_MAX_S * SECOND_US) {
        passed_us = (uint64_t)STEP_MAX_S * SECOND_US;
    }
    if (upload != 0 && upload / UPLOAD_SHARE < bytes) {
        bytes = upload / UPLOAD_SHARE;
    }
    spending->work_us = reduce(spending->work_us, rules[guest].work_us, passed_us);
    spending->bytes = reduce(spending->bytes, bytes, passed_us);
    spending->at_us = now_us;
}

void dp_spending_pay(dp_spending *spending, bool guest, uint64_t upload, uint64_t work_us,
                     uint64_t bytes, uint64_t now_us)
{
    forgive(spending, guest, upload, now_us);
    spending->work_us += work_us;
    spending->bytes += bytes;
}

bool dp_spending_over(dp_spending *spending, bool guest, uint64_t upload, uint64_t now_us)
{
    forgive(spending, guest, upload, now_us);
    return spending->work_us > rules[guest].work_us_at_once ||
           spending->bytes > rules[guest].bytes_at_once;
}
