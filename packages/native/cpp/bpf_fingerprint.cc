// SPDX-License-Identifier: Apache-2.0
#include "bpf_fingerprint.h"

#include <linux/bpf.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "bpf_calls.h"

namespace switchyard {
namespace {

// Elements per call of a batch.
constexpr uint32_t kSlice = 2048;

// Depends on each byte and its place. Not for keys that an attacker chooses: 8 bytes in about 4 cycles.
class Digest {
 public:
  void Add(const void* data, size_t length) {
    const auto* bytes = static_cast<const uint8_t*>(data);
    for (; length >= 8; bytes += 8, length -= 8) {
      uint64_t word;
      memcpy(&word, bytes, sizeof(word));
      Mix(word);
    }
    uint64_t rest = 0;
    memcpy(&rest, bytes, length);
    if (length > 0) Mix(rest);
  }

  void Add(int64_t number) { Mix(static_cast<uint64_t>(number)); }

  uint64_t value() const { return state_; }

 private:
  void Mix(uint64_t word) {
    state_ = (state_ ^ word) * 0x9e3779b97f4a7c15ULL;
    state_ ^= state_ >> 32;
  }

  uint64_t state_ = 0xcbf29ce484222325ULL;
};

void AddLink(int fd, Digest* digest) {
  bpf_link_info link = {};
  bpf_attr attribute = {};
  attribute.info.bpf_fd = static_cast<uint32_t>(fd);
  attribute.info.info_len = sizeof(link);
  attribute.info.info = reinterpret_cast<uintptr_t>(&link);
  digest->Add(BpfCall(BPF_OBJ_GET_INFO_BY_FD, &attribute, sizeof(attribute.info)));
  digest->Add(&link, sizeof(link));
}

// One slice of elements from `*position` on, in the kernel's order, which only writes change. False: it was the last.
bool AddSlice(const MapPlace& map, MapPosition* position, Digest* digest) {
  thread_local std::vector<uint8_t> keys, values;
  if (keys.size() < size_t{kSlice} * map.key_size) keys.resize(size_t{kSlice} * map.key_size);
  if (values.size() < size_t{kSlice} * map.value_size) values.resize(size_t{kSlice} * map.value_size);
  const bool is_first = position->empty();
  position->resize(map.key_size < 8 ? 8 : map.key_size);  // a bucket of a hash table, the last key of other maps
  bpf_attr attribute = {};
  attribute.batch.in_batch = is_first ? 0 : reinterpret_cast<uintptr_t>(position->data());
  attribute.batch.out_batch = reinterpret_cast<uintptr_t>(position->data());
  attribute.batch.keys = reinterpret_cast<uintptr_t>(keys.data());
  attribute.batch.values = reinterpret_cast<uintptr_t>(values.data());
  attribute.batch.count = kSlice;
  attribute.batch.map_fd = static_cast<uint32_t>(map.fd);
  const int64_t result = BpfCall(BPF_MAP_LOOKUP_BATCH, &attribute, sizeof(attribute.batch));
  const bool has_elements = result == 0 || result == -ENOENT;  // -ENOENT: the last slice
  const size_t count = has_elements ? attribute.batch.count : 0;
  digest->Add(result);
  digest->Add(keys.data(), count * map.key_size);
  digest->Add(values.data(), count * map.value_size);
  if (result != 0) position->clear();
  return result == 0;
}

void AddMap(const MapPlace& map, Digest* digest) {
  MapPosition position;
  while (AddSlice(map, &position, digest)) {
  }
}

void AddFolder(const std::string& path, Digest* digest) {
  struct stat found = {};
  digest->Add(stat(path.c_str(), &found) == 0 ? 0 : errno);
  digest->Add(static_cast<int64_t>(found.st_ino));
  digest->Add(found.st_ctim.tv_sec);
  digest->Add(found.st_ctim.tv_nsec);
}

}  // namespace

uint64_t Fingerprint(const int32_t* links, size_t count, const std::vector<MapPlace>& maps,
                     const std::vector<std::string>& folders) {
  Digest digest;
  for (size_t index = 0; index < count; index++) AddLink(links[index], &digest);
  for (const auto& map : maps) AddMap(map, &digest);
  for (const auto& path : folders) AddFolder(path, &digest);
  return digest.value();
}

uint64_t SliceFingerprint(const MapPlace& map, MapPosition* position) {
  Digest digest;
  AddSlice(map, position, &digest);
  return digest.value();
}

}  // namespace switchyard
