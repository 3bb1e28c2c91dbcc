// SPDX-License-Identifier: Apache-2.0
//
// Node-API entry points. Each is a thin wrapper: arguments are checked by the TypeScript side, failures are returned
// as numbers (negative errno) so that the hot path makes no exceptions and no objects.
#include <malloc.h>
#include <napi.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "netlink_socket.h"
#include "readable_wait.h"

namespace {

std::vector<uint32_t> Numbers(const Napi::Value& value) {
  std::vector<uint32_t> numbers;
  const Napi::Array array = value.As<Napi::Array>();
  for (uint32_t index = 0; index < array.Length(); index++) {
    numbers.push_back(array.Get(index).As<Napi::Number>().Uint32Value());
  }
  return numbers;
}

Napi::Value ToObject(Napi::Env env, const switchyard::OpenResult& result) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("fd", result.fd);
  object.Set("portId", result.port_id);
  object.Set("error", result.error);
  object.Set("syscall", result.syscall);
  return object;
}

// openNetlink(protocol, netns, groups, ignoredPortIds, sendBuffer, receiveBuffer) -> { fd, portId, error, syscall }
Napi::Value OpenNetlink(const Napi::CallbackInfo& info) {
  switchyard::NetlinkOptions options;
  options.protocol = info[0].As<Napi::Number>().Int32Value();
  options.netns = info[1].As<Napi::String>().Utf8Value();
  options.groups = Numbers(info[2]);
  options.ignored_port_ids = Numbers(info[3]);
  options.send_buffer = info[4].As<Napi::Number>().Int32Value();
  options.receive_buffer = info[5].As<Napi::Number>().Int32Value();
  return ToObject(info.Env(), switchyard::OpenNetlinkSocket(options));
}

// openSocket(netns, family, type) -> { fd, error, syscall }
Napi::Value OpenSocket(const Napi::CallbackInfo& info) {
  const std::string netns = info[0].As<Napi::String>().Utf8Value();
  const int family = info[1].As<Napi::Number>().Int32Value();
  const int type = info[2].As<Napi::Number>().Int32Value();
  return ToObject(info.Env(), switchyard::OpenSocketIn(netns, family, type));
}

// Off the main thread: on a node that takes down many namespaces the kernel may need seconds for a new one.
class NamespaceMaker : public Napi::AsyncWorker {
 public:
  explicit NamespaceMaker(Napi::Env env) : Napi::AsyncWorker(env), deferred_(env) {}
  Napi::Promise Promise() const { return deferred_.Promise(); }
  void Execute() override { result_ = switchyard::MakeNetworkNamespace(); }
  void OnOK() override { deferred_.Resolve(ToObject(Env(), result_)); }

 private:
  Napi::Promise::Deferred deferred_;
  switchyard::OpenResult result_;
};

// makeNamespace() -> Promise of { fd, error, syscall }
Napi::Value MakeNamespace(const Napi::CallbackInfo& info) {
  auto* maker = new NamespaceMaker(info.Env());  // deletes itself when it is done
  const Napi::Promise promise = maker->Promise();
  maker->Queue();
  return promise;
}

// send(fd, bytes) -> 0 or -errno
Napi::Value Send(const Napi::CallbackInfo& info) {
  const auto bytes = info[1].As<Napi::Uint8Array>();
  const int fd = info[0].As<Napi::Number>().Int32Value();
  return Napi::Number::New(info.Env(), switchyard::SendToKernel(fd, bytes.Data(), bytes.ByteLength()));
}

// receive(fd, buffer) -> length or -errno
Napi::Value Receive(const Napi::CallbackInfo& info) {
  auto buffer = info[1].As<Napi::Uint8Array>();
  const int fd = info[0].As<Napi::Number>().Int32Value();
  return Napi::Number::New(info.Env(), switchyard::ReceiveFromKernel(fd, buffer.Data(), buffer.ByteLength()));
}

// awaitReadable(fd, callback) -> function that stops the wait, or -errno
Napi::Value AwaitReadable(const Napi::CallbackInfo& info) {
  auto wait = std::make_shared<switchyard::ReadableWait>(info.Env(), info[1].As<Napi::Function>());
  const int error = wait->Start(info[0].As<Napi::Number>().Int32Value());
  if (error != 0) return Napi::Number::New(info.Env(), error);
  return Napi::Function::New(info.Env(), [wait](const Napi::CallbackInfo&) { wait->Stop(); });
}

// close(fd)
Napi::Value Close(const Napi::CallbackInfo& info) {
  close(info[0].As<Napi::Number>().Int32Value());
  return info.Env().Undefined();
}

// trimMemory()
Napi::Value TrimMemory(const Napi::CallbackInfo& info) {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  return info.Env().Undefined();
}

Napi::Object Init(Napi::Env env, Napi::Object exports) {
  exports.Set("openNetlink", Napi::Function::New(env, OpenNetlink));
  exports.Set("openSocket", Napi::Function::New(env, OpenSocket));
  exports.Set("makeNamespace", Napi::Function::New(env, MakeNamespace));
  exports.Set("send", Napi::Function::New(env, Send));
  exports.Set("receive", Napi::Function::New(env, Receive));
  exports.Set("awaitReadable", Napi::Function::New(env, AwaitReadable));
  exports.Set("trimMemory", Napi::Function::New(env, TrimMemory));
  exports.Set("close", Napi::Function::New(env, Close));
  return exports;
}

}  // namespace

NODE_API_MODULE(switchyard_native, Init)
