#include "compute/cuda/device.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "compute/cuda/claim.h"
#include "compute/cuda/nvml.h"

enum { SPINS = 2000, NAP_NS = 50 * 1000, LABEL_MAX = 48 };

/* ---- Sentences. */

/* Errors that mean more to a reader than CUDA's words. */
static const struct known {
    int error;
    const char *advice;
} known[] = {
    {DP_CUDA_DRIVER_TOO_OLD, "the driver is too old for this dpnode; update NVIDIA's driver"},
    {DP_CUDA_CARD_TAKEN, "another process has the card for itself; stop it or take another card"},
    {DP_CUDA_NO_KERNEL, "this dpnode was built without kernels for this card's architecture"},
    {DP_CUDA_ECC, "the card's memory lost data that could not be mended; if it happens again, "
                  "have the card looked at"},
    {DP_CUDA_LAUNCH_TIMEOUT, "the driver ended a kernel that took too long; a card that also "
                             "drives a screen may do that"},
    {DP_CUDA_BAD_ADDRESS, "a kernel touched memory that is not its own; this is a mistake in "
                          "dpnode, please report it"},
};

static const char *advice_of(int error)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].error == error) {
            return known[i].advice;
        }
    }
    return "the card has failed or is gone; the kernel log (dmesg, Xid) says more";
}

dp_status dp_cuda_check(dp_cuda_device *device, int error, const char *call, const char *file,
                        int line)
{
    if (error == 0) {
        return DP_OK;
    }
    const char *const slash = strrchr(file, '/');
    const char *const name = slash == NULL ? file : slash + 1;
    if (error == DP_CUDA_NO_MEMORY) {
        (void)device->api->last_error(); /* Forgotten: it is no failure of the card. */
        return dp_why_set(&device->problem, DP_NOMEM, "%s at %s:%d: out of memory", call, name,
                          line);
    }
    device->lost = true;
    return dp_why_set(&device->problem, DP_IO, "%s: %s (CUDA: %s at %s, %s:%d)",
                      device->properties.name, advice_of(error), device->api->error_name(error),
                      call, name, line);
}

dp_status dp_cuda_launch_status(dp_cuda_device *device, dp_status status, const char *what)
{
    if (status != DP_IO) {
        return status;
    }
    /* The launcher's name without its arguments. */
    char label[LABEL_MAX];
    snprintf(label, sizeof label, "%.*s", (int)strcspn(what, "("), what);
    const int error = device->api->last_error();
    DP_IGNORE(dp_cuda_check(device, error == 0 ? DP_CUDA_LAUNCH_FAILED : error, label, "", 0));
    return DP_IO;
}

/* ---- Which card a thread talks to. */

static _Thread_local int here = -1; /* index of it; -1: nobody has said */

static int go_to(const dp_cuda_api *api, int index)
{
    const int error = api->set_device(index);
    here = error == 0 ? index : -1;
    return error;
}

void dp_cuda_here(const dp_cuda_device *device)
{
    if (here != device->index) {
        /* A card that is gone says so in the call that follows. */
        DP_IGNORE(go_to(device->api, device->index) != 0);
    }
}

/* ---- Looking. */

uint32_t dp_cuda_devices(const dp_cuda_api *api, dp_why *why)
{
    int driver = 0;
    int runtime = 0;
    int count = 0;
    int error = api->driver_version(&driver);
    DP_IGNORE(api->runtime_version(&runtime) != 0); /* Then it is said as 0. */
    if (error != 0 || driver == 0) {
        DP_IGNORE(dp_why_set(why, DP_NOTFOUND,
                             "no driver: libcuda.so.1 of NVIDIA is not installed or not loaded"));
        return 0;
    }
    error = api->device_count(&count);
    if (error == DP_CUDA_DRIVER_TOO_OLD || (error != 0 && driver / 1000 < runtime / 1000)) {
        DP_IGNORE(dp_why_set(
            why, DP_NOTFOUND,
            "the driver is too old: it offers CUDA %d.%d and this dpnode needs %d.%d; update "
            "NVIDIA's driver",
            driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10));
        return 0;
    }
    if (error != 0 && error != DP_CUDA_NO_DEVICE) {
        DP_IGNORE(
            dp_why_set(why, DP_NOTFOUND, "the driver shows no card: %s", api->error_text(error)));
        return 0;
    }
    if (error == DP_CUDA_NO_DEVICE || count <= 0) {
        DP_IGNORE(dp_why_set(why, DP_NOTFOUND,
                             "no card: the driver is there and sees none (or "
                             "CUDA_VISIBLE_DEVICES hides them)"));
        return 0;
    }
    return count < DP_CUDA_DEVICES_MAX ? (uint32_t)count : DP_CUDA_DEVICES_MAX;
}

