// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace switchyard {

struct MapPlace {
  int32_t fd;
  uint32_t key_size;
  uint32_t value_size;
};

// A number that changes, but for a chance of 2^-64, when the information about a link, an element of a map or a name in
// a folder changes. What cannot be read counts with its errno.
uint64_t Fingerprint(const int32_t* links, size_t count, const std::vector<MapPlace>& maps,
                     const std::vector<std::string>& folders);

// Where the next slice of a map begins, as the kernel writes it; empty: at the start of the map.
using MapPosition = std::vector<uint8_t>;

// The same for the next 2048 elements of a map or a few less. Moves `*position` on, back to the start after the last.
uint64_t SliceFingerprint(const MapPlace& map, MapPosition* position);

}  // namespace switchyard
