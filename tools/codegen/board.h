/* Start-up code of programs for emulated boards, and what they ask of the host by semihosting (ARM, "Semihosting for
   AArch32 and AArch64"; RISC-V International, "RISC-V Semihosting"). The including file defines main; the program's exit
   status is 0 where main returns 0. */
enum { SYS_OPEN = 1, SYS_WRITE0 = 4, SYS_WRITE = 5, SYS_READ = 6, SYS_EXIT = 24 };
enum { APPLICATION_EXIT = 0x20026, RUN_TIME_ERROR = 0x20023 };

extern unsigned _estack;
int main(void);
void failed(void);

#ifdef __riscv
static inline int host(int operation, const void *argument) {
    register int a0 __asm__("a0") = operation;
    register const void *a1 __asm__("a1") = argument;
    __asm__ volatile(
        ".balign 16\n.option push\n.option norvc\nslli zero, zero, 0x1f\nebreak\nsrai zero, zero, 7\n.option pop"
        : "+r"(a0) : "r"(a1) : "memory");
    return a0;
}

static inline void enable_floats(void) {
#ifdef __riscv_flen
    __asm__ volatile("csrs mstatus, %0" : : "r"(1 << 13));
#endif
}

/* The processor starts here: its stack, and where faults of all kinds go. */
__attribute__((section(".vectors"), used, naked)) void start(void) {
    __asm__("la sp, _estack\nla t0, failed\n.option push\n.option arch, +zicsr\ncsrw mtvec, t0\n.option pop\nj reset");
}

/* A tick is an instruction. */
static unsigned first;
static inline unsigned instructions(void) {
    unsigned count;
    __asm__ volatile(".option push\n.option arch, +zicsr\ncsrr %0, minstret\n.option pop" : "=r"(count));
    return count;
}
static inline void start_counting(void) { first = instructions(); }
static inline unsigned counted(void) { return instructions() - first; }
#else
static inline int host(int operation, const void *argument) {
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

static inline void enable_floats(void) {
    *(volatile unsigned *)0xE000ED88 |= 0xFu << 20; /* CPACR: floating point, vectors */
    __asm__ volatile("dsb\nisb");
}

void reset(void);
/* Stack, reset, then the exceptions: NMI, and faults of all kinds. */
__attribute__((section(".vectors"), used)) const void *const vectors[16] = {
    &_estack, (void *)reset, (void *)failed, (void *)failed, (void *)failed, (void *)failed, (void *)failed,
};

/* The processor's clock, which has 24 bits. */
#define CLOCK ((volatile unsigned *)0xE000E010)
static inline void start_counting(void) { CLOCK[1] = 0xFFFFFF, CLOCK[2] = 0, CLOCK[0] = 5; }
static inline unsigned counted(void) { return 0xFFFFFF - CLOCK[2]; }
#endif

__attribute__((aligned(4))) void failed(void) { host(SYS_EXIT, (void *)RUN_TIME_ERROR); }

void reset(void) {
    enable_floats();
    if (main()) failed();
    host(SYS_EXIT, (void *)APPLICATION_EXIT);
}

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

/* Ticks in which a function runs so many times. */
__attribute__((noipa, unused)) static unsigned timed(void (*function)(void *), void *argument, int runs) {
    start_counting();
    for (int i = 0; i < runs; i++) function(argument);
    return counted();
}

/* A function of one instruction, whose time is that of a call. */
__attribute__((noipa)) void nothing(void *argument) {}
