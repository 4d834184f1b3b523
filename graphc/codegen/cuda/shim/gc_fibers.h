// Fibers: stacks to switch between, by saving callee-saved registers, or by ucontext on other architectures.
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(GC_UCONTEXT) || (!defined(__x86_64__) && !defined(__aarch64__))
#define GC_SWITCH_BY_UCONTEXT 1
#include <ucontext.h>
#endif

namespace {

#if !defined(GC_SWITCH_BY_UCONTEXT)
extern "C" void gc_emu_switch(void** save, void* load);
#endif

#if !defined(GC_SWITCH_BY_UCONTEXT) && defined(__x86_64__)
asm(R"(
.text
.globl gc_emu_switch
.type gc_emu_switch,@function
gc_emu_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size gc_emu_switch,.-gc_emu_switch
)");
constexpr int kSaved = 6;  // Saved words below the return address.
constexpr int kReturn = 6;
#elif !defined(GC_SWITCH_BY_UCONTEXT)
asm(R"(
.text
.globl gc_emu_switch
.type gc_emu_switch,%function
gc_emu_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.size gc_emu_switch,.-gc_emu_switch
)");
constexpr int kSaved = 20;
constexpr int kReturn = 11;
#endif

#if !defined(GC_SWITCH_BY_UCONTEXT)
struct Context {
  void* stack_pointer = nullptr;
  void begin(char* stack, size_t size, void (*entry)()) {
    // Tops of stacks at multiples of 4 KiB would compete for the same lines of the L1 cache.
    static unsigned colour = 0;
    char* top = stack + size - (colour++ % 16) * 192;
    top = (char*)((uintptr_t)top & ~(uintptr_t)15);
    void** frame = (void**)top - (kSaved + 4);
    memset(frame, 0, (kSaved + 4) * sizeof(void*));
    // At the entry of a function the stack pointer is 8 below a multiple of 16 on x86-64.
#if defined(__x86_64__)
    if (((uintptr_t)(frame + kReturn + 1) & 15) != 8) --frame;
#endif
    frame[kReturn] = (void*)entry;
    stack_pointer = frame;
  }
};
inline void change(Context& from, Context& to) { gc_emu_switch(&from.stack_pointer, to.stack_pointer); }
#else
struct Context {
  ucontext_t context;
  void begin(char* stack, size_t size, void (*entry)()) {
    getcontext(&context);
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = size;
    context.uc_link = nullptr;
    makecontext(&context, entry, 0);
  }
};
inline void change(Context& from, Context& to) { swapcontext(&from.context, &to.context); }
#endif

}  // namespace
