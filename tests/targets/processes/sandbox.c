/* Forbids itself nearly all system calls, on pain of death, and ends with 5; with an argument as libseccomp does it. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ALLOW(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

int main(int count, char **arguments) {
  (void)arguments;
  struct sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      ALLOW(write),
      ALLOW(exit_group),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  struct sock_fprog program = {sizeof(rules) / sizeof(rules[0]), rules};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 6;
  long failed = count > 1 ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program)
                          : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
  if (failed) return 6;
  return write(1, "inside\n", 7) == 7 ? 5 : 6;
}
