#include "cli/web/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "cli/web/news.h"

enum { PORT_MAX = 65535, BUFFER_BYTES = 32 * 1024 };

/* A reader of the events. */
typedef struct stream {
    dp_server *server;
    struct MHD_Connection *connection;
    uint64_t version; /* of the source, in the newest event */
    dp_news news;     /* that it has */
    dp_buf waiting;   /* bytes that are to be sent */
    bool used;
    bool suspended;
} stream;

struct dp_server {
    struct MHD_Daemon *http;
    dp_site *site;
    int epoll;
    uint64_t asked_ms; /* for events of streams */
    char address[DP_SERVER_ADDRESS_MAX];
    stream streams[DP_SERVER_STREAMS];
};

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000 + 1;
}

/* ---- streams ---- */

/* A new event, if there is one and the reader has taken what came before. */
static void fill(stream *s)
{
    const dp_source *const source = &s->server->site->source;
    if (s->waiting.size > 0 || s->version == source->version) {
        return; /* A slow reader misses states, and gets none of them twice. */
    }
    s->version = source->version;
    /* Too large: the next one may fit. */
    DP_IGNORE(dp_site_event(s->server->site, &s->waiting));
    DP_IGNORE(dp_news_write(&s->news, &s->server->site->source, &s->waiting));
}

static ssize_t read_stream(void *context, uint64_t position, char *out, size_t most)
{
    stream *const s = context;
    (void)position;
    fill(s);
    if (s->waiting.size == 0) {
        s->suspended = true;
        MHD_suspend_connection(s->connection);
        return 0;
    }
    const size_t size = s->waiting.size < most ? s->waiting.size : most;
    memcpy(out, s->waiting.data, size);
    dp_buf_consume(&s->waiting, size);
    return (ssize_t)size;
}

static void free_stream(void *context)
{
    stream *const s = context;
    dp_buf_close(&s->waiting);
    *s = (stream){.used = false};
}

static bool has_streams(const dp_server *server)
{
    bool found = false;
    for (size_t i = 0; i < DP_SERVER_STREAMS; i++) {
        found = found || server->streams[i].used;
    }
    return found;
}

/* Those that wait, where there is something to tell them; all of them where the server ends. */
static void wake_streams(dp_server *server, bool all)
{
    for (size_t i = 0; i < DP_SERVER_STREAMS; i++) {
        stream *const s = &server->streams[i];
        if (s->used && s->suspended && (all || s->version != server->site->source.version)) {
            s->suspended = false;
            MHD_resume_connection(s->connection);
        }
    }
}

/* after: the id of the newest event that a reader has which was cut. */
static struct MHD_Response *open_stream(dp_server *server, struct MHD_Connection *connection,
                                        const char *after)
{
    for (size_t i = 0; i < DP_SERVER_STREAMS; i++) {
        stream *const s = &server->streams[i];
        if (!s->used) {
            *s = (stream){.server = server, .connection = connection, .used = true};
            /* Else it begins now. */
            DP_IGNORE(dp_news_read(&s->news, after) != true);
            dp_buf_init(&s->waiting, DP_SERVER_STREAM_BYTES_MAX);
            return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BUFFER_BYTES, read_stream, s,
                                                     free_stream);
        }
    }
    return NULL;
}

/* ---- requests ---- */

/* They keep a foreign page from reading or framing this one, and this page from asking another
 * machine. */
static const struct {
    const char *name;
    const char *value;
} headers[] = {
    {"Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; "
                                "connect-src 'self'; img-src 'self' data:; base-uri 'none'; "
                                "form-action 'none'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Referrer-Policy", "no-referrer"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Cache-Control", "no-store"},
};

/* Takes response. */
static enum MHD_Result queue(struct MHD_Connection *connection, unsigned status, const char *type,
                             struct MHD_Response *response)
{
    if (response == NULL) {
        return MHD_NO;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        MHD_add_response_header(response, headers[i].name, headers[i].value);
    }
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
    }
    const enum MHD_Result queued = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return queued;
}

static enum MHD_Result send_answer(dp_server *server, struct MHD_Connection *connection,
                                   const dp_site_answer *answer)
{
    if (!answer->streams) {
        return queue(connection, answer->status, answer->type,
                     MHD_create_response_from_buffer(answer->body.size, answer->body.data,
                                                     MHD_RESPMEM_MUST_COPY));
    }
    /* A browser that connects again by itself sends the header; a page that does it the query. */
    const char *const last =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Last-Event-ID");
    struct MHD_Response *const response = open_stream(
        server, connection,
        last != NULL ? last
                     : MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "after"));
    if (response != NULL) {
        return queue(connection, answer->status, answer->type, response);
    }
    static char full[] = "there are as many readers of the stream as there may be\n";
    return queue(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "text/plain; charset=utf-8",
                 MHD_create_response_from_buffer(sizeof full - 1, full, MHD_RESPMEM_PERSISTENT));
}

/* Called twice for a request without a body: the first time the headers are known. A body is not
 * read: the answer that no method but GET has ends the connection. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_size, void **seen)
{
    static int once;
    dp_server *const server = context;
    (void)version;
    (void)upload;
    if (*seen == NULL) {
        *seen = &once;
        return MHD_YES;
    }
    if (*upload_size > 0) {
        *upload_size = 0;
        return MHD_YES;
    }
    const dp_site_request request = {
        .method = method,
        .path = url,
        .host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST),
        .last = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "last"),
    };
    dp_site_answer answer;
    if (dp_site_ask(server->site, now_ms(), &request, &answer) != DP_OK) {
        return MHD_NO; /* No memory: the connection is closed. */
    }
    const enum MHD_Result sent = send_answer(server, connection, &answer);
    dp_site_answer_close(&answer);
    return sent;
}

