#include "isolate/sandbox_init.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstdint>

#include "isolate/sandbox_syscall.h"

// The init's program, copied out of our own text: it runs on its own, without a C library. Descriptor 0 is
// the status pipe, all others are closed first. The status is kept on the stack.
// The two words at its end are data: whether it stays when the job has ended, and the job's number, which it
// learns when the job is there.
extern "C" const char plimsoll_init_begin[], plimsoll_init_stays[], plimsoll_init_job[], plimsoll_init_end[];
#if defined(__x86_64__)
asm(R"(
  .pushsection .text
  .globl plimsoll_init_begin, plimsoll_init_stays, plimsoll_init_job, plimsoll_init_end
  .hidden plimsoll_init_begin, plimsoll_init_stays, plimsoll_init_job, plimsoll_init_end
plimsoll_init_begin:
  movl $436, %eax            # close_range(1, ~0, 0)
  movl $1, %edi
  movl $-1, %esi
  xorl %edx, %edx
  syscall
1:
  movl $61, %eax             # wait4(-1, rsp - 64, __WALL, 0)
  movq $-1, %rdi
  leaq -64(%rsp), %rsi
  movl $0x40000000, %edx
  xorl %r10d, %r10d
  syscall
  cmpq $-10, %rax            # ECHILD: nobody is left
  je 2f
  cmpl plimsoll_init_job(%rip), %eax
  jne 1b                     # an orphan, or a wait interrupted
  movl $1, %eax              # write(0, rsp - 64, 4)
  xorl %edi, %edi
  leaq -64(%rsp), %rsi
  movl $4, %edx
  syscall
  cmpl $0, plimsoll_init_stays(%rip)
  jne 1b
2:
  movl $231, %eax            # exit_group(0)
  xorl %edi, %edi
  syscall
plimsoll_init_stays:
  .long 0
plimsoll_init_job:
  .long 2
plimsoll_init_end:
  .popsection
)");
#else
asm(R"(
  .pushsection .text
  .globl plimsoll_init_begin, plimsoll_init_stays, plimsoll_init_job, plimsoll_init_end
  .hidden plimsoll_init_begin, plimsoll_init_stays, plimsoll_init_job, plimsoll_init_end
  .balign 4
plimsoll_init_begin:
  mov x8, #436               // close_range(1, ~0, 0)
  mov x0, #1
  mov w1, #-1
  mov x2, #0
  svc #0
1:
  mov x8, #260               // wait4(-1, sp - 64, __WALL, 0)
  mov x0, #-1
  sub x1, sp, #64
  mov x2, #0x40000000
  mov x3, #0
  svc #0
  cmn x0, #10                // ECHILD: nobody is left
  b.eq 2f
  ldr w9, plimsoll_init_job
  cmp w0, w9
  b.ne 1b                    // an orphan, or a wait interrupted
  mov x8, #64                // write(0, sp - 64, 4)
  mov x0, #0
  sub x1, sp, #64
  mov x2, #4
  svc #0
  ldr w9, plimsoll_init_stays
  cbnz w9, 1b
2:
  mov x8, #94                // exit_group(0)
  mov x0, #0
  svc #0
plimsoll_init_stays:
  .long 0
plimsoll_init_job:
  .long 2
plimsoll_init_end:
  .popsection
)");
#endif

