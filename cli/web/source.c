#include "cli/web/source.h"

#include "cli/client.h"
#include "cli/json.h"

void dp_source_open(dp_source *source, const char *socket)
{
    *source = (dp_source){.socket = socket};
}

static void forget(dp_source *source)
{
    json_decref(source->status);
    json_decref(source->peers);
    source->status = NULL;
    source->peers = NULL;
}

void dp_source_close(dp_source *source)
{
    forget(source);
    *source = (dp_source){0};
}

/* A client whose reads and writes end in time. */
static int open_client(dp_client *client, const char *path, dp_control_error *error)
{
    if (dp_client_open(client, path, error) != DP_OK) {
        return error->exit;
    }
    if (dp_client_bound(client, DP_SOURCE_WAIT_MS) != DP_OK) {
        dp_error_set(error, DP_EXIT_SOFTWARE, "E0199", "", "the socket takes no bound of time", "");
        return error->exit;
    }
    return 0;
}

static int ask(dp_client *client, const char *method, json_t **result, dp_control_error *error)
{
    dp_packer packer = dp_client_begin(client, method);
    dp_pack_map(&packer, 0);
    return dp_client_call(client, &packer, NULL, NULL, result, error);
}

void dp_source_look(dp_source *source, uint64_t now_ms)
{
    dp_control_error ignored;
    dp_client client;

    if (source->asked_ms != 0 && now_ms - source->asked_ms < DP_SOURCE_FRESH_MS) {
        return;
    }
    forget(source);
    source->asked_ms = now_ms;
    source->version++;
    if (open_client(&client, source->socket, &source->error) == 0 &&
        ask(&client, "status", &source->status, &source->error) == 0 &&
        json_object_get(source->status, "run") != NULL &&
        ask(&client, "peers", &source->peers, &ignored) != 0) {
        source->peers = NULL; /* It left its run between the two. */
    }
    dp_client_close(&client);
}

static int keep_notice(void *context, const json_t *notice)
{
    json_t *const list = context;
    json_t *const round = json_object_get(notice, "round");
    json_t *const item = round != NULL ? round : json_object_get(notice, "event");
    return json_is_object(item) && json_array_append(list, item) != 0 ? DP_EXIT_SOFTWARE : 0;
}

json_t *dp_source_list(const dp_source *source, const char *method, uint32_t last,
                       dp_control_error *error)
{
    dp_client client;
    json_t *const list = json_array();
    json_t *result = NULL;
    int status = open_client(&client, source->socket, error);

    if (status == 0) {
        dp_packer packer = dp_client_begin(&client, method);
        dp_pack_map(&packer, 1);
        dp_pack_text(&packer, "last");
        dp_pack_u64(&packer, last < DP_SOURCE_LAST_MAX ? last : DP_SOURCE_LAST_MAX);
        status = dp_client_call(&client, &packer, keep_notice, list, &result, error);
        json_decref(result);
    }
    dp_client_close(&client);
    if (status != 0) {
        json_decref(list);
        return NULL;
    }
    return list;
}
