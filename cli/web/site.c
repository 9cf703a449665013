#include "cli/web/site.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/doctor/check_state.h"
#include "cli/json.h"
#include "cli/web/assets.h"
#include "cli/web/metrics.h"

enum {
    HOST_MAX = 255,
    OK = 200,
    BAD = 400,
    REFUSED = 403,
    MISSING = 404,
    METHOD = 405,
    DOWN = 503
};

static const char type_text[] = "text/plain; charset=utf-8";
static const char type_json[] = "application/json";

/* ---- who may ask ---- */

/* The host without its port, "[::1]:80" as "::1". False: there is none, or it is too long. */
static bool bare_host(const char *host, char out[HOST_MAX + 1])
{
    const char *end = strchr(host, ':');
    if (host[0] == '[') {
        host++;
        end = strchr(host, ']');
        if (end == NULL) {
            return false;
        }
    }
    const size_t size = end == NULL ? strlen(host) : (size_t)(end - host);
    if (size == 0 || size > HOST_MAX) {
        return false;
    }
    memcpy(out, host, size);
    out[size] = '\0';
    return true;
}

bool dp_site_host_allowed(const dp_site *site, const char *host)
{
    char bare[HOST_MAX + 1];
    unsigned char address[sizeof(struct in6_addr)];
    if (host == NULL || !bare_host(host, bare)) {
        return false;
    }
    if (inet_pton(AF_INET, bare, address) == 1 || inet_pton(AF_INET6, bare, address) == 1 ||
        strcasecmp(bare, "localhost") == 0) {
        return true;
    }
    for (size_t i = 0; i < DP_SITE_NAMES_MAX && site->names[i] != NULL; i++) {
        if (strcasecmp(bare, site->names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- answers ---- */

static dp_status say(dp_site_answer *answer, unsigned status, const char *type, dp_view body)
{
    answer->status = status;
    answer->type = type;
    return dp_buf_append(&answer->body, body);
}

static dp_status say_text(dp_site_answer *answer, unsigned status, const char *text)
{
    return say(answer, status, type_text, dp_view_text(text));
}

/* Takes value. */
static dp_status say_json(dp_site_answer *answer, unsigned status, json_t *value)
{
    char *const text = json_dumps(value, JSON_COMPACT);
    json_decref(value);
    if (text == NULL) {
        return DP_NOMEM;
    }
    const dp_status said = say(answer, status, type_json, dp_view_text(text));
    free(text);
    return said;
}

static dp_status say_error(dp_site_answer *answer, const dp_control_error *error)
{
    return say_json(answer, DOWN,
                    json_pack("{s:{s:s, s:o, s:o, s:o}}", "error", "code", error->code, "what",
                              dp_json_string(error->what), "why", dp_json_string(error->why), "fix",
                              dp_json_string(error->fix)));
}

static dp_status say_check(dp_site *site, dp_site_answer *answer, dp_check_kind kind)
{
    const dp_source *const source = &site->source;
    char text[sizeof source->error.what + sizeof source->error.why + 8];
    if (source->status == NULL) {
        snprintf(text, sizeof text, "%s: %s\n", source->error.what, source->error.why);
        return say_text(answer, DOWN, text);
    }
    const bool passes = dp_check_state(source->status, kind);
    snprintf(text, sizeof text, "%s: %s\n", passes ? "ok" : "not ok",
             dp_check_state_text(source->status, kind));
    return say_text(answer, passes ? OK : DOWN, text);
}

static dp_status say_metrics(const dp_site *site, dp_site_answer *answer)
{
    answer->status = OK;
    answer->type = "text/plain; version=0.0.4; charset=utf-8";
    return dp_metrics_write(&answer->body, site->source.status, site->source.peers);
}

static dp_status say_reply(const dp_site *site, dp_site_answer *answer, json_t *reply)
{
    return site->source.status == NULL ? say_error(answer, &site->source.error)
                                       : say_json(answer, OK, json_incref(reply));
}

/* Drops the oldest items of a list that is larger than an answer. */
static void drop_oldest(json_t *list)
{
    size_t bytes = 2;
    size_t fits = json_array_size(list);
    while (fits > 0 && bytes <= DP_SITE_BYTES_MAX) {
        fits--;
        bytes += json_dumpb(json_array_get(list, fits), NULL, 0, JSON_COMPACT) + 1;
    }
    for (size_t n = bytes > DP_SITE_BYTES_MAX ? fits + 1 : 0; n > 0; n--) {
        json_array_remove(list, 0);
    }
}

/* last: of the query. A list of the daemon, or why there is none. */
static dp_status say_list(const dp_site *site, dp_site_answer *answer, const char *method,
                          const char *last)
{
    dp_control_error error;
    char *end = NULL;
    const unsigned long n = last == NULL ? DP_SITE_LAST : strtoul(last, &end, 10);
    if (last != NULL && (end == last || *end != '\0' || n == 0 || n > DP_SOURCE_LAST_MAX)) {
        char text[64];
        snprintf(text, sizeof text, "last is a number from 1 to %d\n", DP_SOURCE_LAST_MAX);
        return say_text(answer, BAD, text);
    }
    json_t *const list = dp_source_list(&site->source, method, (uint32_t)n, &error);
    if (list == NULL) {
        return say_error(answer, &error);
    }
    drop_oldest(list);
    return say_json(answer, OK, list);
}

static dp_status ask_path(dp_site *site, const dp_site_request *request, dp_site_answer *answer)
{
    if (strcmp(request->path, "/metrics") == 0) {
        return say_metrics(site, answer);
    }
    if (strcmp(request->path, "/healthz") == 0) {
        return say_check(site, answer, DP_CHECK_LIVE);
    }
    if (strcmp(request->path, "/readyz") == 0) {
        return say_check(site, answer, DP_CHECK_READY);
    }
    if (strcmp(request->path, "/api/v1/status") == 0) {
        return say_reply(site, answer, site->source.status);
    }
    if (strcmp(request->path, "/api/v1/peers") == 0) {
        return site->source.peers == NULL && site->source.status != NULL
                   ? say_json(answer, OK, json_pack("{s:[]}", "peers"))
                   : say_reply(site, answer, site->source.peers);
    }
    if (strcmp(request->path, "/api/v1/rounds") == 0) {
        return say_list(site, answer, "rounds", request->last);
    }
    if (strcmp(request->path, "/api/v1/events") == 0) {
        return say_list(site, answer, "events", request->last);
    }
    if (strcmp(request->path, "/api/v1/texts") == 0) {
        return say_json(answer, OK, site->texts != NULL ? json_incref(site->texts) : json_array());
    }
    if (strcmp(request->path, "/api/v1/stream") == 0) {
        answer->streams = true;
        return say(answer, OK, "text/event-stream", dp_view_text(""));
    }
    return say_text(answer, MISSING,
                    "there is no such page; there are / /metrics /healthz /readyz /api/v1/status "
                    "/api/v1/peers /api/v1/rounds /api/v1/events /api/v1/texts /api/v1/stream\n");
}

dp_status dp_site_ask(dp_site *site, uint64_t now_ms, const dp_site_request *request,
                      dp_site_answer *answer)
{
    dp_status status = DP_OK;
    *answer = (dp_site_answer){0};
    dp_buf_init(&answer->body, DP_SITE_BYTES_MAX);
    if (!dp_site_host_allowed(site, request->host)) {
        status = say_text(answer, REFUSED,
                          "dpnode-web answers requests for an address, for localhost and for the "
                          "names that --name gives, and for no other host\n");
    } else if (strcmp(request->method, "GET") != 0 && strcmp(request->method, "HEAD") != 0) {
        status = say_text(answer, METHOD, "only GET and HEAD: nothing can be changed here\n");
    } else {
        dp_asset asset;
        if (dp_asset_find(request->path, &asset)) {
            status = say(answer, OK, asset.type, asset.bytes);
        } else {
            dp_source_look(&site->source, now_ms);
            status = ask_path(site, request, answer);
        }
    }
    if (status != DP_OK) {
        dp_site_answer_close(answer);
    }
    return status;
}

void dp_site_answer_close(dp_site_answer *answer)
{
    dp_buf_close(&answer->body);
}

dp_status dp_site_event(const dp_site *site, dp_buf *out)
{
    const dp_source *const source = &site->source;
    json_t *const value =
        source->status != NULL
            ? json_pack("{s:O, s:O?}", "status", source->status, "peers", source->peers)
            : json_pack("{s:{s:o, s:o, s:o}}", "error", "what", dp_json_string(source->error.what),
                        "why", dp_json_string(source->error.why), "fix",
                        dp_json_string(source->error.fix));
    char *const text = value != NULL ? json_dumps(value, JSON_COMPACT) : NULL;
    json_decref(value);
    if (text == NULL) {
        return DP_NOMEM;
    }
    const size_t before = out->size; /* JSON_COMPACT has no line break, so one "data:" holds it. */
    dp_status status = dp_buf_append(out, dp_view_text("event: state\ndata: "));
    status = status == DP_OK ? dp_buf_append(out, dp_view_text(text)) : status;
    status = status == DP_OK ? dp_buf_append(out, dp_view_text("\n\n")) : status;
    out->size = status == DP_OK ? out->size : before;
    free(text);
    return status;
}
