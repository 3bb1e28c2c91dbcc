// First process of a load balancer's container, which has no shell: empties the run directory and becomes HAProxy. Files of an
// earlier run name addresses that do not exist yet, and HAProxy would not start with them. The paths are those of
// apps/kind-lb-controller/src/worker/container-files.ts (a test compares them).

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {
constexpr const char* kRunDirectory = "/run/switchyard-lb";
constexpr const char* kCommand[] = {"/usr/sbin/haproxy", "-W",
                                    "-S", "/run/switchyard-lb/master.sock,mode,660",
                                    "-f", "/etc/switchyard-lb/haproxy.cfg",
                                    "-f", "/run/switchyard-lb"};
constexpr int kCommandCount = sizeof kCommand / sizeof kCommand[0];

int Fail(const char* attempt, const char* path) {
  fprintf(stderr, "switchyard-lb-haproxy: cannot %s %s: %s\n", attempt, path, strerror(errno));
  return 1;
}

// Removes files and sockets. The directory has no subdirectories.
int EmptyRunDirectory() {
  DIR* directory = opendir(kRunDirectory);
  if (directory == nullptr) return Fail("read", kRunDirectory);
  while (const dirent* entry = readdir(directory)) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    if (unlinkat(dirfd(directory), entry->d_name, 0) != 0) return Fail("remove from the run directory", entry->d_name);
  }
  closedir(directory);
  return 0;
}
}  // namespace

int main(int argc, char** argv) {
  if (EmptyRunDirectory() != 0) return 1;
  // The worker, which is root, may have no right to override permissions: it belongs to the group.
  if (chmod(kRunDirectory, 0770) != 0) return Fail("open for the group", kRunDirectory);
  umask(0007);
  const char** command = static_cast<const char**>(calloc(argc + kCommandCount + 1, sizeof(char*)));
  if (command == nullptr) return Fail("start", kCommand[0]);
  int count = 0;
  for (const char* part : kCommand) command[count++] = part;
  for (int i = 1; i < argc; i++) command[count++] = argv[i];
  execv(kCommand[0], const_cast<char**>(command));
  return Fail("run", kCommand[0]);
}
