/* A program for a microcontroller without C library: start-up, calls of a library, outputs by semihosting. */
#include "NAME.h"

extern unsigned _estack;
int main(void);

static void host(int operation, const void *argument) {
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
}

void reset(void) {
    *(volatile unsigned *)0xE000ED88 |= 0xFu << 20; /* floating point, vectors */
    __asm__ volatile("dsb\nisb");
    main();
    host(0x18, (void *)0x20026);
}

__attribute__((section(".vectors"), used)) const void *const vectors[16] = {&_estack, (void *)reset};

static void print(unsigned word) {
    char text[10] = "00000000\n";
    for (int i = 0; i < 8; i++) text[i] = "0123456789abcdef"[word >> (28 - 4 * i) & 15];
    host(4, text);
}

static unsigned state = 1;
static float drawn(void) {
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) / 8388608 - 1;
}

static unsigned char context[CONTEXT] __attribute__((aligned(64)));
static unsigned char arena[ARENA] __attribute__((aligned(64)));
static float input[INPUT], output[OUTPUT];

int main(void) {
    int code = NAME_init((NAME_t *)context, sizeof context);
    for (int call = 0; call < CALLS && code == 0; call++) {
        for (int i = 0; i < INPUT; i++) input[i] = drawn();
        code = NAME_run((NAME_t *)context, input, output, arena, sizeof arena);
        for (int i = 0; i < OUTPUT; i++) {
            unsigned word;
            __builtin_memcpy(&word, output + i, 4);
            print(word);
        }
    }
    print(code);
    return 0;
}
