// Preloaded beside a library whose CPUID instructions bench/held.py replaced by UD2: answers them as a CPU
// would that has AVX2 and nothing beyond it.
#define _GNU_SOURCE
#include <cpuid.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#define BIT(n) (1u << (n))

static struct sigaction before;

static void hide(unsigned leaf, unsigned subleaf, unsigned* eax, unsigned* ebx, unsigned* ecx,
                 unsigned* edx) {
  if (leaf != 7) return;
  if (subleaf == 0) {
    *ebx &=
        ~(BIT(16) | BIT(17) | BIT(21) | BIT(26) | BIT(27) | BIT(28) | BIT(30) | BIT(31));  // AVX-512 F to VL
    *ecx &= ~(BIT(1) | BIT(6) | BIT(11) | BIT(12) | BIT(14));                     // its VBMI to VPOPCNTDQ
    *edx &= ~(BIT(2) | BIT(3) | BIT(8) | BIT(22) | BIT(23) | BIT(24) | BIT(25));  // its FP16; AMX
  } else {
    *eax &= ~(BIT(4) | BIT(5) | BIT(21) | BIT(23));           // AVX-VNNI, AVX512-BF16, AMX-FP16, AVX-IFMA
    *edx &= ~(BIT(4) | BIT(5) | BIT(8) | BIT(10) | BIT(19));  // AVX-VNNI-INT8 and 16, AVX-NE-CONVERT, AVX10
  }
}

static void answer(int signal, siginfo_t* info, void* context) {
  greg_t* registers = ((ucontext_t*)context)->uc_mcontext.gregs;
  const unsigned char* code = (const unsigned char*)registers[REG_RIP];
  if (code[0] != 0x0f || code[1] != 0x0b) {  // not ours: it happens again, unhandled
    sigaction(signal, &before, NULL);
    return;
  }
  (void)info;
  const unsigned leaf = (unsigned)registers[REG_RAX], subleaf = (unsigned)registers[REG_RCX];
  unsigned eax, ebx, ecx, edx;
  __cpuid_count(leaf, subleaf, eax, ebx, ecx, edx);
  hide(leaf, subleaf, &eax, &ebx, &ecx, &edx);
  registers[REG_RAX] = eax;
  registers[REG_RBX] = ebx;
  registers[REG_RCX] = ecx;
  registers[REG_RDX] = edx;
  registers[REG_RIP] += 2;
}

__attribute__((constructor)) static void install(void) {
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_sigaction = answer;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGILL, &action, &before);
}
