/* The method run.create, and the parts that it shares with run.join. */
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "daemon/control/control.h"
#include "daemon/control/reply.h"
#include "daemon/control/run_create.h"
#include "daemon/peer/bandwidth_limiter.h"
#include "daemon/peer/driver.h"

bool dp_call_must_be_idle(const dp_daemon *daemon, const dp_call *call)
{
    if (daemon->driver == NULL) {
        return true;
    }
    char why[128];
    snprintf(why, sizeof why, "it is a member of %s", dp_driver_run_identity(daemon->driver)->name);
    dp_call_fail(call, 64, "E0111",
                 "dpnode up --dir DIR --socket PATH   # another node beside this one",
                 "this node has a run already", why);
    return false;
}

void dp_call_progress(const dp_call *call, const char *phase, const char *text)
{
    dp_packer packer;
    if (dp_call_begin(call, DP_CONTROL_NOTICE, &packer)) {
        dp_group map = dp_map_begin(&packer);
        dp_pair_text(&map, "phase", phase);
        /* These phases begin here; their outcome is reported later. */
        if (strcmp(phase, "prepare") != 0 && strcmp(phase, "clock") != 0 &&
            strcmp(phase, "admission") != 0) {
            dp_pair_bool(&map, "ok", true);
        }
        dp_pair_text(&map, "text", text);
        dp_group_end(&map);
        dp_call_end(call, &packer);
    }
}

/* ---- run.create ---- */

typedef struct create_call {
    dp_daemon *daemon;
    dp_call call;
} create_call;

static void on_found_progress(void *context, const char *phase, const char *text)
{
    const create_call *self = context;
    dp_call_progress(&self->call, phase, text);
}

/* moved: the name of the root key of an earlier run; "": there was none. */
static void reply_created(const create_call *self, const char *moved)
{
    const dp_run_identity *facts = dp_driver_run_identity(self->daemon->driver);
    dp_packer packer;
    if (!dp_call_begin(&self->call, DP_CONTROL_REPLY, &packer)) {
        return;
    }
    dp_group map = dp_map_begin(&packer);
    dp_pair_text(&map, "run", facts->name);
    dp_pair_hex(&map, "id", dp_view_of(facts->run.bytes, sizeof facts->run.bytes));
    if (moved[0] != '\0') {
        dp_pair_text(&map, "earlier_root_key", moved);
    }
    dp_group_end(&map);
    dp_call_end(&self->call, &packer);
}

static void on_found(void *context, dp_status status, const char *code, const char *what,
                     const char *why, const char *fix)
{
    create_call *self = context;
    if (status == DP_OK) {
        reply_created(self, why);
    } else {
        dp_call_fail(&self->call,
                     status == DP_BUSY          ? 73
                     : status == DP_IO          ? 74
                     : status == DP_AGAIN       ? 75
                     : status == DP_NOMEM       ? 70
                     : status == DP_UNSUPPORTED ? 69
                                                : 65,
                     code, fix, what, why);
    }
    dp_free(self);
}

/* The name for others, the daemon's own if the caller gives none. False, and answered, if it is too
 * long. */
bool dp_call_take_name(const dp_daemon *daemon, const dp_call *call,
                       const dp_pack_value *parameters, char name[DP_NAME_MAX + 1])
{
    const dp_pack_value *value = dp_pack_key(parameters, "name");
    const bool given = value != NULL;
    if (given && !dp_pack_copy_text(value, name, DP_NAME_MAX + 1)) {
        dp_call_fail(call, 64, "E0001", "--name NAME   # a shorter one",
                     "the name of this node cannot be used", "a name has at most 32 bytes");
        return false;
    }
    if (!given || name[0] == '\0') {
        snprintf(name, DP_NAME_MAX + 1, "%s", daemon->config->name);
    }
    return true;
}

/* False: it is there and is no absolute path. */
static bool take_path(const dp_pack_value *value, char path[DP_CONFIG_PATH_MAX])
{
    return value == NULL || (dp_pack_copy_text(value, path, DP_CONFIG_PATH_MAX) && path[0] == '/');
}

void dp_method_run_create(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    dp_view bytes = {0};
    dp_manifest manifest;
    char text_path[DP_CONFIG_PATH_MAX] = "";
    char from_path[DP_CONFIG_PATH_MAX] = "";
    char name[DP_NAME_MAX + 1];
    bool skip_bad_lines = false;
    const dp_pack_value *const text = dp_pack_key(parameters, "text_path");
    const dp_pack_value *const from = dp_pack_key(parameters, "from_path");
    if (!dp_call_must_be_idle(daemon, call)) {
        return;
    }
    if (!dp_pack_get_bytes(dp_pack_key(parameters, "manifest"), &bytes) ||
        dp_manifest_decode(&manifest, bytes) != DP_OK || !take_path(text, text_path) ||
        !take_path(from, from_path) || (dp_manifest_external(&manifest) ? from : text) == NULL) {
        dp_call_fail(call, 65, "E0301", "dpnode run create --demo kjv", "the manifest is not valid",
                     "values are missing or out of bounds");
        return;
    }
    if (!dp_call_take_name(daemon, call, parameters, name)) {
        return;
    }
    if (!dp_pack_get_bool(dp_pack_key(parameters, "skip_bad_lines"), &skip_bad_lines)) {
        skip_bad_lines = false;
    }
    create_call *self = dp_alloc(1, sizeof *self);
    if (self == NULL) {
        dp_call_fail(call, 70, "E0199", "", "out of memory", "");
        return;
    }
    self->daemon = daemon;
    self->call = *call;
    const dp_run_create_request request = {.manifest = &manifest,
                                           .text_path = text_path,
                                           .from_path = from != NULL ? from_path : NULL,
                                           .skip_bad_lines = skip_bad_lines,
                                           .node_name = name,
                                           .context = self,
                                           .progress = on_found_progress,
                                           .done = on_found};
    dp_run_create_start(daemon, &request);
}