/* ---- the address ---- */

static bool read_address(const char *text, struct sockaddr_storage *out)
{
    char host[DP_SERVER_ADDRESS_MAX];
    const char *const colon = strrchr(text, ':');
    char *end = NULL;
    const size_t size = colon == NULL ? sizeof host : (size_t)(colon - text);
    if (size == 0 || size >= sizeof host || colon[1] < '0' || colon[1] > '9') {
        return false;
    }
    const unsigned long port = strtoul(colon + 1, &end, 10);
    const bool six = text[0] == '[' && text[size - 1] == ']';
    memcpy(host, six ? text + 1 : text, size);
    host[six ? size - 2 : size] = '\0';
    if (*end != '\0' || port > PORT_MAX) {
        return false;
    }
    *out = (struct sockaddr_storage){0};
    if (six) {
        struct sockaddr_in6 *const a = (struct sockaddr_in6 *)out;
        a->sin6_family = AF_INET6;
        a->sin6_port = htons((uint16_t)port);
        return inet_pton(AF_INET6, host, &a->sin6_addr) == 1;
    }
    struct sockaddr_in *const a = (struct sockaddr_in *)out;
    a->sin_family = AF_INET;
    a->sin_port = htons((uint16_t)port);
    return inet_pton(AF_INET, host, &a->sin_addr) == 1;
}

static void quiet(void *context, const char *format, va_list arguments)
{
    (void)context;
    (void)format;
    (void)arguments;
}

static int fail_open(dp_control_error *error, const char *address, int cause)
{
    if (cause == EADDRINUSE) {
        dp_error_set(error, DP_EXIT_UNAVAILABLE, "E0602",
                     "dpnode web --listen 127.0.0.1:0   # any port that is free",
                     "another program listens at this address", address);
    } else {
        char why[DP_SERVER_ADDRESS_MAX + 64];
        snprintf(why, sizeof why, "%.*s: %s", DP_SERVER_ADDRESS_MAX, address,
                 strerror(cause)); /* NOLINT(concurrency-mt-unsafe): one thread */
        dp_error_set(error, DP_EXIT_UNAVAILABLE, "E0603",
                     "give an address of this machine with --listen", "nothing can listen there",
                     why);
    }
    return error->exit;
}

int dp_server_open(dp_server **server, dp_site *site, const char *address, dp_control_error *error)
{
    struct sockaddr_storage at;
    *server = NULL;
    if (!read_address(address, &at)) {
        dp_error_set(error, DP_EXIT_USAGE, "E0601", "--listen 127.0.0.1:7719, or [::1]:7719",
                     "the address is none of the form ADDRESS:PORT", address);
        return error->exit;
    }
    dp_server *const made = dp_alloc(1, sizeof *made);
    if (made == NULL) {
        dp_error_set(error, DP_EXIT_SOFTWARE, "E0199", "", "out of memory", "");
        return error->exit;
    }
    made->site = site;
    errno = 0;
    made->http = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG |
            (at.ss_family == AF_INET6 ? (unsigned)MHD_USE_IPv6 : 0U),
        0, NULL, NULL, on_request, made, MHD_OPTION_EXTERNAL_LOGGER, quiet, NULL,
        MHD_OPTION_SOCK_ADDR, &at, MHD_OPTION_CONNECTION_LIMIT, (unsigned)DP_SERVER_CONNECTIONS,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)DP_SERVER_IDLE_S,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)BUFFER_BYTES, MHD_OPTION_END);
    if (made->http == NULL) {
        const int cause = errno != 0 ? errno : EIO;
        dp_free(made);
        return fail_open(error, address, cause);
    }
    made->epoll = MHD_get_daemon_info(made->http, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
    const unsigned port = MHD_get_daemon_info(made->http, MHD_DAEMON_INFO_BIND_PORT)->port;
    snprintf(made->address, sizeof made->address, "%.*s:%u", (int)(strrchr(address, ':') - address),
             address, port);
    *server = made;
    return 0;
}

void dp_server_close(dp_server *server)
{
    if (server != NULL) {
        wake_streams(server, true);
        MHD_stop_daemon(server->http);
        dp_free(server);
    }
}

const char *dp_server_address(const dp_server *server)
{
    return server->address;
}

/* ---- the loop ---- */

static int sooner(int one_ms, int other_ms)
{
    return one_ms < 0 || (other_ms >= 0 && other_ms < one_ms) ? other_ms : one_ms;
}

/* How long nothing is due; -1: for ever. */
static int idle_ms(const dp_server *server)
{
    MHD_UNSIGNED_LONG_LONG most = 0;
    const int events = has_streams(server) ? DP_SERVER_EVENT_MS / 4 : -1;
    if (MHD_get_timeout(server->http, &most) == MHD_NO) {
        return events;
    }
    return sooner(events, most > INT32_MAX ? INT32_MAX : (int)most);
}

dp_status dp_server_step(dp_server *server, int most_ms)
{
    struct pollfd wanted = {.fd = server->epoll, .events = POLLIN};
    if (poll(&wanted, 1, sooner(idle_ms(server), most_ms)) < 0 && errno != EINTR) {
        return DP_IO;
    }
    if (has_streams(server) && now_ms() - server->asked_ms >= DP_SERVER_EVENT_MS) {
        server->asked_ms = now_ms();
        dp_source_look(&server->site->source, server->asked_ms);
        wake_streams(server, false);
    }
    return MHD_run(server->http) == MHD_NO ? DP_IO : DP_OK;
}
