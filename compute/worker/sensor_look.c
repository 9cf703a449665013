#include "compute/worker/sensor_look.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "compute/backend/process_group_cards.h"

struct dp_sensor_look {
    dp_group_devices devices;
    int done;     /* an event for each reading: a wait of a length needs no clock */
    bool waiting; /* of the caller: a reading was asked for and has not come */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool wanted; /* guarded by lock, as all below */
    bool closed;
    dp_sensor_reading reading;
};

static void *run(void *context)
{
    dp_sensor_look *const look = context;
    pthread_mutex_lock(&look->lock);
    for (;;) {
        while (!look->wanted && !look->closed) {
            pthread_cond_wait(&look->changed, &look->lock);
        }
        if (look->closed) {
            break;
        }
        look->wanted = false;
        pthread_mutex_unlock(&look->lock);
        dp_sensor_reading reading = {.celsius = INT32_MIN};
        dp_group_devices_feel(&look->devices, &reading.celsius, &reading.watts);
        pthread_mutex_lock(&look->lock);
        look->reading = reading;
        DP_IGNORE(eventfd_write(look->done, 1) != 0); /* It holds one event at most. */
    }
    pthread_mutex_unlock(&look->lock);
    close(look->done);
    pthread_cond_destroy(&look->changed);
    pthread_mutex_destroy(&look->lock);
    dp_free(look);
    return NULL;
}

dp_status dp_sensor_look_open(dp_sensor_look **out, const struct dp_process_group *team,
                              const dp_backend *backend, uint32_t device)
{
    dp_sensor_look *const look = dp_alloc(1, sizeof *look);
    pthread_t thread;
    if (look == NULL) {
        return DP_NOMEM;
    }
    look->devices = dp_process_group_devices(team, backend, device);
    look->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    pthread_mutex_init(&look->lock, NULL);
    pthread_cond_init(&look->changed, NULL);
    if (look->done < 0 || pthread_create(&thread, NULL, run, look) != 0) {
        if (look->done >= 0) {
            close(look->done);
        }
        pthread_cond_destroy(&look->changed);
        pthread_mutex_destroy(&look->lock);
        dp_free(look);
        return DP_AGAIN;
    }
    pthread_detach(thread);
    *out = look;
    return DP_OK;
}

bool dp_sensor_look_at(dp_sensor_look *look, int wait_ms, dp_sensor_reading *reading)
{
    struct pollfd done = {.fd = look->done, .events = POLLIN};
    eventfd_t count = 0;
    if (!look->waiting) {
        pthread_mutex_lock(&look->lock);
        look->wanted = true;
        pthread_cond_signal(&look->changed);
        pthread_mutex_unlock(&look->lock);
        look->waiting = true;
    }
    if (poll(&done, 1, wait_ms) != 1 || eventfd_read(look->done, &count) != 0) {
        return false;
    }
    pthread_mutex_lock(&look->lock);
    *reading = look->reading;
    pthread_mutex_unlock(&look->lock);
    look->waiting = false;
    return true;
}

void dp_sensor_look_close(dp_sensor_look *look)
{
    if (look != NULL) {
        pthread_mutex_lock(&look->lock);
        look->closed = true;
        pthread_cond_signal(&look->changed);
        pthread_mutex_unlock(&look->lock);
    }
}
