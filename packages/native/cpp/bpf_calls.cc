// SPDX-License-Identifier: Apache-2.0
#include "bpf_calls.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <thread>

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

namespace switchyard {
namespace {

int64_t EnterAndCall(const std::string& netns, const std::function<int64_t()>& call) {
  const int fd = open(netns.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -errno;
  const int64_t result = setns(fd, CLONE_NEWNET) == 0 ? call() : -errno;
  close(fd);
  return result;
}

}  // namespace

int64_t BpfCall(int command, void* attribute, size_t length) {
  const long result = syscall(SYS_bpf, command, attribute, length);
  return result >= 0 ? result : -errno;
}

int64_t InNetns(const std::string& netns, const std::function<int64_t()>& call) {
  if (netns.empty()) return call();
  try {
    int64_t result = 0;
    std::thread thread([&] { result = EnterAndCall(netns, call); });
    thread.join();
    return result;
  } catch (const std::system_error& error) {
    return -error.code().value();
  }
}

int MapMemory(int fd, size_t length, void** data) {
  void* memory = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return -errno;
  *data = memory;
  return 0;
}

void UnmapMemory(void* data, size_t length) { munmap(data, length); }

int64_t NetnsCookie(uint64_t* cookie) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -errno;
  socklen_t length = sizeof(*cookie);
  const int64_t result = getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, cookie, &length) == 0 ? 0 : -errno;
  close(fd);
  return result;
}

int64_t MountBpffs(const std::string& path) {
  return mount("bpffs", path.c_str(), "bpf", 0, "mode=0700") == 0 ? 0 : -errno;
}

}  // namespace switchyard
