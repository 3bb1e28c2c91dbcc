// Our programs in the container images, which have no shell: becomes Node with the flags that the scripts in bin/ of the apps
// give it (a test compares them), and the bundle of the name it is called by. exec keeps the pid, so that an agent that is
// process 1 of its container receives the kubelet's SIGTERM. NODE_OPTIONS does not admit these flags.

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {
constexpr const char* kNode = "/usr/local/bin/node";
constexpr int kMostFlags = 2;
// With fewer than about 24 Node itself ends with a stack trace; an idle agent has 35 open.
constexpr rlim_t kFewestDescriptors = 64;

struct Program {
  const char* name;
  const char* bundle;
  const char* flags[kMostFlags];
};

constexpr Program kPrograms[] = {
    {"switchyard-agent",
     "/usr/local/lib/switchyard/main.mjs",
     {"--max-semi-space-size=1", "--no-parallel-scavenge"}},
    {"kube-proxy",
     "/usr/local/lib/switchyard/main.mjs",
     {"--max-semi-space-size=1", "--no-parallel-scavenge"}},
    {"switchyard-lb", "/usr/local/lib/switchyard-lb/main.mjs", {"--max-semi-space-size=1"}},
    {"switchyard-lb-worker", "/usr/local/lib/switchyard-lb/worker.mjs", {"--max-semi-space-size=1"}},
};

const Program* FindProgram(const char* called) {
  const char* slash = strrchr(called, '/');
  const char* name = slash == nullptr ? called : slash + 1;
  for (const Program& program : kPrograms) {
    if (strcmp(program.name, name) == 0) return &program;
  }
  return nullptr;
}

// Of the hard limit, to which Node raises the soft one.
bool HasDescriptors(const char* program) {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max >= kFewestDescriptors) return true;
  fprintf(stderr,
          "%s: the limit of open files is %ju, at least %ju are needed: raise it (ulimit -n 1024, or "
          "LimitNOFILE=1024 of a systemd unit)\n",
          program, static_cast<uintmax_t>(limit.rlim_max), static_cast<uintmax_t>(kFewestDescriptors));
  return false;
}
}  // namespace

int main(int argc, char** argv) {
  const char* called = argc > 0 ? argv[0] : "";
  const Program* program = FindProgram(called);
  if (program == nullptr) {
    fprintf(stderr, "%s: no program of Switchyard has this name\n", called);
    return 1;
  }
  if (!HasDescriptors(program->name)) return 1;
  const char** command = static_cast<const char**>(calloc(argc + kMostFlags + 3, sizeof(char*)));
  if (command == nullptr || setenv("MALLOC_ARENA_MAX", "1", 1) != 0) {
    fprintf(stderr, "%s: no memory\n", program->name);
    return 1;
  }
  int count = 0;
  command[count++] = kNode;
  for (const char* flag : program->flags) {
    if (flag != nullptr) command[count++] = flag;
  }
  command[count++] = program->bundle;
  for (int i = 1; i < argc; i++) command[count++] = argv[i];
  execv(kNode, const_cast<char**>(command));
  fprintf(stderr, "%s: cannot run %s: %s\n", program->name, kNode, strerror(errno));
  return 1;
}
