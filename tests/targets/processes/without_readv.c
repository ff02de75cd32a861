/* Starts a program that may not call process_vm_readv, as in some containers; with -m one that cannot read /proc/self/mem either: files
 * have no such offsets. */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DENY BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define LOAD(what) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, what))

int main(int count, char **arguments) {
  struct sock_filter rules[] = {
      LOAD(nr),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      DENY,
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pread64, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
               offsetof(struct seccomp_data, args[3]) + 4), /* upper half of the offset */
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
      DENY,
      ALLOW,
  };
  int also_file = count > 1 && strcmp(arguments[1], "-m") == 0;
  if (!also_file) rules[3] = (struct sock_filter)ALLOW;
  arguments += 1 + also_file;
  struct sock_fprog program = {sizeof(rules) / sizeof(rules[0]), rules};
  if (arguments[0] == NULL || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) != 0) {
    return 126;
  }
  execv(arguments[0], arguments);
  return 127;
}