namespace plimsoll::sandbox {
namespace {

constexpr uint64_t kLoadAddress = 0x400000;
constexpr unsigned kMemfdExecutable = 0x10;  // MFD_EXEC, since Linux 6.3
constexpr int kCouldNotExec = 127;

// Which one is no matter, as long as the job has not got it; who may make namespaces has this one. It is made
// to survive exec as any user.
int keep_a_capability() noexcept {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2] = {};
  long result = raw_syscall(SYS_capget, &header, sets);
  sets[0].inheritable |= 1U << CAP_SYS_ADMIN;
  if (result == 0) result = raw_syscall(SYS_capset, &header, sets);
  if (result == 0) result = raw_syscall(SYS_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_ADMIN, 0, 0);
  return static_cast<int>(result);
}

int open_image(const std::string& image) noexcept {
  const char name[] = "plimsoll-init";
  long file = raw_syscall(SYS_memfd_create, name, MFD_CLOEXEC | kMemfdExecutable);
  if (file == -EINVAL) file = raw_syscall(SYS_memfd_create, name, MFD_CLOEXEC);
  if (file < 0) return static_cast<int>(file);
  const long written = raw_syscall(SYS_write, file, image.data(), image.size());
  if (written == static_cast<long>(image.size())) return static_cast<int>(file);
  raw_syscall(SYS_close, file);
  return written < 0 ? static_cast<int>(written) : -ENOSPC;
}

}  // namespace

std::string init_image(bool stays) {
  std::string code(plimsoll_init_begin, plimsoll_init_end);
  code[static_cast<size_t>(plimsoll_init_stays - plimsoll_init_begin)] = stays ? 1 : 0;
  Elf64_Phdr segments[2] = {};
  Elf64_Ehdr header = {};
  const uint64_t code_offset = sizeof(header) + sizeof(segments);
  const unsigned char identity[] = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT};
  for (size_t i = 0; i < sizeof(identity); ++i) header.e_ident[i] = identity[i];
  header.e_type = ET_EXEC;
#if defined(__x86_64__)
  header.e_machine = EM_X86_64;
#else
  header.e_machine = EM_AARCH64;
#endif
  header.e_version = EV_CURRENT;
  header.e_entry = kLoadAddress + code_offset;
  header.e_phoff = sizeof(header);
  header.e_ehsize = sizeof(header);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 2;
  segments[0].p_type = PT_LOAD;
  segments[0].p_flags = PF_R | PF_X;
  segments[0].p_vaddr = segments[0].p_paddr = kLoadAddress;
  segments[0].p_filesz = segments[0].p_memsz = code_offset + code.size();
  segments[0].p_align = 0x1000;
  segments[1].p_type = PT_GNU_STACK;
  segments[1].p_flags = PF_R | PF_W;
  std::string image(reinterpret_cast<const char*>(&header), sizeof(header));
  image.append(reinterpret_cast<const char*>(segments), sizeof(segments));
  return image + code;
}

