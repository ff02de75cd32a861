// nvtx_init_fork AGENT: one thread hands the agent its functions and is held up by a slow tool; meanwhile the process forks, and the
// child does the same. As a tool (built with -shared), it is the slow one.
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef TOOL
int InitializeInjectionNvtx2(void *get_export_table);
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(void *get_export_table) { return get_export_table != NULL; }

__attribute__((constructor)) static void begin(void) {
  puts("slow");
  fflush(stdout);
  usleep(500000);
}
#else
static int (*initialize)(void *);

static void *first(void *unused) {
  (void)unused;
  initialize(NULL);
  return NULL;
}

int main(int count, char **words) {
  void *agent = count > 1 ? dlopen(words[1], RTLD_NOW) : NULL;
  initialize = agent == NULL ? NULL : (int (*)(void *))dlsym(agent, "InitializeInjectionNvtx2");
  if (initialize == NULL) {
    return 1;
  }
  pthread_t thread;
  pthread_create(&thread, NULL, first, NULL);
  usleep(200000);
  pid_t child = fork();
  if (child == 0) {
    alarm(20);  // one that waits for ever fails
    initialize(NULL);
    _exit(0);
  }
  int status = 1;
  waitpid(child, &status, 0);
  pthread_join(thread, NULL);
  return status == 0 ? 0 : 2;
}
#endif
