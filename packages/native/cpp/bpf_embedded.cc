// SPDX-License-Identifier: Apache-2.0
#include "bpf_object.h"

// The compiled programs of bpf/ as they are; CMake says in which folder.
#define SWITCHYARD_OBJECT(name, file)                       \
  __asm__(                                                  \
      ".section .rodata\n"                                  \
      ".balign 8\n"                                         \
      "switchyard_" #name "_begin:\n"                       \
      ".incbin \"" SWITCHYARD_OBJECTS "/" file ".bpf.o\"\n" \
      "switchyard_" #name "_end:\n"                         \
      ".previous\n");                                       \
  extern "C" const uint8_t switchyard_##name##_begin[] __attribute__((visibility("hidden"))); \
  extern "C" const uint8_t switchyard_##name##_end[] __attribute__((visibility("hidden")))

SWITCHYARD_OBJECT(hooks, "probe-hooks");
SWITCHYARD_OBJECT(conntrack, "probe-conntrack");
SWITCHYARD_OBJECT(drops, "drops");

namespace switchyard {

const uint8_t* EmbeddedObject(const std::string& name, size_t* length) {
  const auto between = [length](const uint8_t* begin, const uint8_t* end) {
    *length = static_cast<size_t>(end - begin);
    return begin;
  };
  if (name == "probe-hooks") return between(switchyard_hooks_begin, switchyard_hooks_end);
  if (name == "probe-conntrack") return between(switchyard_conntrack_begin, switchyard_conntrack_end);
  return between(switchyard_drops_begin, switchyard_drops_end);
}

}  // namespace switchyard
