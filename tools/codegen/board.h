/* Start-up code of programs for emulated Cortex-M boards, and what they ask of the host by semihosting (ARM, "Semihosting
   for AArch32 and AArch64"). The including file defines main; the program's exit status is 0 where main returns 0. */
enum { SYS_OPEN = 1, SYS_WRITE0 = 4, SYS_WRITE = 5, SYS_READ = 6, SYS_EXIT = 24 };
enum { APPLICATION_EXIT = 0x20026, RUN_TIME_ERROR = 0x20023 };

extern unsigned _estack;
int main(void);

static inline int host(int operation, const void *argument) {
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void failed(void) { host(SYS_EXIT, (void *)RUN_TIME_ERROR); }

void reset(void) {
    *(volatile unsigned *)0xE000ED88 |= 0xFu << 20; /* CPACR: floating point, vectors */
    __asm__ volatile("dsb\nisb");
    if (main()) failed();
    host(SYS_EXIT, (void *)APPLICATION_EXIT);
}

/* Stack, reset, then the exceptions: NMI, and faults of all kinds. */
__attribute__((section(".vectors"), used)) const void *const vectors[16] = {
    &_estack, (void *)reset, (void *)failed, (void *)failed, (void *)failed, (void *)failed, (void *)failed,
};

/* Prints a word as eight hexadecimal digits and a newline. */
static inline void print(unsigned word) {
    char text[10] = "00000000\n";
    for (int i = 0; i < 8; i++) text[i] = "0123456789abcdef"[word >> (28 - 4 * i) & 15];
    host(SYS_WRITE0, text);
}

static inline void print_floats(const float *numbers, int count) {
    for (int i = 0; i < count; i++) {
        unsigned word;
        __builtin_memcpy(&word, numbers + i, 4);
        print(word);
    }
}

/* Fills an array with the numbers from -1 to 1 that demos of libraries draw for --seed=1. */
static inline void draw(float *numbers, int count) {
    static unsigned state = 1;
    for (int i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        numbers[i] = (float)(state >> 8) / 8388608 - 1;
    }
}
