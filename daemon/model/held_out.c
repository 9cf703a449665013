#include "daemon/model/held_out.h"

#include <string.h>

#include "base/alloc.h"
#include "base/log.h"
#include "daemon/peer/driver.h"

struct dp_held_out {
    uv_timer_t timer;
    dp_daemon *daemon;
    const dp_driver *driver; /* whose run the other fields are of */
    bool asking;
    uint64_t asked_ms;
    uint64_t next_ms; /* not before */
};

static uint64_t clock_ms(void)
{
    return uv_hrtime() / 1000000;
}

static void on_answer(void *context, const dp_trainer_msg *reply, const char *why)
{
    dp_held_out *const self = context;
    const uint64_t now = clock_ms();
    (void)why; /* A node that cannot measure trains all the same. */
    self->asking = false;
    if (reply == NULL || reply->tokens == 0) {
        self->next_ms = now + DP_HELD_OUT_AGAIN_MS;
        return;
    }
    dp_driver_view view;
    dp_driver_look(self->daemon->driver, &view);
    const uint64_t took = now > self->asked_ms ? now - self->asked_ms : 0;
    const uint64_t rest = DP_HELD_OUT_SHARE * took;
    self->next_ms = now + (rest > DP_HELD_OUT_LEAST_MS ? rest : DP_HELD_OUT_LEAST_MS);
    self->daemon->measured = (dp_measured){.round = view.node.applied,
                                           .tokens = reply->tokens,
                                           .time_ms = dp_unix_ms(),
                                           .loss = reply->loss,
                                           .bits_per_byte = reply->bits_per_byte};
}

/* A model that this node trains, and that has moved since the last measurement. */
static bool is_time(const dp_held_out *self, uint64_t now_ms)
{
    const dp_manifest *const manifest = dp_driver_manifest(self->driver);
    if (self->asking || now_ms < self->next_ms || manifest == NULL ||
        dp_manifest_external(manifest) || manifest->val_per_mille == 0) {
        return false;
    }
    dp_driver_view view;
    dp_driver_look(self->driver, &view);
    const dp_measured *const last = &self->daemon->measured;
    return view.running && view.training && strcmp(view.trainer, "up") == 0 &&
           (last->tokens == 0 || view.node.applied != last->round);
}

void dp_held_out_look(dp_held_out *self, uint64_t now_ms)
{
    if (self->driver != self->daemon->driver) {
        self->driver = self->daemon->driver;
        self->asking = false;
        self->next_ms = now_ms + DP_HELD_OUT_FIRST_MS;
        self->daemon->measured = (dp_measured){.tokens = 0};
    }
    if (self->driver == NULL || !is_time(self, now_ms)) {
        return;
    }
    static dp_trainer_msg question; /* Loop thread only; large for a stack. */
    question = (dp_trainer_msg){.kind = DP_TRAINER_EVAL, .tokens = DP_HELD_OUT_TOKENS};
    self->asking = true;
    self->asked_ms = now_ms;
    DP_IGNORE(dp_driver_ask(self->daemon->driver, &question, on_answer,
                            self)); /* A failure reaches on_answer as well. */
}

static void on_timer(uv_timer_t *timer)
{
    dp_held_out_look(timer->data, clock_ms());
}

dp_status dp_held_out_open(dp_held_out **out, dp_daemon *daemon, uint64_t look_ms)
{
    dp_held_out *const self = dp_alloc(1, sizeof *self);
    if (self == NULL) {
        return DP_NOMEM;
    }
    *self = (dp_held_out){.daemon = daemon};
    DP_IGNORE(uv_timer_init(daemon->loop, &self->timer) != 0); /* It does not fail. */
    self->timer.data = self;
    uv_timer_start(&self->timer, on_timer, look_ms, look_ms);
    *out = self;
    return DP_OK;
}

static void on_closed(uv_handle_t *handle)
{
    dp_free(handle->data);
}

void dp_held_out_close(dp_held_out *self)
{
    if (self != NULL) {
        uv_close((uv_handle_t *)&self->timer, on_closed);
    }
}
