/* Continues texts by the most likely tokens. Texts are numbers of tokens, with "/" between them:
 *
 *     graphc compile model.gguf --places 512 -o model.so
 *     cc -O2 -o generate generate.c model.so -Wl,-rpath,.
 *     ./generate 20 504 3575 282 4649 314 / 504 2988
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model.h"

enum { BLOCK = MODEL_PREFILL_COUNT_MAX, PLACES = MODEL_STEP_POSITION_MAX + 1 };
static float logits[MODEL_STEP_LOGITS_COUNT];

static void check(int code) {
    if (code != MODEL_OK) {
        fprintf(stderr, "%s\n", model_error_text(code));
        exit(1);
    }
}

static void *memory(size_t size) {
    void *found = NULL;
    if (posix_memalign(&found, MODEL_ALIGNMENT, size) != 0) exit(1);
    return found;
}

int main(int argc, char **argv) {
    int32_t text[PLACES], token = 0;
    int next = 2, most = argc > 2 ? atoi(argv[1]) : 0;
    model_t *net = memory(model_context_size());
    size_t size = model_prefill_arena_size(BLOCK, PLACES - BLOCK), other = model_step_arena_size(PLACES - 1);
    void *arena = memory(size = size > other ? size : other);

    check(model_init(net, model_context_size()));
    while (next < argc) {
        int64_t count = 0, end, i;
        for (; next < argc && strcmp(argv[next], "/") != 0; next++) {
            if (count < PLACES) text[count++] = atoi(argv[next]);
        }
        next++;
        for (i = 0; i < count; i += BLOCK) {
            int64_t block = count - i < BLOCK ? count - i : BLOCK;
            check(model_prefill(net, block, i, text + i, logits, &token, arena, size));
        }
        end = count + most < PLACES ? count + most : PLACES;
        for (i = count; i < end; i++) {
            printf("%d ", (int)token);
            fflush(stdout);
            if (i + 1 < end) check(model_step(net, i, &token, logits, &token, arena, size));
        }
        printf("\n");
        check(model_reset_state(net));
    }
    free(arena);
    free(net);
    return 0;
}
