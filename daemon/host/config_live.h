/* The settings of a running daemon: those of its start, and above them the orders of `dpnode
 * limits`, which the store's row "limits" keeps.
 *
 * At the start the command line wins over the environment, over an order, over the configuration
 * file, over the default; while the daemon runs, the last order wins. Only settings whose row says
 * live change while it runs. Loop thread only. */
#ifndef DP_DAEMON_HOST_CONFIG_LIVE_H
#define DP_DAEMON_HOST_CONFIG_LIVE_H

#include "base/bytes.h"
#include "daemon/host/config.h"
#include "daemon/host/store_thread.h"

enum { DP_CONFIG_USER_MAX = 32, DP_CONFIG_ORDER_MAX = 200 };

/* An order about one setting. */
typedef struct dp_config_order {
    bool kept;                         /* there is one: */
    bool fresh;                        /* given to this daemon, not to one before it */
    uint64_t set_ms;                   /* unix; 0: unknown */
    char user[DP_CONFIG_USER_MAX + 1]; /* "": not known */
    char text[DP_CONFIG_ORDER_MAX + 1];
} dp_config_order;

typedef struct dp_config_live {
    dp_config now;  /* the effective settings; daemon->config points here */
    dp_config said; /* without orders */
    dp_config_order orders[DP_CONFIG_SETTINGS_MAX];
    bool left[DP_CONFIG_SETTINGS_MAX]; /* a new value of the file waits for a restart */
    bool damaged;                      /* the row of orders could not be read */
} dp_config_live;

void dp_config_live_init(dp_config_live *live, const dp_config *said);
/* Reads the row, before the store thread has the store. A row that cannot be read is logged and
 * sets damaged; the orders count as absent. */
void dp_config_live_load(dp_config_live *live, dp_store *store);
/* Writes the row, as dp_store_thread_put says. */
DP_MUST dp_status dp_config_live_keep(dp_config_live *live, dp_store_thread *store_thread,
                                      dp_store_thread_kept *done, void *context);

/* An order, valid at once. DP_NOTFOUND: no such setting; DP_UNSUPPORTED: it needs a restart;
 * DP_BADARG: not a value of it. why says which; nothing has changed. */
DP_MUST dp_status dp_config_live_order(dp_config_live *live, const char *name, const char *text,
                                       const char *user, uint64_t now_ms, dp_why *why);
/* Drops the order about a setting, which must exist. */
void dp_config_live_forget(dp_config_live *live, const char *name);
/* Takes the live settings of fresh in place of those of the start; what differs in others is left,
 * and noted in left. changed[i]: setting i has another effective value. */
void dp_config_live_take(dp_config_live *live, const dp_config *fresh,
                         bool changed[DP_CONFIG_SETTINGS_MAX]);

enum {
    DP_CONFIG_ORDER_BYTES_MAX = 1 + 16 + 1 + DP_CONFIG_ORDER_MAX + 8 + 1 + DP_CONFIG_USER_MAX,
    DP_CONFIG_ORDERS_MAX = 24,
    DP_CONFIG_LIVE_BYTES_MAX = 2 + DP_CONFIG_ORDERS_MAX * DP_CONFIG_ORDER_BYTES_MAX
};
/* u8 version 2 | u8 n | n times {u8 size, name of the setting | u8 size, value | u64 unix ms, when
 * | u8 size, user}. Version 1, which is read too: u8 1 | u8 n | n times {u8 which, rising: 0
 * upload-max, 1 download-max, 2 upload-month, 3 download-month, 4 month-day | u64 value}. */
dp_view dp_config_live_write(const dp_config_live *live, uint8_t out[DP_CONFIG_LIVE_BYTES_MAX]);
/* After init. A name that this version does not know is left out. DP_CORRUPT, DP_VERSION: no order
 * has changed. */
DP_MUST dp_status dp_config_live_read(dp_config_live *live, dp_view bytes);

#endif
