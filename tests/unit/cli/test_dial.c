#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/dial.h"

/* The addresses of the name "n1": at the first nobody listens. */
static struct sockaddr_in of_name[2];
static struct addrinfo own[2];

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **found)
{
    typedef int look_up(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    if (strcmp(node, "n1") != 0) {
        look_up *real = NULL;
        *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
        return real(node, service, hints, found);
    }
    for (int i = 0; i < 2; i++) {
        of_name[i] = (struct sockaddr_in){.sin_family = AF_INET,
                                          .sin_port = htons((uint16_t)atoi(service)),
                                          .sin_addr.s_addr = htonl(INADDR_LOOPBACK + (i == 0))};
        own[i] = (struct addrinfo){.ai_family = AF_INET,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_addr = (struct sockaddr *)&of_name[i],
                                   .ai_addrlen = sizeof of_name[i],
                                   .ai_next = i == 0 ? &own[1] : NULL};
    }
    *found = own;
    return 0;
}

void freeaddrinfo(struct addrinfo *list)
{
    typedef void release(struct addrinfo *);
    if (list != own) {
        release *real = NULL;
        *(void **)&real = dlsym(RTLD_NEXT, "freeaddrinfo");
        real(list);
    }
}

/* A socket that listens on loopback; text gets its address. */
static int listener(char text[64])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&address, size) == 0 && listen(fd, 4) == 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    snprintf(text, 64, "127.0.0.1:%u", ntohs(address.sin_port));
    return fd;
}

static void a_listener_answers_until_it_is_closed(void **state)
{
    (void)state;
    char text[64];
    const int fd = listener(text);
    assert_true(dp_dial_answers(text, 1000));
    assert_true(dp_dial_answers(text, 1000));
    assert_int_equal(close(fd), 0);
    assert_false(dp_dial_answers(text, 1000));
}

static void each_address_of_a_short_name_is_dialed(void **state)
{
    (void)state;
    char text[64];
    char named[16];
    const int fd = listener(text);
    snprintf(named, sizeof named, "n1%s", strchr(text, ':'));
    assert_true(dp_dial_answers(named, 1000));
    assert_int_equal(close(fd), 0);
    assert_false(dp_dial_answers(named, 1000));
}

static void an_address_of_version_6_stands_in_brackets(void **state)
{
    (void)state;
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    socklen_t size = sizeof address;
    char text[64];
    const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) != 0) {
        skip(); /* a machine without */
    }
    assert_int_equal(listen(fd, 1), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    snprintf(text, sizeof text, "[::1]:%u", ntohs(address.sin6_port));
    assert_true(dp_dial_answers(text, 1000));
    assert_int_equal(close(fd), 0);
}

static void a_text_that_is_no_address_is_not_dialed(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",
        ":",
        "7717",
        ":7717",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:x",
        "127.0.0.1:99999999",
        "[::1:7717",
        "::1]:7717",
        "a very long name that nobody could have meant as the address of a machine at all:7717"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_false(dp_dial_answers(wrong[i], 10));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_listener_answers_until_it_is_closed),
        cmocka_unit_test(each_address_of_a_short_name_is_dialed),
        cmocka_unit_test(an_address_of_version_6_stands_in_brackets),
        cmocka_unit_test(a_text_that_is_no_address_is_not_dialed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
