/* A tick of an amplifier, written by hand: the peer of benchmarks.streams.
 *
 * Sizes are macros, so that the compiler unrolls and vectorizes. BLOCK is the number of samples of a tick.
 *
 *   LSTM:    HIDDEN. Input of one sample, a linear layer, and the input added.
 *   WaveNet: CHANNELS_A, CHANNELS_B, DILATIONS_A, DILATIONS_B (lists of powers of two), their sums
 *            REACH_A and REACH_B, MAX_DILATION. Two stacks of layers with kernels of 3 samples.
 *
 * Weights come from one file in the order of the arrays below. Without SHORT_TANH, tanh is the C library's.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef SHORT_TANH
static inline float tanh_of(float x) { return 1 - 2 / (expf(2 * x) + 1); }
#else
static inline float tanh_of(float x) { return tanhf(x); }
#endif

#ifdef HIDDEN

enum { GATES = 4 * HIDDEN, VECTORS = GATES / 16 };
typedef float vec __attribute__((vector_size(64)));
_Static_assert(GATES % 16 == 0, "gates fill vectors");

/* Gates in the order input, forget, output, cell: the first three are sigmoids. */
static struct {
    float recurrent[HIDDEN][GATES], input[GATES], bias[GATES], linear[HIDDEN], linear_bias;
} weights __attribute__((aligned(64)));
static struct {
    float hidden[HIDDEN], cell[HIDDEN];
} state;

static void tick(const float *x, float *y) {
    for (int t = 0; t < BLOCK; t++) {
        float gates[GATES] __attribute__((aligned(64)));
        float sum = weights.linear_bias;
        vec sums[VECTORS];
#pragma GCC unroll 16
        for (int v = 0; v < VECTORS; v++) {
            sums[v] = ((const vec *)weights.bias)[v] + ((const vec *)weights.input)[v] * x[t];
        }
        for (int i = 0; i < HIDDEN; i++) {
#pragma GCC unroll 16
            for (int v = 0; v < VECTORS; v++) {
                sums[v] += ((const vec *)weights.recurrent[i])[v] * state.hidden[i];
            }
        }
        memcpy(gates, sums, sizeof gates);
        for (int g = 0; g < 3 * HIDDEN; g++) {
            gates[g] = 1 / (1 + expf(-gates[g]));
        }
        for (int i = 0; i < HIDDEN; i++) {
            state.cell[i] = gates[HIDDEN + i] * state.cell[i] + gates[i] * tanh_of(gates[3 * HIDDEN + i]);
        }
        for (int i = 0; i < HIDDEN; i++) {
            state.hidden[i] = gates[2 * HIDDEN + i] * tanh_of(state.cell[i]);
            sum += state.hidden[i] * weights.linear[i];
        }
        y[t] = sum + x[t];
    }
}

#else

enum { KERNEL = 3, WINDOW = 4096 };
static const int dilations_a[] = {DILATIONS_A}, dilations_b[] = {DILATIONS_B};
enum {
    LAYERS_A = sizeof dilations_a / sizeof *dilations_a,
    LAYERS_B = sizeof dilations_b / sizeof *dilations_b
};

#define LAYER(C)                                                                     \
    struct {                                                                         \
        float conv[KERNEL][C][C], bias[C], mix[C], one[C][C], one_bias[C];           \
    }
static struct {
    float first_a[CHANNELS_A];
    LAYER(CHANNELS_A) a[LAYERS_A];
    float head_a[CHANNELS_A][CHANNELS_B];
    float first_b[CHANNELS_A][CHANNELS_B];
    LAYER(CHANNELS_B) b[LAYERS_B];
    float head_b[CHANNELS_B], head_bias;
} weights;

#if BLOCK < 64

/* Samples one by one; vectors are channels. Layer l has a ring of two dilations, whose oldest row is replaced once it
 * was read. Rings lie side by side, each after those of smaller dilations. */
static struct {
    float a[2 * REACH_A][CHANNELS_A], b[2 * REACH_B][CHANNELS_B];
    unsigned now;
} state;

