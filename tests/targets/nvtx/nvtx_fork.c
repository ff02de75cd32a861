// nvtx_fork [fork|clone|vfork|exec|closed]: what becomes of the recording when the process multiplies or changes.
#define _GNU_SOURCE
#include <nvtx3/nvToolsExt.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void in_child(nvtxRangeId_t id) {
  nvtxRangePushA("child");
  nvtxRangePop();
  nvtxRangePop();    // the parent's "outer", inherited
  nvtxRangeEnd(id);  // the parent's "process", inherited
  nvtxMarkA("child mark");
}

int main(int count, char **arguments) {
  const char *mode = count > 1 ? arguments[1] : "fork";
  nvtxDomainHandle_t domain = nvtxDomainCreateA("forked");
  nvtxEventAttributes_t e = {0};
  e.version = NVTX_VERSION;
  e.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  e.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  e.message.registered = nvtxDomainRegisterStringA(domain, "before the fork");
  nvtxRangePushA("outer");
  nvtxRangeId_t id = nvtxRangeStartA("process");
  if (strcmp(mode, "exec") == 0) {
    nvtxRangePop();
    execl("/proc/self/exe", arguments[0], "fork", (char *)NULL);
    return 1;
  }
  if (strcmp(mode, "closed") == 0) {
    // A daemon's habit; then its own file takes the first free descriptor.
    for (int fd = 3; fd < 256; ++fd) {
      close(fd);
    }
    FILE *mine = tmpfile();
    for (int i = 0; i < 100000; ++i) {
      nvtxRangePushA("after close");
      nvtxRangePop();
    }
    fseek(mine, 0, SEEK_END);
    printf("mine %ld\n", ftell(mine));
    return 0;
  }
  pid_t child = 0;
  if (strcmp(mode, "vfork") == 0) {
    child = vfork();
    if (child == 0) {
      execl("/bin/true", "true", (char *)NULL);
      _exit(1);
    }
  } else if (strcmp(mode, "clone") == 0) {
    child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);  // no pthread_atfork handler runs
  } else {
    child = fork();
  }
  if (child == 0) {
    in_child(id);
    nvtxDomainMarkEx(domain, &e);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  nvtxDomainMarkEx(domain, &e);
  nvtxRangePop();
  nvtxRangeEnd(id);
  printf("child %d\n", WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
  return 0;
}
