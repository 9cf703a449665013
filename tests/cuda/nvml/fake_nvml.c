/* An NVML for tests: one card, on the bus "0000:1b:00.0". FAKE_NVML in the environment says what is
 * odd: the name of a call ("init", "bus", "temperature", "power", "rates", "processes") makes it
 * fail, "others:N" puts N programs on the card beside the one that asks. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    OK = 0,
    NOT_SUPPORTED = 3,
    NOT_FOUND = 6,
    TOO_SMALL = 7,
    CELSIUS = 71,
    MILLIWATTS = 250500,
    PERCENT = 42
};

/* As nvml.h of NVIDIA lays them out. */
typedef struct utilization {
    unsigned gpu;
    unsigned memory;
} utilization;

typedef struct process {
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance;
    unsigned compute_instance;
} process;

int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius);
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts);
int nvmlDeviceGetUtilizationRates(void *device, utilization *out);
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, process *out);

static int card;
static int users; /* inits without a shutdown */

static const char *told(void)
{
    const char *const text = getenv("FAKE_NVML");
    return text != NULL ? text : "";
}

static int answer(const char *call, const void *device)
{
    return strcmp(told(), call) == 0 || users != 1 || device != &card ? NOT_SUPPORTED : OK;
}

int nvmlInit_v2(void)
{
    users++;
    return answer("init", &card);
}

int nvmlShutdown(void)
{
    users--;
    return OK;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device)
{
    *device = &card;
    return strcmp(bus, "0000:1b:00.0") == 0 ? answer("bus", &card) : NOT_FOUND;
}

int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius)
{
    *celsius = sensor == 0 ? CELSIUS : 0;
    return answer("temperature", device);
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
    *milliwatts = MILLIWATTS;
    return answer("power", device);
}

int nvmlDeviceGetUtilizationRates(void *device, utilization *out)
{
    *out = (utilization){.gpu = PERCENT, .memory = 1};
    return answer("rates", device);
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, process *out)
{
    const unsigned others =
        strncmp(told(), "others:", 7) == 0 ? (unsigned)strtoul(told() + 7, NULL, 10) : 0;
    const unsigned room = *count;
    *count = others + 1;
    if (*count > room) {
        return TOO_SMALL;
    }
    out[0] = (process){.pid = (unsigned)getpid(), .bytes = 1};
    for (unsigned i = 0; i < others; i++) {
        out[i + 1] = (process){.pid = (unsigned)getpid() + 1 + i, .bytes = 1};
    }
    return answer("processes", device);
}