#define RUN_STACK(C, LAYERS, DILATIONS, WEIGHTS)                              \
    for (int l = 0; l < LAYERS; l++) {                                               \
        const unsigned d = (unsigned)DILATIONS[l], last = 2 * d - 1;                 \
        float *old = ring[state.now & last];                                         \
        const float *mid = ring[(state.now + d) & last];                             \
        float z0[C], z1[C], z2[C], s0[C], s1[C];                                     \
        for (int c = 0; c < C; c++) {                                                \
            z0[c] = WEIGHTS[l].bias[c] + WEIGHTS[l].mix[c] * x;                      \
            z1[c] = z2[c] = s1[c] = 0;                                               \
            s0[c] = y[c] + WEIGHTS[l].one_bias[c];                                   \
        }                                                                            \
        for (int i = 0; i < C; i++) {                                                \
            for (int c = 0; c < C; c++) {                                            \
                z0[c] += WEIGHTS[l].conv[0][i][c] * old[i];                          \
            }                                                                        \
            for (int c = 0; c < C; c++) {                                            \
                z1[c] += WEIGHTS[l].conv[1][i][c] * mid[i];                          \
            }                                                                        \
            for (int c = 0; c < C; c++) {                                            \
                z2[c] += WEIGHTS[l].conv[2][i][c] * y[i];                            \
            }                                                                        \
        }                                                                            \
        for (int c = 0; c < C; c++) {                                                \
            old[c] = y[c];                                                           \
            z0[c] = tanh_of(z0[c] + z1[c] + z2[c]);                                  \
            head[c] += z0[c];                                                        \
        }                                                                            \
        for (int i = 0; i < C; i += 2) {                                             \
            for (int c = 0; c < C; c++) {                                            \
                s0[c] += WEIGHTS[l].one[i][c] * z0[i];                               \
            }                                                                        \
            for (int c = 0; c < C; c++) {                                            \
                s1[c] += WEIGHTS[l].one[i + 1][c] * z0[i + 1];                       \
            }                                                                        \
        }                                                                            \
        for (int c = 0; c < C; c++) {                                                \
            y[c] = s0[c] + s1[c];                                                    \
        }                                                                            \
        ring += 2 * d;                                                               \
    }

static float second(float x, const float *from, float *head) {
    float y[CHANNELS_B], sum = weights.head_bias;
    float(*ring)[CHANNELS_B] = state.b;
    for (int c = 0; c < CHANNELS_B; c++) {
        y[c] = 0;
    }
    for (int i = 0; i < CHANNELS_A; i++) {
        for (int c = 0; c < CHANNELS_B; c++) {
            y[c] += weights.first_b[i][c] * from[i];
        }
    }
    RUN_STACK(CHANNELS_B, LAYERS_B, dilations_b, weights.b)
    for (int c = 0; c < CHANNELS_B; c++) {
        sum += weights.head_b[c] * head[c];
    }
    return sum;
}

static float sample(float x) {
    float y[CHANNELS_A], head[CHANNELS_A], next[CHANNELS_B];
    float(*ring)[CHANNELS_A] = state.a;
    for (int c = 0; c < CHANNELS_A; c++) {
        y[c] = weights.first_a[c] * x;
        head[c] = 0;
    }
    RUN_STACK(CHANNELS_A, LAYERS_A, dilations_a, weights.a)
    for (int c = 0; c < CHANNELS_B; c++) {
        next[c] = 0;
    }
    for (int i = 0; i < CHANNELS_A; i++) {
        for (int c = 0; c < CHANNELS_B; c++) {
            next[c] += weights.head_a[i][c] * head[i];
        }
    }
    return second(x, y, next);
}

static void tick(const float *x, float *y) {
    for (int t = 0; t < BLOCK; t++) {
        y[t] = sample(x[t]);
        state.now++;
    }
}

#else

/* Layer by layer; vectors are samples. Channels have buffers, whose end moves back to its begin once they are full;
 * their distance is no power of two, so that they do not share sets of a cache. */
enum { SPAN = 2 * MAX_DILATION + WINDOW + 48, LANES = 16, VECTORS = 4 };
_Static_assert(BLOCK == LANES * VECTORS, "a tick is a block of registers");
static struct {
    float a[LAYERS_A][CHANNELS_A][SPAN], b[LAYERS_B][CHANNELS_B][SPAN];
    int now;
} state;

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef float loaded __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef struct {
    vec p0, p1, p2, p3, q0, q1, q2, q3;
} sums;

/* Add the products of `taps` rows of each channel for two results: eight sums in registers. */
static inline __attribute__((always_inline)) sums product(
    sums s, int channels, int taps, const float *w, const float *in, long stride, long gap
) {
    for (int k = 0; k < taps; k++) {
        for (int i = 0; i < channels; i++) {
            const loaded *x = (const loaded *)(in + i * stride + k * gap);
            const float *v = w + (k * channels + i) * channels;
            const vec x0 = *x, x1 = *(const loaded *)((const float *)x + LANES);
            const vec x2 = *(const loaded *)((const float *)x + 2 * LANES);
            const vec x3 = *(const loaded *)((const float *)x + 3 * LANES);
            s.p0 += v[0] * x0;
            s.p1 += v[0] * x1;
            s.p2 += v[0] * x2;
            s.p3 += v[0] * x3;
            s.q0 += v[1] * x0;
            s.q1 += v[1] * x1;
            s.q2 += v[1] * x2;
            s.q3 += v[1] * x3;
        }
    }
    return s;
}

static inline void store(float *to, vec a, vec b, vec c, vec d) {
    vec *out = (vec *)to;
    out[0] = a, out[1] = b, out[2] = c, out[3] = d;
}

