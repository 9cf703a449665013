#include "tests/cuda/fake_cuda.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <unistd.h>
#include <vector>

#include "compute/cuda/api.h"
#include "tests/cuda/host_gpu.h"

/* CUDA's handles are pointers to structures that nobody sees. */
struct CUstream_st {
    int card;
    bool low;
    std::deque<std::function<void()>> tasks; /* that are late */
    size_t done;                             /* tasks before them */
};
struct CUevent_st {
    cudaStream_t stream; /* whose tasks are before it; NULL: nothing is */
    size_t place;        /* how many of them */
    unsigned asked;
};
struct CUgraph_st {
    std::vector<std::function<void()>> tasks;
};
struct CUgraphExec_st {
    std::vector<std::function<void()>> tasks;
};

namespace
{
fake_cuda wanted;
unsigned calls;
unsigned entered;
unsigned allocations;
unsigned host_allocations;
unsigned fetches;
unsigned graphs_run;
size_t most; /* bytes of the card at a time */
bool armed;
thread_local int current;             /* CUDA's: the first, unless a thread says another */
int stays;                            /* error that every call gives from now on */
CUgraph_st *capturing;                /* NULL: nothing */
std::set<cudaStream_t> streams;       /* all that are open */
std::set<cudaEvent_t> events;         /* the same */
std::set<cudaGraphExec_t> execs;      /* the same */
std::map<void *, size_t> card_memory; /* of what device_alloc gave */
std::map<void *, size_t> host_memory;

size_t sum_of(const std::map<void *, size_t> &pieces)
{
    size_t sum = 0;
    for (const auto &piece : pieces) {
        sum += piece.second;
    }
    return sum;
}

size_t memory_total()
{
    return wanted.memory != 0 ? wanted.memory : (size_t)8 << 30;
}

/* Every call that touches the card begins with this. */
int touched()
{
    entered++;
    if (stays != 0) {
        calls++;
        return stays;
    }
    if (armed && ++calls == wanted.fail_at) {
        if (wanted.fail_with != DP_CUDA_NO_MEMORY) {
            stays = wanted.fail_with;
        }
        return wanted.fail_with;
    }
    return 0;
}

bool is_late(cudaStream_t stream)
{
    /* Work that is captured for a graph is not done at all yet. */
    return stream != nullptr && (stream->low || (wanted.late_all && capturing == nullptr)) &&
           wanted.late > 0;
}

void do_next(cudaStream_t stream)
{
    const std::function<void()> task = std::move(stream->tasks.front());
    stream->tasks.pop_front();
    stream->done++;
    task();
}

/* All that there is to do, as giving memory back asks for. */
void catch_up_all()
{
    for (cudaStream_t const stream : streams) {
        while (!stream->tasks.empty()) {
            do_next(stream);
        }
    }
}

/* No further than to the event. */
void catch_up(cudaEvent_t event)
{
    cudaStream_t const stream = event->stream;
    while (stream->done < event->place) {
        do_next(stream);
    }
}

/* Now, or when the graph runs, or late. */
int perform(const std::function<void()> &task, cudaStream_t stream)
{
    const int error = touched();
    if (error != 0) {
        return error;
    }
    if (is_late(stream)) {
        stream->tasks.push_back(task);
    } else if (capturing != nullptr) {
        capturing->tasks.push_back(task);
    } else {
        task();
    }
    return 0;
}

/* A card refuses a stream of another card. No caller may try. */
void on_its_card(cudaStream_t stream, const char *what)
{
    if (stream != nullptr && stream->card != current) {
        std::fprintf(stderr, "fake_cuda: %s on a stream of card %d, and the thread is on %d\n",
                     what, stream->card, current);
        std::abort();
    }
}

bool keep(cudaStream_t stream, const host_gpu_task &task)
{
    on_its_card(stream, "a kernel");
    if (is_late(stream)) {
        stream->tasks.push_back(task);
        return true;
    }
    if (capturing == nullptr) {
        return false;
    }
    capturing->tasks.push_back(task);
    return true;
}

/* ---- The calls. */

int driver_version(int *version)
{
    *version = wanted.no_driver ? 0 : wanted.driver != 0 ? wanted.driver : 13000;
    return 0;
}

int runtime_version(int *version)
{
    *version = 13000;
    return 0;
}

int device_count(int *count)
{
    *count = wanted.no_card ? 0 : wanted.cards != 0 ? wanted.cards : 1;
    return wanted.count_error;
}

int device_properties(int index, dp_cuda_properties *out)
{
    const int arch = wanted.arch != 0 ? wanted.arch : 80;
    *out = dp_cuda_properties();
    snprintf(out->name, sizeof out->name, "Emulated Card");
    snprintf(out->bus, sizeof out->bus, "0000:00:%02x.0", (unsigned)index & 0xffU);
    /* Tests run beside each other; a child has its parent's cards. */
    static const pid_t owner = getpid();
    const unsigned card = wanted.card != 0 ? wanted.card : static_cast<unsigned>(owner);
    std::memcpy(out->uuid, &card, sizeof card);
    out->uuid[15] = (uint8_t)index;
    out->memory = memory_total();
    out->major = arch / 10;
    out->minor = arch % 10;
    return stays;
}

int set_device(int index)
{
    host_gpu_capture = keep;
    entered++;
    if (wanted.set_error != 0 || stays != 0) {
        return wanted.set_error != 0 ? wanted.set_error : stays;
    }
    current = index;
    return 0;
}

int mem_info(size_t *free_bytes, size_t *total_bytes)
{
    *total_bytes = memory_total();
    *free_bytes = memory_total() - sum_of(card_memory);
    return touched();
}

/* No caller may try. */
void not_while_it_hangs(const char *what)
{
    if (wanted.hangs) {
        std::fprintf(stderr, "fake_cuda: %s of a card that hangs\n", what);
        std::abort();
    }
}

void *take(std::map<void *, size_t> &pieces, size_t bytes)
{
    const size_t whole = (bytes + 255) / 256 * 256;
    void *const memory = std::aligned_alloc(256, whole != 0 ? whole : 256);
    if (memory != nullptr) {
        std::memset(memory, 0xff, whole); /* Bytes that nobody wrote are NaN. */
        pieces[memory] = bytes;
    }
    return memory;
}

int give(std::map<void *, size_t> &pieces, void *memory)
{
    not_while_it_hangs("memory was given back");
    catch_up_all();
    if (pieces.erase(memory) == 0) {
        std::fprintf(stderr, "fake_cuda: freed what was not allocated\n");
        std::abort();
    }
    std::free(memory);
    return 0;
}

int device_alloc(void **out, size_t bytes)
{
    armed = armed || bytes >= wanted.armed_by;
    const int error = touched();
    if (error != 0) {
        return error;
    }
    if (++allocations == wanted.alloc_at || sum_of(card_memory) + bytes > memory_total()) {
        return DP_CUDA_NO_MEMORY;
    }
    *out = take(card_memory, bytes);
    most = std::max(most, sum_of(card_memory));
    return *out != nullptr ? 0 : DP_CUDA_NO_MEMORY;
}

int device_free(void *memory)
{
    return give(card_memory, memory);
}

int host_alloc(void **out, size_t bytes)
{
    const int error = touched();
    if (error != 0) {
        return error;
    }
    if (++host_allocations >= wanted.host_at && wanted.host_at != 0) {
        return DP_CUDA_NO_MEMORY;
    }
    *out = take(host_memory, bytes);
    return *out != nullptr ? 0 : DP_CUDA_NO_MEMORY;
}

int host_free(void *memory)
{
    return give(host_memory, memory);
}

int copy(void *to, const void *from, size_t bytes, dp_cuda_way way, cudaStream_t stream)
{
    on_its_card(stream, "copy");
    const bool poison =
        way == DP_CUDA_TO_HOST && capturing == nullptr && armed && ++fetches == wanted.poison_at;
    return perform(
        [=] {
            std::memmove(to, from, bytes);
            if (poison) {
                std::memset(to, 0xff, bytes);
            }
        },
        stream);
}

int fill(void *to, int byte, size_t bytes, cudaStream_t stream)
{
    on_its_card(stream, "fill");
    return perform([=] { std::memset(to, byte, bytes); }, stream);
}

int stream_open(cudaStream_t *out, bool low)
{
    *out = new CUstream_st{current, low, {}, 0};
    streams.insert(*out);
    return touched();
}

int stream_close(cudaStream_t stream)
{
    not_while_it_hangs("a stream was closed");
    streams.erase(stream);
    delete stream;
    return 0;
}

int event_open(cudaEvent_t *out)
{
    *out = new CUevent_st{nullptr, 0, 0};
    events.insert(*out);
    return touched();
}

int event_close(cudaEvent_t event)
{
    not_while_it_hangs("an event was closed");
    events.erase(event);
    delete event;
    return 0;
}

int event_record(cudaEvent_t event, cudaStream_t stream)
{
    event->stream = is_late(stream) ? stream : nullptr;
    event->place = is_late(stream) ? stream->done + stream->tasks.size() : 0;
    event->asked = 0;
    return touched();
}

int stream_wait(cudaStream_t, cudaEvent_t event)
{
    if (event->stream != nullptr) {
        catch_up(event);
    }
    return touched();
}

int event_query(cudaEvent_t event)
{
    if (stays != 0) {
        return stays;
    }
    if (wanted.hangs) {
        return DP_CUDA_NOT_READY;
    }
    if (event->stream != nullptr && event->stream->done < event->place) {
        if (++event->asked < wanted.late) {
            return DP_CUDA_NOT_READY;
        }
        catch_up(event);
    }
    return 0;
}

int event_elapsed(float *ms, cudaEvent_t, cudaEvent_t)
{
    *ms = 1.0F;
    return 0;
}

int capture_begin(cudaStream_t)
{
    const int error = touched();
    if (error == 0) {
        capturing = new CUgraph_st();
    }
    return error;
}

int capture_end(cudaStream_t, cudaGraph_t *out)
{
    *out = capturing;
    capturing = nullptr;
    return stays;
}

int graph_prepare(cudaGraphExec_t *out, cudaGraph_t graph)
{
    const int error = touched();
    if (error == 0) {
        *out = new CUgraphExec_st{graph->tasks};
        execs.insert(*out);
    }
    return error;
}

int graph_close(cudaGraph_t graph)
{
    delete graph;
    return 0;
}

int graph_run(cudaGraphExec_t graph, cudaStream_t stream)
{
    on_its_card(stream, "a graph");
    const int error = touched();
    if (error != 0) {
        return error;
    }
    graphs_run++;
    for (const auto &task : graph->tasks) {
        if (is_late(stream)) {
            stream->tasks.push_back(task);
        } else {
            task();
        }
    }
    return 0;
}

int graph_exec_close(cudaGraphExec_t graph)
{
    not_while_it_hangs("a graph was closed");
    execs.erase(graph);
    delete graph;
    return 0;
}

int last_error()
{
    return stays;
}

const char *error_name(int)
{
    return "cudaErrorOfTheFake";
}

const char *error_text(int)
{
    return "the fake card was told to fail";
}

const dp_cuda_api fake = {
    driver_version, runtime_version,  device_count,  device_properties, set_device,    mem_info,
    device_alloc,   device_free,      host_alloc,    host_free,         copy,          fill,
    stream_open,    stream_wait,      stream_close,  event_open,        event_close,   event_record,
    event_query,    event_elapsed,    capture_begin, capture_end,       graph_prepare, graph_close,
    graph_run,      graph_exec_close, last_error,    error_name,        error_text};
} // namespace

