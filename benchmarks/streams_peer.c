/* A tick of an amplifier, written by hand: the peer of benchmarks.streams.
 *
 * Sizes are macros, so that the compiler unrolls and vectorizes. BLOCK is the number of samples of a tick.
 *
 *   LSTM:    HIDDEN. Input of one sample, a linear layer, and the input added.
 *   WaveNet: CHANNELS_A, CHANNELS_B, DILATIONS_A, DILATIONS_B (lists). Two stacks of layers with kernels of 3 samples.
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

enum { GATES = 4 * HIDDEN, TILE = GATES % 16 == 0 ? 16 : 8 };

/* Gates in the order input, forget, output, cell: the first three are sigmoids. */
static struct {
    float recurrent[HIDDEN][GATES], input[GATES], bias[GATES], linear[HIDDEN], linear_bias;
} weights;
static struct {
    float hidden[HIDDEN], cell[HIDDEN];
} state;

static void tick(const float *x, float *y) {
    for (int t = 0; t < BLOCK; t++) {
        float gates[GATES] __attribute__((aligned(64)));
        float sum = weights.linear_bias;
        for (int tile = 0; tile < GATES; tile += TILE) {
            float even[TILE], odd[TILE];
            for (int g = 0; g < TILE; g++) {
                even[g] = weights.bias[tile + g] + weights.input[tile + g] * x[t];
                odd[g] = 0;
            }
            for (int i = 0; i < HIDDEN; i += 2) {
                for (int g = 0; g < TILE; g++) {
                    even[g] += weights.recurrent[i][tile + g] * state.hidden[i];
                }
                for (int g = 0; g < TILE; g++) {
                    odd[g] += weights.recurrent[i + 1][tile + g] * state.hidden[i + 1];
                }
            }
            for (int g = 0; g < TILE; g++) {
                gates[tile + g] = even[g] + odd[g];
            }
        }
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
    LAYERS_B = sizeof dilations_b / sizeof *dilations_b,
    REACH = 2 * 512
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

#if BLOCK < 16

/* Samples one by one; vectors are channels. Each layer has a ring of its own; all of them are equally long, and the
 * tap of a layer is its dilation behind the newest sample. */
static struct {
    float a[LAYERS_A][2 * REACH][CHANNELS_A], b[LAYERS_B][2 * REACH][CHANNELS_B];
    unsigned now;
} state;

#define RUN_STACK(C, LAYERS, DILATIONS, WEIGHTS, RINGS)                               \
    for (int l = 0; l < LAYERS; l++) {                                                \
        const unsigned d = (unsigned)DILATIONS[l], last = 2 * REACH - 1;              \
        const float *old = RINGS[l][(state.now - 2 * d) & last];                      \
        const float *mid = RINGS[l][(state.now - d) & last];                          \
        float z0[C], z1[C], z2[C], s0[C], s1[C];                                      \
        for (int c = 0; c < C; c++) {                                                 \
            RINGS[l][state.now & last][c] = y[c];                                     \
            z0[c] = WEIGHTS[l].bias[c] + WEIGHTS[l].mix[c] * x;                       \
            z1[c] = z2[c] = s1[c] = 0;                                                \
            s0[c] = y[c] + WEIGHTS[l].one_bias[c];                                    \
        }                                                                             \
        for (int i = 0; i < C; i++) {                                                 \
            for (int c = 0; c < C; c++) {                                             \
                z0[c] += WEIGHTS[l].conv[0][i][c] * old[i];                           \
            }                                                                         \
            for (int c = 0; c < C; c++) {                                             \
                z1[c] += WEIGHTS[l].conv[1][i][c] * mid[i];                           \
            }                                                                         \
            for (int c = 0; c < C; c++) {                                             \
                z2[c] += WEIGHTS[l].conv[2][i][c] * y[i];                             \
            }                                                                         \
        }                                                                             \
        for (int c = 0; c < C; c++) {                                                 \
            z0[c] = tanh_of(z0[c] + z1[c] + z2[c]);                                   \
            head[c] += z0[c];                                                         \
        }                                                                             \
        for (int i = 0; i < C; i += 2) {                                              \
            for (int c = 0; c < C; c++) {                                             \
                s0[c] += WEIGHTS[l].one[i][c] * z0[i];                                \
            }                                                                         \
            for (int c = 0; c < C; c++) {                                             \
                s1[c] += WEIGHTS[l].one[i + 1][c] * z0[i + 1];                        \
            }                                                                         \
        }                                                                             \
        for (int c = 0; c < C; c++) {                                                 \
            y[c] = s0[c] + s1[c];                                                     \
        }                                                                             \
    }

static float second(float x, const float *from, float *head) {
    float y[CHANNELS_B], sum = weights.head_bias;
    for (int c = 0; c < CHANNELS_B; c++) {
        y[c] = 0;
    }
    for (int i = 0; i < CHANNELS_A; i++) {
        for (int c = 0; c < CHANNELS_B; c++) {
            y[c] += weights.first_b[i][c] * from[i];
        }
    }
    RUN_STACK(CHANNELS_B, LAYERS_B, dilations_b, weights.b, state.b)
    for (int c = 0; c < CHANNELS_B; c++) {
        sum += weights.head_b[c] * head[c];
    }
    return sum;
}

static float sample(float x) {
    float y[CHANNELS_A], head[CHANNELS_A], next[CHANNELS_B];
    for (int c = 0; c < CHANNELS_A; c++) {
        y[c] = weights.first_a[c] * x;
        head[c] = 0;
    }
    RUN_STACK(CHANNELS_A, LAYERS_A, dilations_a, weights.a, state.a)
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

/* Layer by layer; vectors are samples. Each channel of a layer has a buffer, whose end moves back to its begin once it
 * is full. */
static struct {
    float a[LAYERS_A][CHANNELS_A][REACH + WINDOW], b[LAYERS_B][CHANNELS_B][REACH + WINDOW];
    int now;
} state;

enum { LANES = 16 };

/* Two results at once of LANES samples: each load of a sample serves both. */
#define RUN_STACK(C, LAYERS, DILATIONS, WEIGHTS, BUFFERS)                             \
    for (int l = 0; l < LAYERS; l++) {                                                \
        float z[C][BLOCK] __attribute__((aligned(64)));                               \
        const int d = DILATIONS[l];                                                   \
        for (int c = 0; c < C; c++) {                                                 \
            memcpy(&BUFFERS[l][c][now], y[c], sizeof y[c]);                           \
        }                                                                             \
        for (int c = 0; c < C; c += 2) {                                              \
            for (int t = 0; t < BLOCK; t += LANES) {                                  \
                float p[LANES], q[LANES];                                             \
                for (int n = 0; n < LANES; n++) {                                     \
                    p[n] = WEIGHTS[l].bias[c] + WEIGHTS[l].mix[c] * x[t + n];         \
                    q[n] = WEIGHTS[l].bias[c + 1] + WEIGHTS[l].mix[c + 1] * x[t + n]; \
                }                                                                     \
                for (int i = 0; i < C; i++) {                                         \
                    for (int k = 0; k < KERNEL; k++) {                                \
                        const float *in = &BUFFERS[l][i][now + t - (KERNEL - 1 - k) * d]; \
                        const float v = WEIGHTS[l].conv[k][i][c], w = WEIGHTS[l].conv[k][i][c + 1]; \
                        for (int n = 0; n < LANES; n++) {                             \
                            p[n] += v * in[n];                                        \
                            q[n] += w * in[n];                                        \
                        }                                                             \
                    }                                                                 \
                }                                                                     \
                for (int n = 0; n < LANES; n++) {                                     \
                    z[c][t + n] = tanh_of(p[n]);                                      \
                    z[c + 1][t + n] = tanh_of(q[n]);                                  \
                }                                                                     \
            }                                                                         \
        }                                                                             \
        for (int c = 0; c < C; c += 2) {                                              \
            for (int t = 0; t < BLOCK; t += LANES) {                                  \
                float p[LANES], q[LANES];                                             \
                for (int n = 0; n < LANES; n++) {                                     \
                    head[c][t + n] += z[c][t + n];                                    \
                    head[c + 1][t + n] += z[c + 1][t + n];                            \
                    p[n] = y[c][t + n] + WEIGHTS[l].one_bias[c];                      \
                    q[n] = y[c + 1][t + n] + WEIGHTS[l].one_bias[c + 1];              \
                }                                                                     \
                for (int i = 0; i < C; i++) {                                         \
                    const float v = WEIGHTS[l].one[i][c], w = WEIGHTS[l].one[i][c + 1]; \
                    for (int n = 0; n < LANES; n++) {                                 \
                        p[n] += v * z[i][t + n];                                      \
                        q[n] += w * z[i][t + n];                                      \
                    }                                                                 \
                }                                                                     \
                for (int n = 0; n < LANES; n++) {                                     \
                    y[c][t + n] = p[n];                                               \
                    y[c + 1][t + n] = q[n];                                           \
                }                                                                     \
            }                                                                         \
        }                                                                             \
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

static void tick(const float *x, float *out) {
    float y[CHANNELS_A][BLOCK] __attribute__((aligned(64))), head[CHANNELS_A][BLOCK] __attribute__((aligned(64)));
    float next[CHANNELS_B][BLOCK] __attribute__((aligned(64)));
    const int now = REACH + state.now;
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
        for (int l = 0; l < LAYERS_A; l++) {
            for (int c = 0; c < CHANNELS_A; c++) {
                memmove(state.a[l][c], &state.a[l][c][state.now], REACH * sizeof(float));
            }
        }
        for (int l = 0; l < LAYERS_B; l++) {
            for (int c = 0; c < CHANNELS_B; c++) {
                memmove(state.b[l][c], &state.b[l][c][state.now], REACH * sizeof(float));
            }
        }
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
