// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

// System calls that Node has no function for. All return a result or a negative errno.
namespace switchyard {

// bpf(2), with the attribute as the caller wrote it; results that the kernel writes are in it afterwards.
int64_t BpfCall(int command, void* attribute, size_t length);

// Calls it in the network namespace with this path, on a thread of its own, so that no other thread ever sees the
// change. An empty path: calls it here.
int64_t InNetns(const std::string& netns, const std::function<int64_t()>& call);

// Maps the memory of an array for reading and writing.
int MapMemory(int fd, size_t length, void** data);
void UnmapMemory(void* data, size_t length);

// The kernel's number of the caller's network namespace (Linux 5.14).
int64_t NetnsCookie(uint64_t* cookie);

int64_t MountBpffs(const std::string& path);

}  // namespace switchyard