extern "C" const dp_cuda_api *dp_cuda_api_of(void)
{
    return &fake;
}

extern "C" void fake_cuda_set(const fake_cuda *w)
{
    wanted = *w;
    calls = 0;
    entered = 0;
    allocations = 0;
    host_allocations = 0;
    fetches = 0;
    graphs_run = 0;
    most = 0;
    armed = w->armed_by == 0;
    stays = 0;
}

extern "C" unsigned fake_cuda_calls(void)
{
    return calls;
}

extern "C" unsigned fake_cuda_entered(void)
{
    return entered;
}

extern "C" unsigned fake_cuda_graphs(void)
{
    return graphs_run;
}

extern "C" size_t fake_cuda_most(void)
{
    return most;
}

extern "C" size_t fake_cuda_used(void)
{
    return sum_of(card_memory) + sum_of(host_memory);
}

extern "C" void fake_cuda_end(void)
{
    for (std::map<void *, size_t> *const pieces : {&card_memory, &host_memory}) {
        for (const auto &piece : *pieces) {
            std::free(piece.first);
        }
        pieces->clear();
    }
    for (cudaStream_t const stream : streams) {
        delete stream;
    }
    for (cudaEvent_t const event : events) {
        delete event;
    }
    for (cudaGraphExec_t const exec : execs) {
        delete exec;
    }
    streams.clear();
    events.clear();
    execs.clear();
}
