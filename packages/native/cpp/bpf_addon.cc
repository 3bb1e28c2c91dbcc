// SPDX-License-Identifier: Apache-2.0
//
// Node-API entry points of the addon that speaks bpf(2). Arguments are checked by the TypeScript side; failures are
// returned as numbers (negative errno), so that the hot path makes no exceptions and no objects.
#include <napi.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "bpf_calls.h"
#include "bpf_fingerprint.h"
#include "bpf_object.h"

namespace {

// Points fields of an attribute at buffers: after `first`, arguments come in pairs of offset and buffer.
void PointAt(const Napi::CallbackInfo& info, size_t first, uint8_t* attribute) {
  for (size_t index = first; index + 1 < info.Length(); index += 2) {
    const uint32_t offset = info[index].As<Napi::Number>().Uint32Value();
    const auto buffer = info[index + 1].As<Napi::Uint8Array>();
    const uint64_t address = reinterpret_cast<uintptr_t>(buffer.Data());
    memcpy(attribute + offset, &address, sizeof(address));
  }
}

// bpf(command, attribute, [offset, buffer]...) -> result or -errno; -E2BIG for more than six pairs. The hottest function here: plain
// Node-API.
napi_value Bpf(napi_env env, napi_callback_info info) {
  constexpr size_t kMost = 14;
  size_t count = kMost;
  napi_value arguments[kMost];
  napi_get_cb_info(env, info, &count, arguments, nullptr, nullptr);
  napi_value result;
  if (count > kMost) {  // as many as were given; the array has the first of them
    napi_create_int32(env, -E2BIG, &result);
    return result;
  }
  int32_t command = 0;
  napi_get_value_int32(env, arguments[0], &command);
  size_t length = 0;
  void* attribute = nullptr;
  napi_get_typedarray_info(env, arguments[1], nullptr, &length, &attribute, nullptr, nullptr);
  for (size_t index = 2; index + 1 < count; index += 2) {
    uint32_t offset = 0;
    void* data = nullptr;
    napi_get_value_uint32(env, arguments[index], &offset);
    napi_get_typedarray_info(env, arguments[index + 1], nullptr, nullptr, &data, nullptr, nullptr);
    const uint64_t address = reinterpret_cast<uintptr_t>(data);
    memcpy(static_cast<uint8_t*>(attribute) + offset, &address, sizeof(address));
  }
  napi_create_int32(env, switchyard::BpfCall(command, attribute, length), &result);
  return result;
}

// bpfIn(netns, command, attribute, [offset, buffer]...) -> result or -errno
Napi::Value BpfIn(const Napi::CallbackInfo& info) {
  auto attribute = info[2].As<Napi::Uint8Array>();
  PointAt(info, 3, attribute.Data());
  const int command = info[1].As<Napi::Number>().Int32Value();
  const std::string netns = info[0].As<Napi::String>().Utf8Value();
  const int64_t result = switchyard::InNetns(
      netns, [&] { return switchyard::BpfCall(command, attribute.Data(), attribute.ByteLength()); });
  return Napi::Number::New(info.Env(), result);
}

// point(attribute, [offset, buffer]...): for attributes that are used again and again, with buffers that live as long.
Napi::Value Point(const Napi::CallbackInfo& info) {
  PointAt(info, 1, info[0].As<Napi::Uint8Array>().Data());
  return info.Env().Undefined();
}

// mapMemory(fd, length) -> ArrayBuffer or -errno. Unmapped by unmapMemory, else when nothing refers to it any more.
Napi::Value MapMemory(const Napi::CallbackInfo& info) {
  const size_t length = info[1].As<Napi::Number>().Int64Value();
  void* data = nullptr;
  const int error = switchyard::MapMemory(info[0].As<Napi::Number>().Int32Value(), length, &data);
  if (error != 0) return Napi::Number::New(info.Env(), error);
  return Napi::ArrayBuffer::New(info.Env(), data, length, [length](Napi::Env, void* memory) {
    switchyard::UnmapMemory(memory, length);
  });
}

// unmapMemory(buffer): views of it have no bytes from now on, and the memory is given back in this turn of the event loop.
Napi::Value UnmapMemory(const Napi::CallbackInfo& info) {
  auto buffer = info[0].As<Napi::ArrayBuffer>();
  if (!buffer.IsDetached()) buffer.Detach();
  return info.Env().Undefined();
}

// netnsCookie(netns, bytes) -> 0 or -errno; eight bytes are written. An empty path is the caller's own namespace.
Napi::Value NetnsCookie(const Napi::CallbackInfo& info) {
  auto bytes = info[1].As<Napi::Uint8Array>();
  uint64_t cookie = 0;
  const std::string netns = info[0].As<Napi::String>().Utf8Value();
  const int64_t result = switchyard::InNetns(netns, [&] { return switchyard::NetnsCookie(&cookie); });
  memcpy(bytes.Data(), &cookie, sizeof(cookie));
  return Napi::Number::New(info.Env(), result);
}

// mountBpffs(path) -> 0 or -errno
Napi::Value MountBpffs(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), switchyard::MountBpffs(info[0].As<Napi::String>().Utf8Value()));
}

