/* Calls the cases of cross_ops on an emulated board; input and output are files of the host, by semihosting. */
#include <stdint.h>

extern unsigned _estack;
extern void (*const cases[])(void *);
int main(void);
static unsigned char *const heap = (unsigned char *)HEAP;

static int host(int operation, const void *argument) {
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xAB" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void reset(void) {
    *(volatile unsigned *)0xE000ED88 |= 0xFu << 20; /* floating point, vectors */
    __asm__ volatile("dsb\nisb");
    host(0x18, (void *)(main() ? 0x20023 : 0x20026));
}

void failed(void) { host(0x18, (void *)0x20023); }

__attribute__((section(".vectors"), used)) const void *const vectors[16] = {
    &_estack, (void *)reset, (void *)failed, (void *)failed, (void *)failed, (void *)failed, (void *)failed,
};

static int opened(const char *name, int size, int mode) {
    const int arguments[3] = {(int)name, mode, size};
    return host(1, arguments);
}

static int moved(int operation, int file, void *data, int size) {
    const int arguments[3] = {file, (int)data, size};
    return size ? host(operation, arguments) : 0;
}

int main(void) {
    int in = opened("in", 2, 1), out = opened("out", 3, 5);
    int64_t count, words, head[2];
    if (in < 0 || out < 0 || moved(6, in, &count, 8)) return 1;
    for (int i = 0; i < count; i++) {
        if (moved(6, in, &words, 8)) return 1;
        int64_t *table = (int64_t *)heap, *sizes = table + words + 1, *results = sizes + words;
        unsigned char *end = (unsigned char *)(results + words);
        for (int k = 0; k < words; k++) {
            if (moved(6, in, head, 16)) return 1;
            end = (unsigned char *)(((uintptr_t)end + 63) & ~63u);
            table[k] = (uintptr_t)end, sizes[k] = head[0], results[k] = head[1];
            if (moved(6, in, end, (int)head[0])) return 1;
            end += head[0];
        }
        cases[i](table);
        for (int k = 0; k < words; k++)
            if (results[k] && moved(5, out, (void *)(uintptr_t)table[k], (int)sizes[k])) return 1;
    }
    return 0;
}