#define RUN_STACK(C, LAYERS, DILATIONS, WEIGHTS, BUFFERS)                                         \
    for (int l = 0; l < LAYERS; l++) {                                                            \
        float z[C][BLOCK] __attribute__((aligned(64)));                                           \
        const int d = DILATIONS[l];                                                               \
        const vec *in = (const vec *)x;                                                           \
        for (int c = 0; c < C; c++) {                                                             \
            memcpy(&BUFFERS[l][c][now], y[c], sizeof y[c]);                                       \
        }                                                                                         \
        for (int c = 0; c < C; c += 2) {                                                          \
            const float m = WEIGHTS[l].mix[c], n = WEIGHTS[l].mix[c + 1];                         \
            const float e = WEIGHTS[l].bias[c], f = WEIGHTS[l].bias[c + 1];                       \
            sums s = {m * in[0] + e, m * in[1] + e, m * in[2] + e, m * in[3] + e,                 \
                      n * in[0] + f, n * in[1] + f, n * in[2] + f, n * in[3] + f};                \
            s = product(s, C, KERNEL, &WEIGHTS[l].conv[0][0][c], &BUFFERS[l][0][now - 2 * d], SPAN, d); \
            store(z[c], s.p0, s.p1, s.p2, s.p3);                                                  \
            store(z[c + 1], s.q0, s.q1, s.q2, s.q3);                                              \
        }                                                                                         \
        for (int c = 0; c < C; c++) {                                                             \
            for (int t = 0; t < BLOCK; t++) {                                                     \
                z[c][t] = tanh_of(z[c][t]);                                                       \
                head[c][t] += z[c][t];                                                            \
            }                                                                                     \
        }                                                                                         \
        for (int c = 0; c < C; c += 2) {                                                          \
            const float e = WEIGHTS[l].one_bias[c], f = WEIGHTS[l].one_bias[c + 1];               \
            const vec *p = (const vec *)y[c], *q = (const vec *)y[c + 1];                         \
            sums s = {p[0] + e, p[1] + e, p[2] + e, p[3] + e, q[0] + f, q[1] + f, q[2] + f, q[3] + f}; \
            s = product(s, C, 1, &WEIGHTS[l].one[0][c], z[0], BLOCK, 0);                          \
            store(y[c], s.p0, s.p1, s.p2, s.p3);                                                  \
            store(y[c + 1], s.q0, s.q1, s.q2, s.q3);                                              \
        }                                                                                         \
    }

static void second(const float *x, float (*from)[BLOCK], float (*head)[BLOCK], float *out, int now) {
    float y[CHANNELS_B][BLOCK] __attribute__((aligned(64)));
    memset(y, 0, sizeof y);
    for (int c = 0; c < CHANNELS_B; c++) {
        for (int i = 0; i < CHANNELS_A; i++) {
            for (int t = 0; t < BLOCK; t++) {
                y[c][t] += weights.first_b[i][c] * from[i][t];
            }
        }
    }
    RUN_STACK(CHANNELS_B, LAYERS_B, dilations_b, weights.b, state.b)
    for (int t = 0; t < BLOCK; t++) {
        out[t] = weights.head_bias;
    }
    for (int c = 0; c < CHANNELS_B; c++) {
        for (int t = 0; t < BLOCK; t++) {
            out[t] += weights.head_b[c] * head[c][t];
        }
    }
}

static void move_back(float *buffers, int channels) {
    for (int i = 0; i < channels; i++, buffers += SPAN) {
        memmove(buffers, buffers + state.now, 2 * MAX_DILATION * sizeof(float));
    }
}

static void tick(const float *sound, float *out) {
    float y[CHANNELS_A][BLOCK] __attribute__((aligned(64))), head[CHANNELS_A][BLOCK] __attribute__((aligned(64)));
    float next[CHANNELS_B][BLOCK] __attribute__((aligned(64))), x[BLOCK] __attribute__((aligned(64)));
    const int now = 2 * MAX_DILATION + state.now;
    memcpy(x, sound, sizeof x);
    for (int c = 0; c < CHANNELS_A; c++) {
        for (int t = 0; t < BLOCK; t++) {
            y[c][t] = weights.first_a[c] * x[t];
            head[c][t] = 0;
        }
    }
    RUN_STACK(CHANNELS_A, LAYERS_A, dilations_a, weights.a, state.a)
    memset(next, 0, sizeof next);
    for (int c = 0; c < CHANNELS_B; c++) {
        for (int i = 0; i < CHANNELS_A; i++) {
            for (int t = 0; t < BLOCK; t++) {
                next[c][t] += weights.head_a[i][c] * head[i][t];
            }
        }
    }
    second(x, y, next, out, now);
    state.now += BLOCK;
    if (state.now + BLOCK > WINDOW) {
        move_back(state.a[0][0], LAYERS_A * CHANNELS_A);
        move_back(state.b[0][0], LAYERS_B * CHANNELS_B);
        state.now = 0;
    }
}

#endif
#endif

static void reset(void) { memset(&state, 0, sizeof state); }

static void prepare(void) {
    FILE *file = fopen("weights", "rb");
    if (file == NULL || fread(&weights, sizeof weights, 1, file) != 1 || fgetc(file) != EOF) {
        exit(1);
    }
    fclose(file);
    reset();
}
