import type { AnswerWait, ProbeExchange, ProbeRequest, ProbeResult } from './probe-types.ts';

/** From the owner to the probe agent. `connection` is the id of the call that opened it, a TCP connection or a UDP socket. */
export type ProbeCall = { readonly id: number } & (
  | { readonly kind: 'probe' | 'open' | 'connect'; readonly request: ProbeRequest }
  | { readonly kind: 'await'; readonly request: ProbeRequest; readonly until: AnswerWait }
  | { readonly kind: 'exchange'; readonly connection: number; readonly text: string; readonly timeout: number }
  | { readonly kind: 'ask'; readonly connection: number; readonly timeout: number }
  | { readonly kind: 'close'; readonly connection: number }
);

/** From the probe agent to the owner, with the id of the call it answers. */
export type ProbeReply = { readonly id: number } & (
  | { readonly kind: 'ready' | 'connected' }
  | { readonly kind: 'result'; readonly result: ProbeResult }
  | { readonly kind: 'awaited'; readonly result: ProbeResult; readonly at: number }
  | { readonly kind: 'exchange'; readonly exchange: ProbeExchange }
);
