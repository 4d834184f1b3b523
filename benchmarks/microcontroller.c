/* A program for an emulated Cortex-M board: runs a net, and prints its outputs, its instructions and its stack. */
extern unsigned _estack, _ebss;
int main(void);
int net(const float *input, float *output);

static void host(int operation, const void *argument) {
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
}

void reset(void) {
    *(volatile unsigned *)0xE000ED88 |= 0xFu << 20; /* floating point */
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

static float input[INPUT], output[OUTPUT];
#define CLOCK ((volatile unsigned *)0xE000E010)

/* Ticks of RUNS calls; one tick is 40 instructions, for the emulator counts a nanosecond for each. */
static unsigned timed(void) {
    CLOCK[1] = 0xFFFFFF, CLOCK[2] = 0, CLOCK[0] = 5;
    for (int i = 0; i < RUNS; i++) net(input, output);
    return 0xFFFFFF - CLOCK[2];
}

int main(void) {
    for (int i = 0; i < INPUT; i++) input[i] = drawn();
    volatile unsigned *const low = &_ebss, *const high = (unsigned *)__builtin_frame_address(0) - 64;
    for (volatile unsigned *p = low; p < high; p++) *p = 0x5A5A5A5A;
    int code = net(input, output);
    volatile unsigned *used = low;
    while (used < high && *used == 0x5A5A5A5A) used++;
    for (int i = 0; i < OUTPUT; i++) {
        unsigned word;
        __builtin_memcpy(&word, output + i, 4);
        print(word);
    }
    print((unsigned)((char *)&_estack - (char *)used));
    print(timed());
    print(code);
    return 0;
}
