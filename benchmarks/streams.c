/* Runs ticks of a stream on the samples in a file, writes the outputs, and times calls: see benchmarks/streams.py.
 *
 *   program TICKS CALLS     files "inputs" and "outputs"; with CALLS, prints times
 *   program TICKS 0 LONG    runs so many ticks, and prints resident pages before and after
 */
#define _GNU_SOURCE
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifdef PEER
#include PEER
#else
#include "net.h"
static void *arena;
static net_t *net;

static void reset(void) {
    if (net_init(net, NET_CONTEXT_SIZE)) {
        exit(1);
    }
}

static void prepare(void) {
    void *memory;
    if (posix_memalign(&memory, 64, NET_CONTEXT_SIZE) || posix_memalign(&arena, 64, NET_RUN_ARENA_SIZE + 64)) {
        exit(1);
    }
    net = (net_t *)memory;
    reset();
}

static void tick(const float *x, float *y) {
    if (net_run(net, x, y, arena, NET_RUN_ARENA_SIZE)) {
        exit(1);
    }
}
#endif

enum { BATCH = 16 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int smaller(const void *a, const void *b) {
    const double p = *(const double *)a, q = *(const double *)b;
    return (p > q) - (p < q);
}

static double share(double *times, long count, double part) {
    qsort(times, (size_t)count, sizeof *times, smaller);
    return times[(long)((double)(count - 1) * part)];
}

static long resident(void) {
    long all = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld %ld", &all, &pages) != 2) {
        exit(1);
    }
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

/* Not isfinite(): options for fast arithmetic assume that it holds. */
static int is_finite(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (bits & 0x7F800000u) != 0x7F800000u;
}

static float *inputs, *outputs;

static void run(long ticks) {
    for (long i = 0; i < ticks; i++) {
        tick(inputs + i * INPUTS, outputs + i * OUTPUTS);
    }
}

/* Count outputs that differ from the first ones after NaN came in and the stream was reset. */
static long differences(long ticks) {
    const size_t size = (size_t)ticks * OUTPUTS;
    float *first = (float *)malloc(size * sizeof *first);
    float bad[INPUTS], spoiled[OUTPUTS];
    long count = 0;
    memcpy(first, outputs, size * sizeof *first);
    memset(bad, 0xFF, sizeof bad);
    tick(bad, spoiled);
    reset();
    run(ticks);
    for (size_t i = 0; i < size; i++) {
        count += memcmp(first + i, outputs + i, sizeof *first) != 0 || !is_finite(outputs[i]);
    }
    free(first);
    return count;
}

static void measure(long ticks, long calls) {
    double *times = (double *)malloc((size_t)calls * sizeof *times);
    const long batches = calls / BATCH;
    double p50;
    for (long i = -batches / 10 - 1; i < batches; i++) {
        const double start = now();
        for (long k = 0; k < BATCH; k++) {
            tick(inputs + (i + batches + k) % ticks * INPUTS, outputs);
        }
        times[i < 0 ? 0 : i] = (now() - start) / BATCH;
    }
    p50 = share(times, batches, 0.5);
    for (long i = 0; i < calls; i++) {
        const double start = now();
        tick(inputs + i % ticks * INPUTS, outputs);
        times[i] = now() - start;
    }
    printf("\"p50\": %.4f, \"p999\": %.4f", p50, share(times, calls, 0.999));
}

/* Run many ticks. Memory shall not grow, and outputs stay finite. */
static void endure(long ticks, long count) {
    long before = resident(), broken = 0;
    before = resident(); /* Once again: the first call of fopen takes memory itself. */
    for (long i = 0; i < count; i++) {
        tick(inputs + i % ticks * INPUTS, outputs);
        for (long k = 0; k < OUTPUTS; k++) {
            broken += !is_finite(outputs[k]);
        }
    }
    printf("\"ticks\": %ld, \"before\": %ld, \"after\": %ld, \"not_finite\": %ld", count, before, resident(), broken);
}

int main(int count, char **arguments) {
    const long ticks = atol(arguments[1]), calls = atol(arguments[2]);
    FILE *file = fopen("inputs", "rb");
    inputs = (float *)malloc((size_t)ticks * INPUTS * sizeof *inputs);
    outputs = (float *)malloc((size_t)ticks * OUTPUTS * sizeof *outputs);
    if (file == NULL || fread(inputs, sizeof(float) * INPUTS, (size_t)ticks, file) != (size_t)ticks) {
        return 1;
    }
    fclose(file);
    prepare();
    run(ticks);
    file = fopen("outputs", "wb");
    if (file == NULL || fwrite(outputs, sizeof(float) * OUTPUTS, (size_t)ticks, file) != (size_t)ticks) {
        return 1;
    }
    fclose(file);
    printf("{");
    if (count > 3) {
        endure(ticks, atol(arguments[3]));
    } else if (calls > 0) {
        measure(ticks, calls);
    } else {
        printf("\"after_nan\": %ld", differences(ticks));
    }
    printf("}\n");
    return 0;
}
