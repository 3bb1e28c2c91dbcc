// SPDX-License-Identifier: Apache-2.0
#include "readable_wait.h"

#include <cerrno>

namespace switchyard {

ReadableWait::ReadableWait(Napi::Env env, Napi::Function callback)
    : env_(env), callback_(Napi::Persistent(callback)), context_(env, "switchyard:readable") {}

int ReadableWait::Start(int fd) {
  uv_loop_s* loop = nullptr;
  if (napi_get_uv_event_loop(env_, &loop) != napi_ok) return -EINVAL;
  const int error = uv_poll_init(loop, &poll_, fd);
  if (error != 0) return error;
  poll_.data = this;
  self_ = shared_from_this();
  is_waiting_ = true;
  // A thread that ends must leave no handle in its loop: it waits for `OnClosed`.
  napi_add_async_cleanup_hook(env_, OnExit, this, &hook_);
  const int started = uv_poll_start(&poll_, UV_READABLE, OnReadable);
  if (started != 0) Stop();
  return started;
}

void ReadableWait::Stop() {
  if (!is_waiting_) return;
  is_waiting_ = false;
  uv_close(reinterpret_cast<uv_handle_t*>(&poll_), OnClosed);
}

// An error of the descriptor is one of the next receive.
void ReadableWait::OnReadable(uv_poll_t* poll, int /*status*/, int /*events*/) {
  auto* wait = static_cast<ReadableWait*>(poll->data);
  const Napi::HandleScope scope(wait->env_);
  const Napi::Function callback = wait->callback_.Value();
  wait->Stop();
  callback.MakeCallback(wait->env_.Global(), std::initializer_list<napi_value>{}, wait->context_);
}

void ReadableWait::OnClosed(uv_handle_t* handle) {
  const auto wait = std::move(static_cast<ReadableWait*>(handle->data)->self_);
  const Napi::HandleScope scope(wait->env_);
  wait->callback_.Reset();
  napi_remove_async_cleanup_hook(wait->hook_);
}

void ReadableWait::OnExit(napi_async_cleanup_hook_handle /*hook*/, void* wait) { static_cast<ReadableWait*>(wait)->Stop(); }

}  // namespace switchyard