/* Opens no context. */
static dp_status find_card(dp_cuda_device *device, const dp_cuda_api *api, uint32_t index,
                           dp_why *why)
{
    *device = (dp_cuda_device){.api = api, .index = (int)index, .wait_ms = DP_CUDA_WAIT_MS};
    const uint32_t count = dp_cuda_devices(api, why);
    if (count == 0) {
        return DP_IO;
    }
    if (index >= count) {
        return dp_why_set(why, DP_BADARG, "there is no card %" PRIu32 ", only 0 to %" PRIu32, index,
                          count - 1);
    }
    DP_TRY(dp_cuda_check(device, api->device_properties(device->index, &device->properties),
                         "device_properties", __FILE__, __LINE__));
    device->properties.name[sizeof device->properties.name - 1] = '\0';
    const int arch = 10 * device->properties.major + device->properties.minor;
    if (arch < DP_CUDA_ARCH_MIN) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "%s is of architecture %d.%d; the kernels need %d.%d (Turing, 2018) or "
                          "later",
                          device->properties.name, device->properties.major,
                          device->properties.minor, DP_CUDA_ARCH_MIN / 10, DP_CUDA_ARCH_MIN % 10);
    }
    return DP_OK;
}

/* Of a card that was found: with its context, which takes hundreds of MiB of it. */
static dp_status enter_card(dp_cuda_device *device, dp_why *why)
{
    const int error = go_to(device->api, device->index);
    if (error == DP_CUDA_CARD_TAKEN) {
        return dp_why_set(why, DP_BUSY, "%s: %s", device->properties.name, advice_of(error));
    }
    return dp_cuda_check(device, error, "set_device", __FILE__, __LINE__);
}

/* The sentence of a failure that went to device->problem. */
static dp_status told(const dp_cuda_device *device, dp_status status, dp_why *why)
{
    if (status == DP_OK || device->problem.text[0] == '\0') {
        return status;
    }
    return dp_why_set(why, status, "%s", device->problem.text);
}

static dp_status room_of(dp_cuda_device *device, uint64_t *room, dp_why *why)
{
    size_t free_bytes = 0;
    size_t total = 0;
    DP_TRY(enter_card(device, why));
    DP_TRY(DP_CUDA(device, mem_info, &free_bytes, &total));
    *room = free_bytes;
    return DP_OK;
}

dp_status dp_cuda_device_room(const dp_cuda_api *api, uint32_t index, uint64_t *room,
                              uint64_t *total, dp_why *why)
{
    dp_cuda_device device;
    dp_status status = find_card(&device, api, index, why);
    if (status == DP_OK) {
        status = room_of(&device, room, why);
    }
    if (status == DP_OK) {
        *total = device.properties.memory;
    }
    return told(&device, status, why);
}

bool dp_cuda_has_bf16(const dp_cuda_properties *properties)
{
    return 10 * properties->major + properties->minor >= DP_CUDA_ARCH_BF16;
}

dp_status dp_cuda_device_look(const dp_cuda_api *api, uint32_t index, dp_device *out, dp_why *why)
{
    dp_cuda_device device;
    dp_status status = find_card(&device, api, index, why);
    if (status != DP_OK) {
        return told(&device, status, why);
    }
    dp_device found = {.memory_total = device.properties.memory,
                       .bf16 = dp_cuda_has_bf16(&device.properties),
                       .taken = dp_cuda_is_claimed(&device.properties)};
    snprintf(found.name, sizeof found.name, "%s", device.properties.name);
    dp_nvml_look(device.properties.bus, &found);
    if (found.memory_usable == 0) {
        DP_TRY(told(&device, room_of(&device, &found.memory_usable, why), why));
    }
    if (found.memory_usable > found.memory_total) { /* The card is a part of what NVML knows. */
        found.memory_usable = found.memory_total;
    }
    *out = found;
    return DP_OK;
}

