/* A program for an emulated board: runs a net, and prints its outputs, its stack and ticks of the counter. */
#include "board.h"

extern unsigned _ebss;
int net(const float *input, float *output);

static float input[INPUT], output[OUTPUT];
register unsigned *stack __asm__("sp");
static void call(void *unused) { net(input, output); }

int main(void) {
    draw(input, INPUT);
    volatile unsigned *const low = &_ebss, *const high = stack;
    for (volatile unsigned *p = low; p < high; p++) *p = 0x5A5A5A5A;
    int code = net(input, output);
    volatile unsigned *used = low;
    while (used < high && *used == 0x5A5A5A5A) used++;
    print_floats(output, OUTPUT);
    print((unsigned)((char *)&_estack - (char *)used));
    print(timed(call, 0, RUNS));
    print(code);
    return 0;
}
