// The program `kube-proxy` and `switchyard-agent` of the container images, which have no shell: becomes Node with the flags
// that bin/switchyard-agent of the node agent gives it (a test compares them), and the bundle. exec keeps the pid, so that
// the agent is process 1 of the container and receives the kubelet's SIGTERM. NODE_OPTIONS does not admit these flags.

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {
constexpr const char* kNode = "/usr/local/bin/node";
constexpr const char* kBundle = "/usr/local/lib/switchyard/main.mjs";
constexpr const char* kFlags[] = {"--max-semi-space-size=1", "--heap-growing-percent=25", "--expose-gc"};
constexpr int kFlagCount = sizeof kFlags / sizeof kFlags[0];
}  // namespace

int main(int argc, char** argv) {
  const char** command = static_cast<const char**>(calloc(argc + kFlagCount + 3, sizeof(char*)));
  if (command == nullptr || setenv("MALLOC_ARENA_MAX", "1", 1) != 0) {
    fprintf(stderr, "switchyard-agent: no memory\n");
    return 1;
  }
  int count = 0;
  command[count++] = kNode;
  for (const char* flag : kFlags) command[count++] = flag;
  command[count++] = kBundle;
  for (int i = 1; i < argc; i++) command[count++] = argv[i];
  execv(kNode, const_cast<char**>(command));
  fprintf(stderr, "switchyard-agent: cannot run %s: %s\n", kNode, strerror(errno));
  return 1;
}
