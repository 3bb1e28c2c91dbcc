// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <napi.h>
#include <uv.h>

#include <memory>

namespace switchyard {

// Waits on Node's event loop until a descriptor can be read, and calls back once, unless it is stopped before. The
// descriptor must stay open until then.
class ReadableWait : public std::enable_shared_from_this<ReadableWait> {
 public:
  ReadableWait(Napi::Env env, Napi::Function callback);

  // Returns 0 or a negative errno.
  int Start(int fd);
  // Ends the wait. May be called at any time, and again.
  void Stop();

 private:
  static void OnReadable(uv_poll_t* poll, int status, int events);
  static void OnClosed(uv_handle_t* handle);
  static void OnExit(napi_async_cleanup_hook_handle hook, void* wait);

  Napi::Env env_;
  Napi::FunctionReference callback_;
  Napi::AsyncContext context_;
  uv_poll_t poll_ = {};
  std::shared_ptr<ReadableWait> self_;  // held while libuv has the handle
  napi_async_cleanup_hook_handle hook_ = nullptr;
  bool is_waiting_ = false;
};

}  // namespace switchyard