/* ---- Life. */

static dp_status open_streams(dp_cuda_device *device)
{
    DP_TRY(DP_CUDA(device, stream_open, &device->compute, false));
    DP_TRY(DP_CUDA(device, stream_open, &device->side, true));
    DP_TRY(DP_CUDA(device, event_open, &device->done));
    DP_TRY(DP_CUDA(device, event_open, &device->before));
    return DP_CUDA(device, event_open, &device->encoded);
}

dp_status dp_cuda_device_open(dp_cuda_device *device, const dp_cuda_api *api, uint32_t index,
                              dp_why *why)
{
    dp_status status = find_card(device, api, index, why);
    if (status == DP_OK) {
        status = enter_card(device, why);
    }
    if (status == DP_OK) {
        status = open_streams(device);
    }
    return told(device, status, why);
}

void dp_cuda_device_free(const dp_cuda_device *device, void *memory)
{
    if (!device->hangs) {
        DP_IGNORE(device->api->device_free(memory) != 0); /* A lost card has none. */
    }
}

void dp_cuda_device_close(dp_cuda_device *device)
{
    const dp_cuda_api *const api = device->api;
    if (device->hangs) {
        *device = (dp_cuda_device){0};
        return;
    }
    if (device->compute != NULL) {
        dp_cuda_here(device);
    }
    /* On a lost device these fail, which changes nothing. */
    cudaEvent_t const events[] = {device->encoded, device->before, device->done};
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        if (events[i] != NULL) {
            DP_IGNORE(api->event_close(events[i]) != 0);
        }
    }
    cudaStream_t const streams[] = {device->side, device->compute};
    for (size_t i = 0; i < sizeof streams / sizeof streams[0]; i++) {
        if (streams[i] != NULL) {
            DP_IGNORE(api->stream_close(streams[i]) != 0);
        }
    }
    *device = (dp_cuda_device){0};
}

/* ---- Waiting. */

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000U + (uint64_t)now.tv_nsec / 1000000U;
}

dp_status dp_cuda_has_come(dp_cuda_device *device, cudaEvent_t event, bool *came)
{
    if (device->lost) {
        return DP_IO;
    }
    dp_cuda_here(device);
    const int error = device->api->event_query(event);
    *came = error != DP_CUDA_NOT_READY;
    return *came ? dp_cuda_check(device, error, "event_query", __FILE__, __LINE__) : DP_OK;
}

/* Polls: a wait inside the driver would last as long as the card hangs. */
dp_status dp_cuda_wait_for(dp_cuda_device *device, cudaEvent_t event)
{
    const uint64_t deadline = now_ms() + device->wait_ms;
    for (uint64_t polls = 0;; polls++) {
        bool came;
        DP_TRY(dp_cuda_has_come(device, event, &came));
        if (came) {
            return DP_OK;
        }
        if (polls < SPINS) {
            continue;
        }
        if (device->is_over != NULL && device->is_over(device->is_over_context)) {
            device->lost = true; /* Work under way may wait for that process. */
            return dp_why_set(&device->problem, DP_IO, "a process of another card is gone");
        }
        if (now_ms() >= deadline) {
            device->lost = true;
            device->hangs = true;
            return dp_why_set(&device->problem, DP_IO,
                              "%s has not answered for %" PRIu32
                              " s: it hangs; the kernel log (dmesg, Xid) says more",
                              device->properties.name, device->wait_ms / 1000);
        }
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
}

dp_status dp_cuda_wait(dp_cuda_device *device, cudaStream_t stream)
{
    DP_TRY(DP_CUDA(device, event_record, device->done, stream));
    return dp_cuda_wait_for(device, device->done);
}