// The job shares the stack of the process that becomes the init, and uses it first. So that process, when it
// goes on after the job's exec, works with registers alone.
int become_init(const std::string& image, InitWord* word, int status_pipe, bool shielded) noexcept {
  if (const int result = shielded ? keep_a_capability() : 0; result < 0) return result;
  const long program = open_image(image);
  if (program < 0) return static_cast<int>(program);
  static const char kNothing[] = "";
  static const char kName[] = "plimsoll-init";
  static const char* const kArguments[] = {kName, nullptr};
  static const char* const kEnvironment[] = {nullptr};
  constexpr long kFlags = CLONE_VM | CLONE_VFORK | SIGCHLD;
  word->at = static_cast<int64_t>(image.size() - sizeof(word->job));
#if defined(__x86_64__)
  long result = SYS_clone;
  register long r10 asm("r10") = 0;
  register long r8 asm("r8") = 0;
  register InitWord* word_register asm("r9") = word;
  register long program_register asm("r12") = program;
  register long pipe_register asm("r13") = status_pipe;
  register const char* const* arguments_register asm("r14") = kArguments;
  register const char* const* environment_register asm("r15") = kEnvironment;
  asm volatile(
      "syscall\n\t"
      "testq %%rax, %%rax\n\t"
      "jle 1f\n\t"               // the job, or an error
      "movl %%eax, 8(%%r9)\n\t"  // the image learns the job's number
      "movl %[pwrite], %%eax\n\t"
      "movl %%r12d, %%edi\n\t"
      "leaq 8(%%r9), %%rsi\n\t"
      "movl $4, %%edx\n\t"
      "movq (%%r9), %%r10\n\t"
      "syscall\n\t"
      "movl %[dup3], %%eax\n\t"
      "movl %%r13d, %%edi\n\t"
      "xorl %%esi, %%esi\n\t"
      "xorl %%edx, %%edx\n\t"
      "syscall\n\t"
      "movl %[execveat], %%eax\n\t"
      "movl %%r12d, %%edi\n\t"
      "movq %%rbx, %%rsi\n\t"
      "movq %%r14, %%rdx\n\t"
      "movq %%r15, %%r10\n\t"
      "movl %[empty_path], %%r8d\n\t"
      "syscall\n\t"
      "movl %[exit_group], %%eax\n\t"
      "movl %[could_not_exec], %%edi\n\t"
      "syscall\n\t"
      "ud2\n"
      "1:"
      : "+a"(result), "+r"(r10), "+r"(r8)
      : "r"(word_register), [pwrite] "i"(SYS_pwrite64), "D"(kFlags), "S"(0L), "d"(0L), "b"(kNothing),
        "r"(program_register), "r"(pipe_register), "r"(arguments_register),
        "r"(environment_register), [dup3] "i"(SYS_dup3), [execveat] "i"(SYS_execveat),
        [exit_group] "i"(SYS_exit_group), [empty_path] "i"(AT_EMPTY_PATH), [could_not_exec] "i"(kCouldNotExec)
      : "rcx", "r11", "memory", "cc");
#else
  register long x8 asm("x8") = SYS_clone;
  register long result asm("x0") = kFlags;
  register long x1 asm("x1") = 0;
  register long x2 asm("x2") = 0;
  register long x3 asm("x3") = 0;
  register long x4 asm("x4") = 0;
  register const char* nothing_register asm("x23") = kNothing;
  register InitWord* word_register asm("x24") = word;
  register long program_register asm("x19") = program;
  register long pipe_register asm("x20") = status_pipe;
  register const char* const* arguments_register asm("x21") = kArguments;
  register const char* const* environment_register asm("x22") = kEnvironment;
  asm volatile(
      "svc #0\n\t"
      "cmp x0, #0\n\t"
      "b.le 1f\n\t"            // the job, or an error
      "str w0, [x24, #8]\n\t"  // the image learns the job's number
      "mov x8, %[pwrite]\n\t"
      "mov x0, x19\n\t"
      "add x1, x24, #8\n\t"
      "mov x2, #4\n\t"
      "ldr x3, [x24]\n\t"
      "svc #0\n\t"
      "mov x8, %[dup3]\n\t"
      "mov x0, x20\n\t"
      "mov x1, #0\n\t"
      "mov x2, #0\n\t"
      "svc #0\n\t"
      "mov x8, %[execveat]\n\t"
      "mov x0, x19\n\t"
      "mov x1, x23\n\t"
      "mov x2, x21\n\t"
      "mov x3, x22\n\t"
      "mov x4, %[empty_path]\n\t"
      "svc #0\n\t"
      "mov x8, %[exit_group]\n\t"
      "mov x0, %[could_not_exec]\n\t"
      "svc #0\n\t"
      "brk #1\n"
      "1:"
      : "+r"(result), "+r"(x8), "+r"(x1), "+r"(x2), "+r"(x3), "+r"(x4)
      : "r"(program_register), "r"(pipe_register), "r"(arguments_register), "r"(environment_register),
        "r"(nothing_register),
        "r"(word_register), [pwrite] "i"(SYS_pwrite64), [dup3] "i"(SYS_dup3), [execveat] "i"(SYS_execveat),
        [exit_group] "i"(SYS_exit_group), [empty_path] "i"(AT_EMPTY_PATH), [could_not_exec] "i"(kCouldNotExec)
      : "memory", "cc");
#endif
  raw_syscall(SYS_close, program);
  return static_cast<int>(result);
}

}  // namespace plimsoll::sandbox
