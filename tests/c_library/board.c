/* A program for a microcontroller without C library: calls of a library, outputs by semihosting. */
#include "NAME.h"
#include "board.h"

static unsigned char context[CONTEXT] __attribute__((aligned(64)));
static unsigned char arena[ARENA] __attribute__((aligned(64)));
static float input[INPUT], output[OUTPUT];

int main(void) {
    int code = NAME_init((NAME_t *)context, sizeof context);
    for (int call = 0; call < CALLS && code == 0; call++) {
        draw(input, INPUT);
        code = NAME_run((NAME_t *)context, input, output, arena, sizeof arena);
        print_floats(output, OUTPUT);
    }
    print(code);
    return 0;
}
