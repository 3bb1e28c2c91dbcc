// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * For tests: the selection alone, by program test run. A packet holds a request; the answer is written behind it.
 */
#include "select.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The packet's bytes. */
struct sy_exchange {
  struct sy_request request;
  __u32 verdict;
  struct sy_choice choice;
};
_Static_assert(sizeof(struct sy_request) == 52, "the offsets are known to pick-program.ts");
_Static_assert(__builtin_offsetof(struct sy_exchange, choice) == 56, "the offsets are known to pick-program.ts");
_Static_assert(sizeof(struct sy_exchange) == 88, "the offsets are known to pick-program.ts");

SEC("tc")
int pick(struct __sk_buff *packet)
{
  struct sy_exchange exchange;
  struct sy_frontend frontend;
  if (bpf_skb_load_bytes(packet, 0, &exchange, sizeof(exchange))) return -1;
  __builtin_memset(&exchange.choice, 0, sizeof(exchange.choice));
  int verdict = sy_find(&exchange.request, &frontend);
  if (verdict == SY_FOUND) verdict = sy_pick(&exchange.request, &frontend, &exchange.choice);
  exchange.verdict = verdict;
  return bpf_skb_store_bytes(packet, 0, &exchange, sizeof(exchange), 0);
}
