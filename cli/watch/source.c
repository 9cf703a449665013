#include "cli/watch/source.h"

#include "cli/watch/question.h"

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

void dp_source_look(dp_source *source, uint64_t now_ms)
{
    dp_control_error ignored;

    if (source->asked_ms != 0 && now_ms - source->asked_ms < DP_SOURCE_FRESH_MS) {
        return;
    }
    forget(source);
    source->asked_ms = now_ms;
    source->version++;
    if (dp_question_ask(source->socket, DP_SOURCE_WAIT_MS, &(dp_question){.method = "status"},
                        &source->status, &source->error) == 0 &&
        json_object_get(source->status, "run") != NULL &&
        dp_question_ask(source->socket, DP_SOURCE_WAIT_MS, &(dp_question){.method = "peers"},
                        &source->peers, &ignored) != 0) {
        source->peers = NULL; /* It left its run between the two. */
    }
}

void dp_source_expire(dp_source *source)
{
    source->asked_ms = 0;
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
    json_t *const list = json_array();
    json_t *result = NULL;
    const dp_parameter newest = {.key = "last",
                                 .number = last < DP_SOURCE_LAST_MAX ? last : DP_SOURCE_LAST_MAX};
    const dp_question question = {.method = method,
                                  .parameters = &newest,
                                  .n_parameters = 1,
                                  .on_notice = keep_notice,
                                  .context = list};
    if (dp_question_ask(source->socket, DP_SOURCE_WAIT_MS, &question, &result, error) != 0) {
        json_decref(list);
        return NULL;
    }
    json_decref(result);
    return list;
}
