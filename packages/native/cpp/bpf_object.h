// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace switchyard {

struct Named {
  std::string name;
  uint64_t value;
};

// Request to load an object file. The bytes are only read during the call.
struct LoadRequest {
  const void* bytes = nullptr;
  size_t length = 0;
  std::vector<Named> maps;         // descriptors of maps to use instead of new ones
  std::vector<Named> constants;    // values of `const volatile` globals
  std::vector<std::string> skip;   // programs that are not loaded
};

// Descriptors belong to the caller. `error` is an errno, 0 on success; `attempt` says what failed; `log` is what
// libbpf and the verifier said.
struct LoadResult {
  std::vector<Named> maps;  // only those that were not given
  std::vector<Named> programs;
  int error = 0;
  std::string attempt;
  std::string log;
};

LoadResult LoadObject(const LoadRequest& request);

// The object file of bpf/NAME.bpf.c, which is part of the addon: probe-hooks, probe-conntrack or drops.
const uint8_t* EmbeddedObject(const std::string& name, size_t* length);

}  // namespace switchyard