std::vector<switchyard::Named> NamedNumbers(const Napi::Value& value) {
  std::vector<switchyard::Named> named;
  const Napi::Array pairs = value.As<Napi::Array>();
  for (uint32_t index = 0; index < pairs.Length(); index++) {
    const Napi::Array pair = pairs.Get(index).As<Napi::Array>();
    bool lossless = false;
    named.push_back({pair.Get(0u).As<Napi::String>().Utf8Value(),
                     pair.Get(1u).As<Napi::BigInt>().Uint64Value(&lossless)});
  }
  return named;
}

Napi::Array Descriptors(Napi::Env env, const std::vector<switchyard::Named>& named) {
  Napi::Array array = Napi::Array::New(env, named.size());
  for (uint32_t index = 0; index < named.size(); index++) {
    Napi::Array pair = Napi::Array::New(env, 2);
    pair.Set(0u, named[index].name);
    pair.Set(1u, static_cast<double>(named[index].value));
    array.Set(index, pair);
  }
  return array;
}

// fingerprint(links, maps, folders) -> a bigint. Descriptors of links; a descriptor and the sizes of key and value for each map.
Napi::Value Fingerprint(const Napi::CallbackInfo& info) {
  const auto links = info[0].As<Napi::Int32Array>();
  const auto numbers = info[1].As<Napi::Int32Array>();
  const auto names = info[2].As<Napi::Array>();
  std::vector<switchyard::MapPlace> maps;
  for (size_t at = 0; at + 2 < numbers.ElementLength(); at += 3) {
    maps.push_back({numbers[at], static_cast<uint32_t>(numbers[at + 1]), static_cast<uint32_t>(numbers[at + 2])});
  }
  std::vector<std::string> folders;
  for (uint32_t index = 0; index < names.Length(); index++) {
    folders.push_back(names.Get(index).As<Napi::String>().Utf8Value());
  }
  return Napi::BigInt::New(info.Env(), switchyard::Fingerprint(links.Data(), links.ElementLength(), maps, folders));
}

// sliceFingerprint(fd, key size, value size, position) -> a bigint. `position`: as many bytes as the first says, which counts too.
Napi::Value SliceFingerprint(const Napi::CallbackInfo& info) {
  const switchyard::MapPlace map = {info[0].As<Napi::Number>().Int32Value(), info[1].As<Napi::Number>().Uint32Value(),
                                    info[2].As<Napi::Number>().Uint32Value()};
  auto bytes = info[3].As<Napi::Uint8Array>();
  switchyard::MapPosition position(bytes.Data() + 1, bytes.Data() + 1 + bytes[0]);
  const uint64_t digest = switchyard::SliceFingerprint(map, &position);
  bytes[0] = static_cast<uint8_t>(position.size());
  std::copy(position.begin(), position.end(), bytes.Data() + 1);
  return Napi::BigInt::New(info.Env(), digest);
}

// loadObject(bytes, { maps, constants, skip }) -> { maps, programs, error, attempt, log }
// Pairs of name and number everywhere: a bigint on the way in, a descriptor on the way out.
Napi::Value LoadObject(const Napi::CallbackInfo& info) {
  const auto bytes = info[0].As<Napi::Uint8Array>();
  const Napi::Object options = info[1].As<Napi::Object>();
  switchyard::LoadRequest request;
  request.bytes = bytes.Data();
  request.length = bytes.ByteLength();
  request.maps = NamedNumbers(options.Get("maps"));
  request.constants = NamedNumbers(options.Get("constants"));
  const Napi::Array skip = options.Get("skip").As<Napi::Array>();
  for (uint32_t index = 0; index < skip.Length(); index++) {
    request.skip.push_back(skip.Get(index).As<Napi::String>().Utf8Value());
  }
  const switchyard::LoadResult result = switchyard::LoadObject(request);
  Napi::Object object = Napi::Object::New(info.Env());
  object.Set("maps", Descriptors(info.Env(), result.maps));
  object.Set("programs", Descriptors(info.Env(), result.programs));
  object.Set("error", result.error);
  object.Set("attempt", result.attempt);
  object.Set("log", result.log);
  return object;
}

// embeddedObject(name) -> the compiled bpf/NAME.bpf.c
Napi::Value EmbeddedObject(const Napi::CallbackInfo& info) {
  size_t length = 0;
  const uint8_t* data = switchyard::EmbeddedObject(info[0].As<Napi::String>().Utf8Value(), &length);
  return Napi::Buffer<uint8_t>::Copy(info.Env(), data, length);
}

Napi::Object Init(Napi::Env env, Napi::Object exports) {
  napi_value bpf;
  napi_create_function(env, "bpf", NAPI_AUTO_LENGTH, Bpf, nullptr, &bpf);
  exports.Set("bpf", bpf);
  exports.Set("bpfIn", Napi::Function::New(env, BpfIn));
  exports.Set("point", Napi::Function::New(env, Point));
  exports.Set("mapMemory", Napi::Function::New(env, MapMemory));
  exports.Set("unmapMemory", Napi::Function::New(env, UnmapMemory));
  exports.Set("netnsCookie", Napi::Function::New(env, NetnsCookie));
  exports.Set("mountBpffs", Napi::Function::New(env, MountBpffs));
  exports.Set("fingerprint", Napi::Function::New(env, Fingerprint));
  exports.Set("sliceFingerprint", Napi::Function::New(env, SliceFingerprint));
  exports.Set("loadObject", Napi::Function::New(env, LoadObject));
  exports.Set("embeddedObject", Napi::Function::New(env, EmbeddedObject));
  return exports;
}

}  // namespace

NODE_API_MODULE(switchyard_bpf, Init)
