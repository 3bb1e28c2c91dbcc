// SPDX-License-Identifier: Apache-2.0
#include "bpf_object.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace switchyard {
namespace {

// Collects what libbpf says while one object is loaded by this thread.
thread_local std::string* collected = nullptr;

int Collect(enum libbpf_print_level level, const char* format, va_list values) {
  if (collected == nullptr || level == LIBBPF_DEBUG) return 0;
  va_list copy;
  va_copy(copy, values);
  const int length = vsnprintf(nullptr, 0, format, copy);
  va_end(copy);
  if (length <= 0) return 0;
  const size_t start = collected->size();
  collected->resize(start + length + 1);
  vsnprintf(&(*collected)[start], length + 1, format, values);
  collected->resize(start + length);
  return length;
}

const Named* Find(const std::vector<Named>& named, const char* name) {
  const auto found = std::find_if(named.begin(), named.end(), [&](const Named& one) { return one.name == name; });
  return found == named.end() ? nullptr : &*found;
}

// The kernel breaks the verifier off when a signal waits for the thread, and libbpf tries again only a few times: with a
// profiler's timer it never ends. Signals wait until the load is done.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

class Loader {
 public:
  explicit Loader(const LoadRequest& request) : request_(request) { collected = &result_.log; }
  ~Loader() {
    collected = nullptr;
    if (object_ != nullptr) bpf_object__close(object_);
  }

  LoadResult Run() {
    if (Open() && UseMaps() && SetConstants() && PreparePrograms() && Load()) TakeDescriptors();
    return std::move(result_);
  }

 private:
  bool Fail(int error, const std::string& attempt) {
    result_.error = error < 0 ? -error : error;
    result_.attempt = attempt;
    return false;
  }

  bool Open() {
    bpf_object_open_opts options = {};
    options.sz = sizeof(options);
    options.object_name = "switchyard";
    object_ = bpf_object__open_mem(request_.bytes, request_.length, &options);
    return object_ != nullptr || Fail(errno, "read the object");
  }

  bool UseMaps() {
    for (const auto& [name, fd] : request_.maps) {
      bpf_map* map = bpf_object__find_map_by_name(object_, name.c_str());
      if (map == nullptr) continue;  // one set of maps serves several objects
      const int error = bpf_map__reuse_fd(map, static_cast<int>(fd));
      if (error != 0) return Fail(error, "use the map " + name + " that is there");
    }
    return true;
  }

  // Writes into the image of the section .rodata where its BTF says that the variable is.
  bool SetConstants() {
    for (const Named& constant : request_.constants) {
      if (!SetConstant(constant)) return Fail(ENOENT, "set the constant " + constant.name);
    }
    return true;
  }

  bool SetConstant(const Named& constant) {
    const btf* types = bpf_object__btf(object_);
    bpf_map* section = FindSection(".rodata");
    const int id = types == nullptr ? -ENOENT : btf__find_by_name_kind(types, ".rodata", BTF_KIND_DATASEC);
    if (section == nullptr || id < 0) return false;
    size_t size = 0;
    const auto* content = static_cast<const uint8_t*>(bpf_map__initial_value(section, &size));
    std::vector<uint8_t> image(content, content + size);
    const btf_type* layout = btf__type_by_id(types, id);
    const btf_var_secinfo* variable = btf_var_secinfos(layout);
    for (int index = 0; index < btf_vlen(layout); index++, variable++) {
      const btf_type* type = btf__type_by_id(types, variable->type);
      if (constant.name != btf__name_by_offset(types, type->name_off)) continue;
      if (variable->size > sizeof(constant.value) || variable->offset + variable->size > size) return false;
      Store(image.data() + variable->offset, constant.value, variable->size);
      return bpf_map__set_initial_value(section, image.data(), size) == 0;
    }
    return false;
  }

  // libbpf puts the beginning of the object's name before the section's.
  bpf_map* FindSection(const std::string& name) {
    bpf_map* map = nullptr;
    bpf_object__for_each_map(map, object_) {
      const std::string full = bpf_map__name(map);
      const bool ends = full.size() >= name.size() && full.compare(full.size() - name.size(), name.size(), name) == 0;
      if (bpf_map__is_internal(map) && ends) return map;
    }
    return nullptr;
  }

  static void Store(uint8_t* target, uint64_t value, uint32_t size) {
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    value <<= 8 * (sizeof(value) - size);
#endif
    memcpy(target, &value, size);
  }

  bool PreparePrograms() {
    for (const std::string& name : request_.skip) {
      bpf_program* program = bpf_object__find_program_by_name(object_, name.c_str());
      if (program == nullptr) return Fail(ENOENT, "leave out the program " + name);
      bpf_program__set_autoload(program, false);
    }
    return true;
  }

  bool Load() {
    const int error = bpf_object__load(object_);
    return error == 0 || Fail(error, "load it");
  }

  void TakeDescriptors() {
    bpf_map* map = nullptr;
    bpf_object__for_each_map(map, object_) {
      if (bpf_map__is_internal(map) || Find(request_.maps, bpf_map__name(map)) != nullptr) continue;
      Take(&result_.maps, bpf_map__name(map), bpf_map__fd(map));
    }
    bpf_program* program = nullptr;
    bpf_object__for_each_program(program, object_) {
      if (bpf_program__autoload(program)) Take(&result_.programs, bpf_program__name(program), bpf_program__fd(program));
    }
  }

  // libbpf closes its own descriptors together with the object.
  void Take(std::vector<Named>* into, const char* name, int fd) {
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (copy >= 0) {
      into->push_back({name, static_cast<uint64_t>(copy)});
    } else {
      Fail(errno, std::string("keep ") + name);
    }
  }

  const LoadRequest& request_;
  LoadResult result_;
  bpf_object* object_ = nullptr;
};

}  // namespace

LoadResult LoadObject(const LoadRequest& request) {
  const SignalsHeld held;
  libbpf_set_print(Collect);
  return Loader(request).Run();
}

}  // namespace switchyard
