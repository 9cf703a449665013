/* Queries and settings of the trainer process: its restarts, and the fallback to the CPU. */
#include "daemon/trainer/trainer_life.h"

uint32_t dp_trainer_process_deaths(const dp_trainer_process *trainer)
{
    const uint64_t now = uv_now(trainer->config.loop);
    uint32_t count = 0;
    for (uint32_t i = 0; i < DP_TRAINER_DEVICE_LIVES && i < trainer->n_deaths; i++) {
        count += now - trainer->deaths[i] <= DP_TRAINER_WINDOW_MS;
    }
    return count;
}

bool dp_trainer_process_takes_cpu(const dp_trainer_process *trainer)
{
    return strcmp(trainer->backend, "cpu") == 0;
}

void dp_trainer_process_take_cpu(dp_trainer_process *trainer)
{
    memcpy(trainer->backend, "cpu", sizeof "cpu");
}

void dp_trainer_process_look(dp_trainer_process *trainer)
{
    if (trainer != NULL) {
        dp_oom_look(&trainer->oom, trainer->config.oom, uv_now(trainer->config.loop));
    }
}

int dp_trainer_process_pid(const dp_trainer_process *trainer)
{
    return trainer->life == NULL ? 0 : trainer->life->process.pid;
}

uint32_t dp_trainer_process_restarts(const dp_trainer_process *trainer)
{
    return trainer->n_starts;
}
