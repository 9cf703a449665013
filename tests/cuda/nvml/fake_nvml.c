/* An NVML for tests: one card, on the bus "0000:1b:00.0", and those of fake_cuda. FAKE_NVML in the
 * environment says what is odd: the name of a call ("init", "bus", "temperature", "power", "rates",
 * "memory", "processes") makes it fail, "others:N" puts N programs on the card beside the one that
 * asks. By its index there are two cards, with the programs of the file that FAKE_NVML_PROGRAMS
 * names: lines "CARD PID compute", or "CARD PID PERCENT" of one that only draws. */
#include <stdbool.h>
#include <stdio.h>
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

typedef struct memory {
    unsigned long long total;
    unsigned long long unused;
    unsigned long long used;
} memory;

typedef struct process {
    unsigned pid;
    unsigned long long bytes;
    unsigned gpu_instance;
    unsigned compute_instance;
} process;

typedef struct sample {
    unsigned pid;
    unsigned long long at_us;
    unsigned percent;
    unsigned memory;
    unsigned encoder;
    unsigned decoder;
} sample;

int nvmlDeviceGetCount_v2(unsigned *count);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device);
int nvmlDeviceGetProcessUtilization(void *device, sample *out, unsigned *count,
                                    unsigned long long since_us);
int nvmlInit_v2(void);
int nvmlShutdown(void);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus, void **device);
int nvmlDeviceGetTemperature(void *device, int sensor, unsigned *celsius);
int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts);
int nvmlDeviceGetUtilizationRates(void *device, utilization *out);
int nvmlDeviceGetMemoryInfo(void *device, memory *out);
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, process *out);

static int card;
static int by_index[2];
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
    return strcmp(bus, "0000:1b:00.0") == 0 || strncmp(bus, "0000:00:", 8) == 0
               ? answer("bus", &card)
               : NOT_FOUND;
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

int nvmlDeviceGetMemoryInfo(void *device, memory *out)
{
    *out = (memory){.total = 3000000, .unused = 2000000, .used = 1000000};
    return answer("memory", device);
}

/* The programs of a card that compute, or that draw. Returns their number, which may be more than
 * room. */
static unsigned programs(const void *device, bool compute, sample *out, unsigned room)
{
    const char *const path = getenv("FAKE_NVML_PROGRAMS");
    FILE *const file = path != NULL ? fopen(path, "r") : NULL;
    char line[64];
    unsigned n = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        char *at = line;
        const unsigned long on = strtoul(at, &at, 10);
        const unsigned pid = (unsigned)strtoul(at, &at, 10);
        const unsigned percent = (unsigned)strtoul(at, NULL, 10);
        if (on < 2 && device == &by_index[on] && (strstr(at, "compute") != NULL) == compute) {
            if (n < room) {
                out[n] = (sample){.pid = pid, .at_us = 1000 + n, .percent = percent};
            }
            n++;
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return n;
}

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = 2;
    return answer("count", &card);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device)
{
    *device = &by_index[index % 2];
    return answer("index", &card);
}

int nvmlDeviceGetProcessUtilization(void *device, sample *out, unsigned *count,
                                    unsigned long long since_us)
{
    *count = programs(device, false, out, *count);
    return *count == 0 || since_us >= 1000000 ? NOT_FOUND : answer("load", &card);
}

static int computing(const void *device, unsigned *count, process *out)
{
    sample found[128];
    const unsigned room = *count < 128 ? *count : 128;
    *count = programs(device, true, found, room);
    for (unsigned i = 0; i < *count && i < room; i++) {
        out[i] = (process){.pid = found[i].pid, .bytes = 1};
    }
    return *count > room ? TOO_SMALL : answer("processes", &card);
}

int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *count, process *out)
{
    if (device != &card) {
        return computing(device, count, out);
    }
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
