// SPDX-License-Identifier: Apache-2.0
#include "bpf_object.h"

// The compiled programs of bpf/ as they are; CMake says in which folder.
#define SWITCHYARD_PROBE(name)                              \
  __asm__(                                                  \
      ".section .rodata\n"                                  \
      ".balign 8\n"                                         \
      "switchyard_" #name "_begin:\n"                       \
      ".incbin \"" SWITCHYARD_PROBES "/probe-" #name ".bpf.o\"\n" \
      "switchyard_" #name "_end:\n"                         \
      ".previous\n");                                       \
  extern "C" const uint8_t switchyard_##name##_begin[] __attribute__((visibility("hidden"))); \
  extern "C" const uint8_t switchyard_##name##_end[] __attribute__((visibility("hidden")))

SWITCHYARD_PROBE(hooks);
SWITCHYARD_PROBE(conntrack);

namespace switchyard {

const uint8_t* ProbeObject(const std::string& name, size_t* length) {
  const bool hooks = name == "hooks";
  const uint8_t* begin = hooks ? switchyard_hooks_begin : switchyard_conntrack_begin;
  const uint8_t* end = hooks ? switchyard_hooks_end : switchyard_conntrack_end;
  *length = static_cast<size_t>(end - begin);
  return begin;
}

}  // namespace switchyard
